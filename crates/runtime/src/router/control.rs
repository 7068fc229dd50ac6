//! The router as control programs reach it.

use super::calls::in_scope;
use super::run::ends;
use super::{ErrorStyle, PacketOrder, ProgramRun, Router};
use crate::console::Console;
use castanet_element::control::{ControlContext, Loads, ProgramWait};
use castanet_element::error::ArgError;
use castanet_element::time::Time;

/// The router as one program sees it.
struct RouterControl<'a> {
    router: &'a mut Router,
    name: String,
}

impl RouterControl<'_> {
    fn absolute(&self, handler: &str) -> String {
        in_scope(&self.router.config.graph, &self.name, handler)
    }
}

impl ControlContext for RouterControl<'_> {
    fn now(&self) -> Time {
        self.router.control.clock.now()
    }
    fn peek(&self) -> Time {
        self.router.control.clock.peek()
    }
    fn read(&mut self, handler: &str) -> Result<String, ArgError> {
        let path = self.absolute(handler);
        self.router.read(&path)
    }
    fn write(&mut self, handler: &str, value: &str) -> Result<(), ArgError> {
        let path = self.absolute(handler);
        self.router.write(&path, value)
    }
    fn exists(&mut self, handler: &str, write: bool) -> bool {
        let path = self.absolute(handler);
        self.router.has_handler(&path, write)
    }
    fn is_private(&mut self, handler: &str) -> bool {
        let path = self.absolute(handler);
        self.router.is_private(&path)
    }
    fn random(&mut self) -> u32 {
        self.router.config.random.number()
    }
    fn print(&mut self, text: &str) {
        self.router.control.console.print(text);
    }
    fn chatter(&mut self, text: &str) {
        self.router.control.console.chatter(text);
    }
    fn stop(&mut self, status: i32) {
        self.router.control.ending.get_or_insert(status);
    }
    fn request_stop(&mut self) {
        self.router.control.stops += 1;
    }
    fn is_stopping(&self) -> bool {
        self.router.control.stops > 0 || self.router.control.ending.is_some()
    }
    fn take_stop(&mut self) -> bool {
        let any = self.router.control.stops > 0;
        self.router.control.stops -= u32::from(any);
        any
    }
    fn is_replaced(&self) -> bool {
        self.router.is_replaced()
    }
    fn take_start_errors(&mut self) -> String {
        self.router.take_start_errors()
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn label(&self) -> String {
        let graph = &self.router.config.graph;
        graph.find(&self.name).map_or_else(|| self.name.clone(), |it| graph.label(it))
    }
    fn full_name(&self, handler: &str) -> String {
        self.absolute(handler)
    }
    fn words(&self, error: &ArgError) -> String {
        self.router.words(error)
    }
    fn on_signal(&mut self, signal: i32) {
        let Some(element) = self.router.config.graph.find(&self.name) else { return };
        if !self.router.control.armed.contains(&(signal, element)) {
            self.router.control.armed.push((signal, element));
        }
    }
    fn kill(&mut self, process: i32, signal: i32) -> Result<(), String> {
        use nix::sys::signal::{Signal, kill};
        use nix::unistd::Pid;
        let router = &mut *self.router;
        if process == Pid::this().as_raw() && router.control.armed.iter().any(|it| it.0 == signal) {
            // The system would deliver it to some other thread, at some other time.
            if !router.control.raised.contains(&signal) {
                router.control.raised.push(signal);
            }
            return Ok(());
        }
        let waited =
            router.control.programs.iter().any(|run| run.program.signals().contains(&signal));
        if process == Pid::this().as_raw() && waited && !ends(signal) {
            router.strikes(signal);
            return Ok(());
        }
        let signal = match signal {
            0 => None,
            signal => Some(Signal::try_from(signal).map_err(|e| e.desc().to_owned())?),
        };
        kill(Pid::from_raw(process), signal).map_err(|e| e.desc().to_owned())
    }
    fn loads(&mut self) -> Loads {
        self.router.loads()
    }
    fn move_tasks(&mut self, element: usize, worker: usize) -> Result<(), ArgError> {
        self.router.move_tasks(element, worker)
    }
}

impl Router {
    /// The router as a program without an element reaches it; names of handlers are full ones.
    pub fn control_context(&mut self) -> impl ControlContext {
        RouterControl { router: self, name: String::new() }
    }

