//! `RoundRobinSwitch`: one output after the other.

use super::hash_switch::width;
use castanet_engine::prelude::*;

/// Sends each packet out of the next output in turn.
///
/// All workers take turns together, so that no output gets more than its
/// share.
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
#[element(room = "switch", args = Most, alias = "RoundRobinSwitchMP")]
pub struct RoundRobinSwitch {
    outputs: u8,
}

#[derive(Args)]
pub struct Most {
    /// Uses the first that many outputs only.
    #[arg(keyword)]
    max: Option<u32>,
}

impl Build for RoundRobinSwitch {
    type Args = Most;

    fn build(args: Most, setup: &Setup) -> Result<Self, ArgError> {
        Ok(RoundRobinSwitch { outputs: width(args.max, setup)? })
    }
}

/// Whose turn it is.
#[derive(Default, Local)]
pub struct Turn {
    next: u8,
}

impl PerPacket for RoundRobinSwitch {
    type On = on::Any;
    type Local = Turn;
    type Fate = Port;
    const SHARED: bool = true;

    #[inline]
    fn packet(&self, turn: &mut Turn, _: &mut Packet) -> Port {
        // The state may be that of a switch with more outputs (hot swap).
        let now = if turn.next < self.outputs { turn.next } else { 0 };
        let port = Port::nth(now);
        turn.next = now + 1;
        port
    }
}
