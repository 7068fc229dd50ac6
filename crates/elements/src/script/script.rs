//! `Script`: runs a program that reads and writes handlers.

use super::script_runner::{ScriptArgs, ScriptClass, ScriptRunner, ScriptType};
use castanet_element::prelude::*;

/// Runs a program that waits, reads and writes handlers, and stops the router.
///
/// Each argument is an instruction: `set`, `init`, `export`, `print`, `printn`, `save`, `append`,
/// `read`, `write`, `pause`, `wait`, `label`, `goto`, `loop`, `return`, `end`, `exit`, `stop`,
/// `error`, and `please_stop`, which asks the router to stop while the program goes on, with `gotoa`, a
/// `goto` that does nothing once the router was asked to stop. Most of them have a variant with a `q` at the end that removes one level of quotes.
/// `$x` and `$(handler)` are replaced in their arguments; functions such as `$(add 1 2)` are
/// handlers of the script.
///
/// TYPE determines when the program runs. Without ports the default is `ACTIVE`: it runs when the
/// router starts. With ports it is `PACKET`: it runs for each packet. `$input` is the number of the
/// input, and the packet goes to the output whose number the program returns, or to output 0 if the
/// program reaches its `end`; otherwise it is dropped. The packet waits for the program, so
/// handlers that the program writes take effect for this packet further downstream and for the next
/// packet. Output 0 may be pulled: then packets that the program sends to another output, or nowhere, are
/// not pulled. The program runs on the control thread: use it for rare packets only.
///
/// ```click
/// in -> c :: Counter -> out
/// Script(set x 0, label again, set x $(add $x 1), goto again $(lt $x 3), print $x,
///     wait 1s, read c.count, write c.reset, print "reset: $(c.count)")
/// ~ 3
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// + 1s
/// ~ c.count:
/// ~ 1
/// ~ reset: 0
/// ```
///
/// ```click
/// s :: Script(TYPE PASSIVE, export base 10, returnq "$(add $base $1) of $#")
/// w :: Script(pause, print "stepped", wait 1h, print "skipped")
/// = s.run(5) 15 of 1
/// = s.base 10
/// ! s.set base 20
/// = s.run(5) 25 of 1
/// = s.neg(42) -42
/// ! w.step
/// ~ stepped
/// ! w.step 1
/// ~ skipped
/// ! w.goto begin
/// ! w.step 2
/// ~ stepped
/// ~ skipped
/// ```
///
/// ```click
/// in -> s :: Script(init n 0, set n $(add $n 1), goto end $(eq $n 1), goto exit $(eq $n 3),
///     return $(sub $n 1)) -> out
/// s[1] -> second
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.1 > 2.0.0.3 udp
/// > in  1.0.0.1 > 2.0.0.4 udp
/// > in  1.0.0.1 > 2.0.0.5 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < second 1.0.0.1 > 2.0.0.3 udp
/// = s.get(n) 4
/// = s.drops.unmatched 2
/// ```
///
/// ```click
/// in -> Script(init n 0, set n $(add $n 1), write sw.switch $(if $(gt $n 2) 1 0)) -> sw :: Switch -> out
/// sw[1] -> second
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.1 > 2.0.0.3 udp
/// > in  1.0.0.1 > 2.0.0.4 udp
/// > in  1.0.0.1 > 2.0.0.5 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.3 udp
/// < second 1.0.0.1 > 2.0.0.4 udp
/// < second 1.0.0.1 > 2.0.0.5 udp
/// ```
#[derive(Element)]
#[element(room = "script", args = ScriptArgs, by = ScriptRunner<Script>)]
pub struct Script;

impl ScriptClass for Script {
    fn default_type(setup: &Setup) -> ScriptType {
        let has_ports = setup.inputs + setup.outputs > 0;
        if has_ports { ScriptType::Packet } else { ScriptType::Active }
    }
}
