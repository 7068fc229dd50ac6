//! `Switch`: sends all packets to one output.

use super::output_args::output;
use castanet_element::prelude::*;

/// Sends all packets to one output, which a handler can change.
///
/// ```click
/// in -> s :: Switch(1) -> a;  s[1] -> b
/// > in 1.0.0.1 > 2.0.0.2 udp
/// < b  1.0.0.1 > 2.0.0.2 udp
/// = s.switch 1
/// ! s.switch 0
/// > in 1.0.0.1 > 2.0.0.2 udp
/// < a  1.0.0.1 > 2.0.0.2 udp
/// ! s.switch 2
/// = s.switch -1
/// = s.config -1
/// > in 1.0.0.1 > 2.0.0.2 udp
/// = s.drops.unmatched 1
/// ```
#[derive(Clone, Element)]
#[element(room = "switch", args = SwitchArgs, methods, ports = "1/-")]
pub struct Switch {
    port: Port,
    outputs: usize,
}

#[derive(Args)]
pub struct SwitchArgs {
    /// Number of the output; negative to drop all packets.
    #[arg(default = 0)]
    output: i32,
}

impl Build for Switch {
    type Args = SwitchArgs;

    fn build(args: SwitchArgs, setup: &Setup) -> Result<Self, ArgError> {
        let port = output(args.output, setup.outputs).map_err(|e| e.at("OUTPUT"))?;
        Ok(Switch { port, outputs: setup.outputs })
    }
}

#[handlers]
impl Switch {
    /// The arguments as they are in effect: the number of the output.
    #[read]
    fn config(&self) -> String {
        self.output_number()
    }

    /// Number of the output; -1 if packets are dropped.
    #[read(switch)]
    fn output_number(&self) -> String {
        self.port.number().map_or("-1".into(), |n| n.to_string())
    }

    /// Sets the output; the number of an output that is not connected means -1, as in Click.
    #[write(switch)]
    fn set_output(&self, text: &str, names: &Names) -> Result<Switch, ArgError> {
        let number = i32::from_arg(text.trim(), names);
        let number = number.map_err(|e| e.reworded("Switch output must be integer"))?;
        let port = output(number, self.outputs).unwrap_or(Port::DROP);
        Ok(Switch { port, ..*self })
    }
}

impl PerPacket for Switch {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    #[inline]
    fn packet(&self, _: &mut (), _: &mut Packet) -> Port {
        self.port
    }
}
