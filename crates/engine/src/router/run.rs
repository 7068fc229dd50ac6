//! Running a router to its end, in real or in simulated time.

use super::crew::Crew;
use super::{Notice, Router, Run};
use crate::element::Step;
use crate::time::Time;
use crate::worker::{Console, Turn, earlier};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The exit status that the configuration asked for; 0 unless it did.
    pub status: i32,
    /// Whether the user ended it.
    pub interrupted: bool,
}

/// What was found when a router was taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Frames that did not come back to their pool: a bug of Castanet.
    pub leaked_frames: usize,
    /// Bursts lost to a panic in an element.
    pub panics: u64,
    /// Workers lost altogether.
    pub lost_workers: usize,
}

/// Whether a signal that no program waits for ends the router.
pub(super) fn ends(signal: i32) -> bool {
    use nix::sys::signal::Signal;
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM].iter().any(|&end| end as i32 == signal)
}

/// How often to look at a running router, and what to do then.
pub type Watcher<'a> = (Duration, &'a mut dyn FnMut(&mut Router));

/// The longest that the driver sleeps without looking around.
const LONG: Duration = Duration::from_secs(3600);

impl Router {
    /// Runs until it is stopped. `watch` is called every so often, for live
    /// views. Workers are at hand again afterwards, so that handlers can
    /// still be read.
    pub fn run(&mut self, watch: Option<Watcher<'_>>) -> Outcome {
        match self.clock.is_simulated() {
            true => self.run_simulated(),
            false => self.run_real(watch),
        }
    }

