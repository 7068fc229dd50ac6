//! `RoundRobinSwitch`: sends packets to its outputs in rotation.

use super::hash_switch::output_count;
use castanet_element::prelude::*;

/// Sends packets to its outputs round robin.
///
/// All workers share the rotation, so that all outputs get the same number of packets.
///
/// ```click
/// in -> s :: RoundRobinSwitch -> a;  s[1] -> b
/// > in 1.0.0.1 > 2.0.0.1 udp
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.1 > 2.0.0.3 udp
/// < a  1.0.0.1 > 2.0.0.1 udp
/// < b  1.0.0.1 > 2.0.0.2 udp
/// < a  1.0.0.1 > 2.0.0.3 udp
/// = s.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "switch", args = RoundRobinSwitchArgs, alias = "RoundRobinSwitchMP")]
pub struct RoundRobinSwitch {
    outputs: u8,
}

#[derive(Args)]
pub struct RoundRobinSwitchArgs {
    /// Uses only the first MAX outputs; all outputs by default.
    #[arg(keyword)]
    max: Option<u32>,
}

impl Build for RoundRobinSwitch {
    type Args = RoundRobinSwitchArgs;

    fn build(args: RoundRobinSwitchArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(RoundRobinSwitch { outputs: output_count(args.max, setup)? })
    }
}

/// Number of the next output. All workers share it.
#[derive(Default, Local)]
pub struct RoundRobinSwitchState {
    next: u8,
}

impl PerPacket for RoundRobinSwitch {
    type On = on::Any;
    type Local = RoundRobinSwitchState;
    type Fate = Port;
    const SHARED: bool = true;

    #[inline]
    fn packet(&self, state: &mut RoundRobinSwitchState, _: &mut Packet) -> Port {
        // After a hot swap the state may come from a switch with more outputs.
        let current = if state.next < self.outputs { state.next } else { 0 };
        let port = Port::nth(current);
        state.next = current + 1;
        port
    }
}
