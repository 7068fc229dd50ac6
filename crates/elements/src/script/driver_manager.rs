//! `DriverManager`: runs a program that decides when the router stops.

use super::script_runner::{ScriptArgs, ScriptRunner, ScriptState, ScriptType};
use castanet_element::prelude::*;
use castanet_kit::script::PRIVATE;

/// Runs a program that decides when the router stops.
///
/// Without a DriverManager the first request stops the router. With one each request ends a `pause`
/// (also called `wait_stop`) or a `wait` of the program, and the router stops when the program
/// ends. The instructions are those of `Script`; a DriverManager is a `Script` with `TYPE DRIVER`.
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
#[element(room = "script", args = ScriptArgs)]
pub struct DriverManager(ScriptRunner);

impl Build for DriverManager {
    type Args = ScriptArgs;

    fn build(args: ScriptArgs, setup: &Setup) -> Result<Self, ArgError> {
        ScriptRunner::new(args, ScriptType::Driver, setup).map(DriverManager)
    }
}

impl Control for DriverManager {
    type Local = ScriptState;
    const PRIVATE: &'static [&'static str] = PRIVATE;

    fn step(&self, state: &mut ScriptState, desk: &mut dyn ControlContext) -> ProgramWait {
        self.0.step(state, desk)
    }

    fn call(
        &self,
        state: &mut ScriptState,
        handler: &str,
        text: &str,
        write: bool,
        desk: &mut dyn ControlContext,
    ) -> Option<Result<String, ArgError>> {
        self.0.call(state, handler, text, write, desk)
    }

    fn is_driver(&self) -> bool {
        self.0.drives()
    }

    fn signals(&self) -> &[i32] {
        self.0.signals()
    }

    fn more_handlers(&self) -> Vec<String> {
        self.0.exports()
    }

    fn has_handler(&self, name: &str, write: bool) -> bool {
        self.0.answers(name, write)
    }
}