    fn run_real(&mut self, mut watch: Option<Watcher<'_>>) -> Outcome {
        if let Err(e) = self.crew.send_off(self.pin.as_ref()) {
            self.console.chatter(&format!("cannot start a worker: {e}\n"));
            return Outcome { status: 1, interrupted: false };
        }
        let mut interrupted = false;
        let mut next_watch = watch.as_ref().map(|(every, _)| self.clock.now() + *every);
        loop {
            while self.step_programs() {}
            self.decide_stops();
            if interrupted || self.ending.is_some() {
                break;
            }
            let now = self.clock.now();
            if let (Some((every, look)), Some(due)) = (watch.as_mut(), next_watch)
                && due <= now
            {
                look(self);
                next_watch = Some(due.max(now) + *every);
                continue; // it may have written handlers
            }
            let until = earlier(self.next_program(), next_watch);
            let sleep = until.map_or(LONG, |t| (t - now).min(LONG));
            match self.notices.recv_timeout(sleep) {
                Ok(notice) => interrupted |= self.heed(notice),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        if self.crew.call_back() > 0 {
            self.console.chatter("a worker was lost to a panic outside any element\n");
        }
        // What is on its way comes to its end.
        self.make_all_calls();
        Outcome { status: self.ending.unwrap_or(0), interrupted }
    }

    /// Stop requests that no program waits for end the router, unless one
    /// that drives it is still busy with something else.
    fn decide_stops(&mut self) {
        if self.stops > 0 && !self.is_driven() {
            self.ending.get_or_insert(0);
        }
    }

    fn run_simulated(&mut self) -> Outcome {
        let mut interrupted = false;
        while self.ending.is_none() && !interrupted {
            let next = self.settle_a_while();
            let mut ran = false;
            while let Ok(notice) = self.notices.try_recv() {
                interrupted |= self.heed(notice);
                ran = true;
            }
            ran |= self.step_programs();
            self.decide_stops();
            match next {
                Turn::Ran | Turn::Calls => {}
                Turn::Idle(_) if ran || self.ending.is_some() => {}
                Turn::Idle(next) => match earlier(next, self.next_program()) {
                    Some(time) => self.clock.jump(time),
                    // Nothing will ever happen again.
                    None => break,
                },
            }
        }
        Outcome { status: self.ending.unwrap_or(0), interrupted }
    }

    /// Does what an element or a signal asks; whether it was the user, who
    /// wants an end.
    pub(super) fn heed(&mut self, notice: Notice) -> bool {
        match notice {
            Notice::StopRequested => self.stops += 1,
            Notice::Rung(id) => {
                let now = self.clock.now();
                let program = self.programs.iter_mut().find(|run| run.id == id);
                if let Some(run) = program.filter(|run| run.waits != Step::Ended) {
                    run.waits = Step::At(now);
                }
            }
            Notice::Interrupted => return true,
            Notice::Signal(signal) => return !self.signalled(signal) && self.strikes(signal),
            Notice::Call(worker) => self.make_calls(worker),
        }
        false
    }

    /// A signal that no program waits for: whether it ends the router. Others have the effect
    /// that they have without programs, unless one that had waited is still at work.
    pub(super) fn strikes(&self, signal: i32) -> bool {
        let at_work =
            |run: &Run| run.waits != Step::Ended && run.program.signals().contains(&signal);
        if !ends(signal) && !self.programs.iter().any(at_work) {
            (self.default_action)(signal);
        }
        ends(signal)
    }

    /// Calls the programs that wait for a signal; whether there were any.
    pub(super) fn signalled(&mut self, signal: i32) -> bool {
        let armed = std::mem::take(&mut self.armed);
        let (called, waiting) = armed.into_iter().partition(|&(wanted, _)| wanted == signal);
        let called: Vec<(i32, usize)> = called;
        self.armed = waiting;
        for &(_, element) in &called {
            let handler = format!("{}.run", self.graph.elements[element].name);
            if let Err(e) = self.write(&handler, "") {
                self.console.chatter(&format!("{handler}: {}\n", self.words(&e)));
            }
        }
        !called.is_empty()
    }

    /// Gives every worker a turn; idle only when all are.
    fn settle_a_while(&mut self) -> Turn {
        let mut all = Turn::Idle(None);
        for index in 0..self.crew.len() {
            let Some(worker) = self.crew.here(index) else { continue };
            all = match (all, worker.turn()) {
                (Turn::Idle(a), Turn::Idle(b)) => Turn::Idle(earlier(a, b)),
                (_, Turn::Calls) => {
                    self.make_calls(index);
                    Turn::Ran
                }
                _ => Turn::Ran,
            };
        }
        all
    }

    /// Runs workers at hand and programs, without moving the clock, until
    /// nothing is left to do or `turns` turns are over; for tests.
    pub fn settle(&mut self, turns: usize) -> Option<Time> {
        for _ in 0..turns {
            let turn = self.settle_a_while();
            let mut ran = false;
            while let Ok(notice) = self.notices.try_recv() {
                self.heed(notice);
                ran = true;
            }
            ran |= self.step_programs();
            if let (Turn::Idle(next), false) = (turn, ran) {
                return earlier(next, self.next_program());
            }
        }
        None
    }

    /// Moves a simulated clock by `time`, stopping at every timer on the way.
    pub fn advance(&mut self, time: Duration) {
        self.advance_within(time, 100_000, usize::MAX);
    }

    /// The same with at most so many turns at a time, and stops.
    pub(crate) fn advance_within(&mut self, time: Duration, turns: usize, stops: usize) {
        let end = self.clock.now() + time;
        for _ in 0..stops {
            let Some(next) = self.settle(turns).filter(|t| *t <= end) else { break };
            self.clock.jump(next);
        }
        self.clock.jump(end);
        self.settle(turns);
    }

    /// Tells every element that it is over: buffers are written out.
    pub fn end(&mut self) {
        self.end_those(|_| true);
    }

    /// Tells some elements that it is over.
    pub(super) fn end_those(&mut self, which: impl Fn(usize) -> bool) {
        let begun: Vec<Vec<usize>> = (0..self.graph.elements.len())
            .map(|it| match which(it) {
                true => self.assigned.begins(&self.graph, it),
                false => Vec::new(),
            })
            .collect();
        if let Crew::Here(workers) = &mut self.crew {
            workers.iter_mut().for_each(|worker| worker.end(&begun));
        }
        self.make_all_calls();
    }

    /// Takes the router apart and balances the frames.
    pub fn dismantle(mut self) -> Report {
        let lost_workers = self.crew.call_back();
        self.end();
        let mut panics = 0;
        if let Crew::Here(workers) = &self.crew {
            panics = workers.iter().map(|w| w.core.panics).sum();
        }
        // What elements share keeps packets too, and is not any worker's.
        let frames = self.frames.clone();
        drop(self);
        castanet_packet::Pool::flush_thread();
        Report { leaked_frames: frames.leaked(), panics, lost_workers }
    }
}
