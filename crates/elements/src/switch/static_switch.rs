//! `StaticSwitch`: sends all packets to one fixed output.

use super::output_args::output;
use castanet_element::prelude::*;

/// Sends all packets to one fixed output, or drops them.
///
/// It is a `Switch` that has no write handler.
///
/// ```click
/// in -> s :: StaticSwitch(1) -> a;  s[1] -> b
/// > in 1.0.0.1 > 2.0.0.2 udp
/// < b  1.0.0.1 > 2.0.0.2 udp
/// ```
///
/// ```click
/// in -> none :: StaticSwitch(-1) -> out;  beyond -> b :: StaticSwitch(5) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// = none.drops.unmatched 1
/// > beyond 1.0.0.1 > 2.0.0.2 udp
/// = b.drops.unmatched 1
/// ```
#[derive(Element)]
#[element(room = "switch", args = StaticSwitchArgs, ports = "1/-")]
pub struct StaticSwitch {
    port: Port,
}

#[derive(Args)]
pub struct StaticSwitchArgs {
    /// Number of the output; all packets are dropped if there is no such output.
    #[arg]
    output: i32,
}

impl Build for StaticSwitch {
    type Args = StaticSwitchArgs;

    fn build(args: StaticSwitchArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(StaticSwitch { port: output(args.output, setup.outputs).unwrap_or(Port::DROP) })
    }
}

impl PerPacket for StaticSwitch {
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    #[inline]
    fn packet(&self, _: &mut (), _: &mut Packet) -> Port {
        self.port
    }
}
