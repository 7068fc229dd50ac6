//! What control programs see of the router.

use super::calls::in_scope;
use super::run::ends;
use super::{Loads, Router, Run, Wording};
use crate::args::ArgError;
use crate::element::{Desk, Step};
use crate::time::Time;
use crate::worker::Console;

/// The router as one program sees it.
struct AtDesk<'a> {
    router: &'a mut Router,
    name: String,
}

impl AtDesk<'_> {
    fn absolute(&self, handler: &str) -> String {
        in_scope(&self.router.graph, &self.name, handler)
    }
}

impl Desk for AtDesk<'_> {
    fn now(&self) -> Time {
        self.router.clock.now()
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
    fn print(&mut self, text: &str) {
        self.router.console.print(text);
    }
    fn chatter(&mut self, text: &str) {
        self.router.console.chatter(text);
    }
    fn stop(&mut self, status: i32) {
        self.router.ending.get_or_insert(status);
    }
    fn request_stop(&mut self) {
        self.router.stops += 1;
    }
    fn take_stop(&mut self) -> bool {
        let any = self.router.stops > 0;
        self.router.stops -= u32::from(any);
        any
    }
    fn is_replaced(&self) -> bool {
        self.router.is_replaced()
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn label(&self) -> String {
        let graph = &self.router.graph;
        graph.find(&self.name).map_or_else(|| self.name.clone(), |it| graph.label(it))
    }
    fn full_name(&self, handler: &str) -> String {
        self.absolute(handler)
    }
    fn words(&self, error: &ArgError) -> String {
        self.router.words(error)
    }
    fn on_signal(&mut self, signal: i32) {
        let Some(element) = self.router.graph.find(&self.name) else { return };
        if !self.router.armed.contains(&(signal, element)) {
            self.router.armed.push((signal, element));
        }
    }
    fn kill(&mut self, process: i32, signal: i32) -> Result<(), String> {
        use nix::sys::signal::{Signal, kill};
        use nix::unistd::Pid;
        let router = &mut *self.router;
        if process == Pid::this().as_raw() && router.armed.iter().any(|it| it.0 == signal) {
            // It would come back by another thread, at some other time.
            if !router.raised.contains(&signal) {
                router.raised.push(signal);
            }
            return Ok(());
        }
        let waited = router.programs.iter().any(|run| run.program.signals().contains(&signal));
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
    /// An error in the words that the user wants to hear.
    pub(super) fn words(&self, error: &ArgError) -> String {
        match self.wording {
            Wording::Castanet => error.to_string(),
            Wording::Click => error.in_click_words().unwrap_or_default(),
        }
    }

    /// Runs the programs that wait for signals which others have raised, then every program that
    /// need not wait; whether there were any.
    pub(super) fn run_programs(&mut self) -> bool {
        let now = self.clock.now();
        let raised = std::mem::take(&mut self.raised);
        let mut ran = !raised.is_empty();
        if self.ending.is_none() {
            raised.into_iter().for_each(|signal| _ = self.signalled(signal));
        }
        for at in 0..self.programs.len() {
            let due = match self.programs[at].waits {
                Step::At(time) => time <= now,
                Step::Stopped => self.stops > 0,
                Step::AtOrStopped(time) => time <= now || self.stops > 0,
                Step::Prodded | Step::Ended => false,
            };
            // Programs of a configuration that is about to be replaced have had their last step.
            if due && self.ending.is_none() && !self.is_replaced() {
                self.step(at);
                ran = true;
            }
        }
        ran
    }

    /// One step of one program.
    fn step(&mut self, at: usize) {
        self.at_desk(at, |run, desk| run.waits = run.program.step(desk));
    }

    /// Lets a program do something. It is away meanwhile, so that a program
    /// that reads its own handlers finds none rather than a deadlock.
    fn at_desk<T>(&mut self, at: usize, act: impl FnOnce(&mut Run, &mut dyn Desk) -> T) -> T {
        let mut run = self.programs.swap_remove(at);
        self.away.push((run.element, run.program.config()));
        let name = self.graph.elements[run.element].name.clone();
        let answer = act(&mut run, &mut AtDesk { router: self, name });
        self.away.pop();
        self.programs.push(run);
        let last = self.programs.len() - 1;
        self.programs.swap(at, last);
        answer
    }

    /// Lets a program answer or obey a handler itself; `None` if it leaves
    /// that to its declarations. After a write it has another look at what it
    /// waits for.
    pub(super) fn call_program(
        &mut self,
        element: usize,
        handler: &str,
        text: &str,
        write: bool,
    ) -> Option<Result<String, ArgError>> {
        let at = self.programs.iter().position(|run| run.element == element)?;
        let now = self.clock.now();
        self.at_desk(at, |run, desk| {
            let answer = run.program.call(handler, text, write, desk)?;
            run.waits = Step::At(now);
            Some(answer)
        })
    }

    /// When the first program wants to go on by itself.
    pub(super) fn next_program(&self) -> Option<Time> {
        // Once the router ends, none is called any more.
        let programs = self.programs.iter().filter(|_| self.ending.is_none());
        let times = programs.filter_map(|run| match run.waits {
            Step::At(time) | Step::AtOrStopped(time) => Some(time),
            _ => None,
        });
        times.min()
    }

    /// Whether some program still decides what a stop request means.
    pub(super) fn is_driven(&self) -> bool {
        self.programs.iter().any(|run| run.program.drives() && run.waits != Step::Ended)
    }
}
