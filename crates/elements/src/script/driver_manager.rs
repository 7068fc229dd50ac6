//! `DriverManager`: runs a program that decides when the router stops.

use super::script_runner::{ScriptArgs, ScriptClass, ScriptRunner, ScriptType};
use castanet_element::prelude::*;

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
#[element(room = "script", args = ScriptArgs, by = ScriptRunner<DriverManager>)]
pub struct DriverManager;

impl ScriptClass for DriverManager {
    fn default_type(_: &Setup) -> ScriptType {
        ScriptType::Driver
    }
}
