//! `DriverManager`: a program that decides when to stop.

use super::scripting::{Instructions, Kind, Scripted, State};
use castanet_engine::prelude::*;
use castanet_kit::script::PRIVATE;

/// Decides by a program what happens when elements ask the router to stop.
///
/// Without one the first request ends the router. With one each request makes
/// a step past a `pause` (also called `wait_stop`) or a `wait`, and the router
/// ends when the program does. The instructions are those of `Script`, of
/// which it is the `TYPE DRIVER`.
///
/// ```click
/// in -> c :: Counter(COUNT_CALL 2 stop) -> out
/// d :: DriverManager(wait_stop, print "at $(c.count)", pause 2, print "over", wait 1s)
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ~ at 2
/// ! d.step
/// ! d.step
/// ~ over
/// = d.abs(-3) 3
/// ```
#[derive(Element)]
#[element(room = "script", args = Instructions)]
pub struct DriverManager(Scripted);

impl Build for DriverManager {
    type Args = Instructions;

    fn build(args: Instructions, setup: &Setup) -> Result<Self, ArgError> {
        Scripted::new(args, Kind::Driver, setup).map(DriverManager)
    }
}

impl Control for DriverManager {
    type Local = State;
    const PRIVATE: &'static [&'static str] = PRIVATE;

    fn step(&self, state: &mut State, desk: &mut dyn Desk) -> Step {
        self.0.step(state, desk)
    }

    fn call(
        &self,
        state: &mut State,
        handler: &str,
        text: &str,
        write: bool,
        desk: &mut dyn Desk,
    ) -> Option<Result<String, ArgError>> {
        self.0.call(state, handler, text, write, desk)
    }

    fn drives(&self) -> bool {
        self.0.drives()
    }

    fn signals(&self) -> &[i32] {
        self.0.signals()
    }

    fn more_handlers(&self) -> Vec<String> {
        self.0.exports()
    }

    fn answers(&self, name: &str, write: bool) -> bool {
        self.0.answers(name, write)
    }
}
