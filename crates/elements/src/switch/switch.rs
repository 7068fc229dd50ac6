//! `Switch`: one output of several, for all packets.

use super::arms::output;
use castanet_engine::prelude::*;

/// Sends all packets out of one output, until told to use another.
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
/// > in 1.0.0.1 > 2.0.0.2 udp
/// = s.drops.unmatched 1
/// ```
#[derive(Clone, Element)]
#[element(room = "switch", args = Choice, methods, ports = "1/-")]
pub struct Switch {
    port: Port,
    outputs: usize,
}

#[derive(Args)]
pub struct Choice {
    /// The output to use; -1 drops all packets.
    #[arg(default = 0)]
    output: i32,
}

impl Build for Switch {
    type Args = Choice;

    fn build(args: Choice, setup: &Setup) -> Result<Self, ArgError> {
        let port = output(args.output, setup.outputs).map_err(|e| e.at("OUTPUT"))?;
        Ok(Switch { port, outputs: setup.outputs })
    }
}

#[handlers]
impl Switch {
    /// The output in use; -1 if packets are dropped.
    #[read(switch)]
    fn chosen(&self) -> String {
        self.port.number().map_or("-1".into(), |n| n.to_string())
    }

    /// Uses another output; one that is not connected means -1, as in Click.
    #[write(switch)]
    fn choose(&self, text: &str, names: &Names) -> Result<Switch, ArgError> {
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