    /// The message of an error, in Castanet's or Click's words.
    pub fn words(&self, error: &ArgError) -> String {
        match self.config.error_style {
            ErrorStyle::Castanet => error.to_string(),
            ErrorStyle::Click => error.in_click_words().unwrap_or_default(),
        }
    }

    /// Runs the programs that wait for raised signals; returns whether any signal was raised.
    pub(super) fn run_signal_programs(&mut self) -> bool {
        let raised = std::mem::take(&mut self.control.raised);
        let any = !raised.is_empty();
        if self.control.ending.is_none() {
            raised.into_iter().for_each(|signal| _ = self.signalled(signal));
        }
        any
    }

    /// Runs the programs that wait for raised signals, then each program that need not wait;
    /// returns whether any ran.
    pub(super) fn run_programs(&mut self) -> bool {
        self.run_those_programs(|_| true)
    }

    /// The same for some of the programs.
    pub(super) fn run_those_programs(&mut self, which: impl Fn(&ProgramRun) -> bool) -> bool {
        let (mut ran, mut looked) = (self.run_signal_programs(), false);
        let now = self.control.clock.peek();
        for at in 0..self.control.programs.len() {
            let due = match self.control.programs[at].waits {
                ProgramWait::At(time) => time <= now,
                ProgramWait::StopRequest => self.control.stops > 0,
                ProgramWait::AtOrStopRequest(time) => time <= now || self.control.stops > 0,
                ProgramWait::Notified | ProgramWait::Ended => false,
            };
            // Programs of a configuration that is about to be replaced run no more steps.
            let may_run = self.control.ending.is_none() && !self.is_replaced();
            if due && may_run && which(&self.control.programs[at]) {
                if !std::mem::replace(&mut looked, true) {
                    // As Click, which looks at the clock before it runs what is due.
                    self.control.clock.tick();
                }
                self.step(at);
                ran = true;
            }
        }
        ran
    }

    /// Runs one step of one program. Where packets have an order, no element of the first worker runs
    /// meanwhile: in Click, both are of one thread.
    pub(super) fn step(&mut self, at: usize) {
        let pauses = self.control.order != PacketOrder::Bursts;
        if pauses {
            self.workers.pause_first(true);
        }
        self.at_desk(at, |run, control| run.waits = run.program.step(control));
        if pauses {
            self.workers.pause_first(false);
        }
    }

    /// Calls a program. It is not in the list meanwhile, so that a program that reads its own
    /// handlers finds none instead of a deadlock.
    fn at_desk<T>(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut ProgramRun, &mut dyn ControlContext) -> T,
    ) -> T {
        let mut run = self.control.programs.swap_remove(at);
        self.control.away.push((run.element, run.program.config()));
        let name = self.config.graph.elements[run.element].name.clone();
        let answer = act(&mut run, &mut RouterControl { router: self, name });
        self.control.away.pop();
        self.control.programs.push(run);
        let last = self.control.programs.len() - 1;
        self.control.programs.swap(at, last);
        answer
    }

    /// Has a program answer or obey a handler itself; `None` if it leaves the handler to its
    /// declarations. After a write the program runs its next step at once.
    pub(super) fn call_program(
        &mut self,
        element: usize,
        handler: &str,
        text: &str,
        write: bool,
    ) -> Option<Result<String, ArgError>> {
        let at = self.control.programs.iter().position(|run| run.element == element)?;
        let now = self.control.clock.peek();
        self.at_desk(at, |run, control| {
            let answer = run.program.call(handler, text, write, control)?;
            run.waits = ProgramWait::At(now);
            Some(answer)
        })
    }

    /// The earliest time for which a program waits.
    pub(super) fn next_program(&self) -> Option<Time> {
        // Once the router ends, no program runs any more.
        let programs = self.control.programs.iter().filter(|_| self.control.ending.is_none());
        let times = programs.filter_map(|run| match run.waits {
            ProgramWait::At(time) | ProgramWait::AtOrStopRequest(time) => Some(time),
            _ => None,
        });
        times.min()
    }

    /// Whether a driver program decides what a stop request means.
    pub(super) fn is_driven(&self) -> bool {
        self.control
            .programs
            .iter()
            .any(|run| run.program.is_driver() && run.waits != ProgramWait::Ended)
    }
}
