//! State of a `WasmElement` on one worker: its instance of the module, and its faults.

use crate::engine::{Module, ModuleInstance};
use crate::exit::WasmExit;
use crate::fault::{Fault, FaultHistory};
use crate::interface::ModuleInterface;
use crate::metrics::{COUNTERS, FAULTS};
use crate::transfer::{copy_in, copy_out};
use castanet_element::prelude::*;
use std::sync::Arc;

/// Most lines of a module that are printed in a second.
const LINES_A_SECOND: u32 = 10;
/// Most causes of faults that are remembered as reported.
const MOST_CAUSES: usize = 16;

/// The line about a module that is cut off.
const CUT_OFF: &str = "the module is cut off after faults in a row, for 100 ms first, and twice as long after each \
                       further one";

/// A module with its configuration, as all workers run it.
#[derive(Clone, Debug)]
pub(crate) struct ModuleSetup {
    /// The file, for messages.
    pub(crate) file: String,
    pub(crate) module: Arc<Module>,
    pub(crate) configuration: Arc<str>,
    /// When the router was built.
    pub(crate) started: Time,
}

impl ModuleSetup {
    /// Whether the instance of `before` can go on under this one.
    pub(crate) fn continues(&self, before: &ModuleSetup) -> bool {
        self.module.is_same(&before.module)
            && (self.configuration == before.configuration || self.module.can_update())
    }
}

/// An instance, with what it was made of.
struct RunningModule {
    setup: ModuleSetup,
    instance: ModuleInstance,
    is_seeded: bool,
}

impl RunningModule {
    fn new(setup: &ModuleSetup, now: Time) -> Result<RunningModule, String> {
        let instance = setup.module.instantiate(&setup.configuration, now)?;
        Ok(RunningModule { setup: setup.clone(), instance, is_seeded: false })
    }

    /// Has the module decide about packets; writes the indexes of their fates into `fates`.
    #[inline]
    fn process(
        &mut self,
        packets: &mut [Packet],
        port: u8,
        outputs: usize,
        fates: &mut [u8],
        now: Time,
    ) -> Result<(), Fault> {
        let (memory, interface) = self.instance.memory_mut();
        copy_in(memory, interface, packets, port);
        self.instance.process(packets.len(), now)?;
        let (memory, interface) = self.instance.memory_mut();
        copy_out(memory, interface, packets, outputs, fates)
    }
}

/// State of a `WasmElement` on one worker.
#[derive(Default, Local)]
#[local(methods)]
pub struct WasmState {
    running: Option<RunningModule>,
    history: FaultHistory,
    /// Values of counters of instances that are gone.
    carried: Vec<u64>,
    /// Names of counters.
    names: Vec<String>,
    fates: Vec<u8>,
    /// Causes that are reported.
    reported: Vec<String>,
    /// Start of the second in which lines are counted, and their number.
    printed: (Time, u32),
    /// Faults of the module: traps, limits, malformed answers.
    #[read]
    #[metric(FAULTS)]
    faults: u64,
    /// Batches that the module was called for.
    #[read]
    batches: u64,
}

#[handlers]
impl WasmState {
    /// Counters of the module, each with its name.
    #[read]
    #[metric(COUNTERS)]
    fn counters(&self) -> Value {
        let numbered = self.names.iter().enumerate();
        Value::Counts(numbered.map(|(n, name)| (self.counter(n), name.clone().into())).collect())
    }
}

impl WasmState {
    /// The value of the module's counter `n`, with that of instances that are gone.
    fn counter(&self, n: usize) -> u64 {
        let carried = self.carried.get(n).copied().unwrap_or(0);
        let running = self.running.as_ref().map_or(0, |it| {
            let interface = it.instance.interface();
            let counter = interface.counters.get(n);
            counter.map_or(0, |it_at| interface.counter(it.instance.memory(), it_at.1))
        });
        carried.wrapping_add(running)
    }

    /// Has the instance follow the configuration: goes on with the same module, else begins anew.
    pub(crate) fn follow(&mut self, setup: &ModuleSetup, interface: &ModuleInterface) {
        let follows = self.running.as_mut().is_some_and(|it| {
            let (before, changed) = (&it.setup, it.setup.configuration != setup.configuration);
            let continues = Arc::ptr_eq(&setup.module, &before.module) || setup.continues(before);
            continues
                && (!changed
                    || matches!(
                        it.instance.update(&setup.configuration, setup.started),
                        Ok(Ok(()))
                    ))
        });
        match (&mut self.running, follows) {
            (Some(it), true) => it.setup = setup.clone(),
            _ => {
                let (faults, batches) = (self.faults, self.batches);
                *self = WasmState { faults, batches, ..WasmState::default() };
                self.running = RunningModule::new(setup, setup.started).ok();
            }
        }
        self.names = interface.counters.iter().map(|(name, _)| name.clone()).collect();
        self.carried.resize(self.names.len(), 0);
    }

