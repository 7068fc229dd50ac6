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
///
/// ```click
/// in -> s :: RoundRobinSwitch(1, SPLITBATCH true) -> a;  s[1] -> b
/// > in 1.0.0.1 > 2.0.0.1 udp
/// > in 1.0.0.1 > 2.0.0.2 udp
/// < a  1.0.0.1 > 2.0.0.1 udp
/// < a  1.0.0.1 > 2.0.0.2 udp
/// = s.max 1
/// ! s.max 2
/// > in 1.0.0.1 > 2.0.0.3 udp
/// > in 1.0.0.1 > 2.0.0.4 udp
/// < b  1.0.0.1 > 2.0.0.3 udp
/// < a  1.0.0.1 > 2.0.0.4 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "switch", args = RoundRobinSwitchArgs, methods, alias = "RoundRobinSwitchMP")]
pub struct RoundRobinSwitch {
    /// Number of outputs in the rotation.
    outputs: u8,
    /// Number of connected outputs.
    connected: usize,
}

#[derive(Args)]
pub struct RoundRobinSwitchArgs {
    /// Uses only the first MAX outputs; all outputs by default.
    #[arg]
    max: Option<u32>,
    /// An argument of FastClick without effect: each packet goes to the next output.
    #[arg(keyword, default = true)]
    #[allow(dead_code)]
    splitbatch: bool,
}

impl Build for RoundRobinSwitch {
    type Args = RoundRobinSwitchArgs;

    fn build(args: RoundRobinSwitchArgs, setup: &Setup) -> Result<Self, ArgError> {
        RoundRobinSwitch::new(args.max, setup.outputs)
    }
}

impl RoundRobinSwitch {
    fn new(max: Option<u32>, connected: usize) -> Result<Self, ArgError> {
        Ok(RoundRobinSwitch { outputs: output_count(max, connected)?, connected })
    }
}

#[handlers]
impl RoundRobinSwitch {
    /// Number of outputs in the rotation.
    #[read]
    fn max(&self) -> u64 {
        self.outputs.into()
    }
    /// Sets the number of outputs in the rotation.
    #[write(max)]
    fn set_max(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        RoundRobinSwitch::new(Some(u32::from_arg(text, names)?), self.connected)
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