    /// Sends each packet of a batch where the module says.
    pub(crate) fn route(
        &mut self,
        setup: &ModuleSetup,
        outputs: usize,
        port: usize,
        mut batch: Batch,
        cx: &mut Cx,
    ) {
        let mut fates = std::mem::take(&mut self.fates);
        fates.resize(batch.len(), 0);
        let (mut rest, mut room) = (batch.as_mut_slice(), &mut fates[..]);
        while !rest.is_empty() {
            let capacity = self.ready(setup, cx).map_or(rest.len(), |it| it.interface().batch);
            let (packets, more) = rest.split_at_mut(capacity.min(rest.len()));
            let (places, more_places) = room.split_at_mut(packets.len());
            self.decide(packets, port as u8, outputs, places, cx);
            (rest, room) = (more, more_places);
        }
        match fates.first() {
            // Mostly all leave by one output.
            Some(&fate) if fates.iter().all(|it| *it == fate) => cx.emit_batch_index(fate, batch),
            _ => cx.route(batch, &mut fates),
        }
        self.fates = fates;
    }

    /// Has the module decide about no more packets than it takes at once.
    fn decide(
        &mut self,
        packets: &mut [Packet],
        port: u8,
        outputs: usize,
        fates: &mut [u8],
        cx: &mut Cx,
    ) {
        let Some(running) = &mut self.running else {
            return fates.fill(WasmExit::CutOff.index());
        };
        self.batches += 1;
        match running.process(packets, port, outputs, fates, cx.now()) {
            Ok(()) => self.history.note_good_batch(),
            Err(fault) => {
                fates.fill(WasmExit::from(&fault).index());
                self.print_log(cx);
                return self.fail(&fault.to_string(), cx);
            }
        }
        self.print_log(cx);
    }

    /// The instance; makes another one if the last one has failed. `None` while the module is cut off.
    #[inline]
    fn ready(&mut self, setup: &ModuleSetup, cx: &mut Cx) -> Option<&mut ModuleInstance> {
        if self.running.is_none() {
            self.make_again(setup, cx);
        }
        let running = self.running.as_mut()?;
        if !running.is_seeded {
            running.instance.seed(cx.random());
            running.is_seeded = true;
        }
        Some(&mut running.instance)
    }

    #[cold]
    fn make_again(&mut self, setup: &ModuleSetup, cx: &mut Cx) {
        if self.history.is_cut_off(cx.now()) {
            return;
        }
        match RunningModule::new(setup, cx.now()) {
            Ok(running) => self.running = Some(running),
            Err(why) => self.fail(&format!("{} {why}", setup.file), cx),
        }
    }

    /// Ends the instance because of a fault, and reports each cause once.
    #[cold]
    fn fail(&mut self, cause: &str, cx: &mut Cx) {
        self.faults += 1;
        for n in 0..self.names.len() {
            self.carried[n] = self.counter(n);
        }
        self.running = None;
        self.report_once(&format!("{cause}; the module begins anew"), cx);
        if self.history.note_fault(cx.now()).is_some() {
            self.report_once(CUT_OFF, cx);
        }
    }

    fn report_once(&mut self, message: &str, cx: &mut Cx) {
        let is_new = !self.reported.iter().any(|it| it == message);
        if is_new && self.reported.len() < MOST_CAUSES {
            self.reported.push(message.to_owned());
            cx.report(message);
        }
    }

    /// Prints what the module has logged, as far as it may.
    #[inline]
    fn print_log(&mut self, cx: &mut Cx) {
        let Some(running) = &mut self.running else { return };
        let lines = running.instance.take_log();
        if lines.is_empty() {
            return;
        }
        if cx.now() - self.printed.0 >= Duration::from_secs(1) {
            self.printed = (cx.now(), 0);
        }
        for line in lines {
            if self.printed.1 < LINES_A_SECOND {
                self.printed.1 += 1;
                cx.report(&line);
            }
        }
    }

    /// Reads a handler of the module; `number` is that of a handler, else of a counter.
    pub(crate) fn read(
        &mut self,
        setup: &ModuleSetup,
        interface: &ModuleInterface,
        name: &str,
        now: Time,
    ) -> Option<Value> {
        if let Some(n) = interface.counters.iter().position(|(it, _)| it == name) {
            return Some(Value::Count(self.counter(n)));
        }
        let handler = interface.handler(name, crate::abi::READ)?;
        let answer = self.call(setup, now, |instance| instance.read(handler, now));
        Some(Value::Text(answer.unwrap_or_else(|why| why)))
    }

    /// Writes to a handler of the module.
    pub(crate) fn write(
        &mut self,
        setup: &ModuleSetup,
        interface: &ModuleInterface,
        name: &str,
        text: &str,
    ) -> Option<Result<(), ArgError>> {
        let handler = interface.handler(name, crate::abi::WRITE)?;
        let now = setup.started;
        let done = self.call(setup, now, |instance| instance.write(handler, text, now));
        Some(done.map_err(ArgError::new))
    }

    /// Calls the module for a handler; a fault ends the instance.
    fn call<R>(
        &mut self,
        setup: &ModuleSetup,
        now: Time,
        call: impl FnOnce(&mut ModuleInstance) -> Result<Result<R, String>, Fault>,
    ) -> Result<R, String> {
        if self.running.is_none() && !self.history.is_cut_off(now) {
            self.running = RunningModule::new(setup, now).ok();
        }
        let Some(running) = &mut self.running else {
            return Err("the module is cut off because of its faults".into());
        };
        call(&mut running.instance).unwrap_or_else(|fault| {
            self.faults += 1;
            self.history.note_fault(now);
            self.running = None;
            Err(fault.to_string())
        })
    }
}
