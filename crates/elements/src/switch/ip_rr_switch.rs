//! `IPRRSwitch`: sends flows to its outputs in rotation.

use super::hash_switch::output_count;
use castanet_element::prelude::*;
use castanet_element::wire::udp::ports;
use castanet_kit::lru::Lru;

/// Sends flows to its outputs round robin: all packets of a flow leave by the same output.
///
/// A flow has the source and destination addresses and ports of its first packet, and goes to the
/// output after that of the flow before; the first one goes to output 1, as in FastClick. Packets
/// without a marked IPv4 header, and fragments that are not first ones, are a flow of their own. All
/// workers share the flows.
///
/// ```click
/// in -> s :: IPRRSwitch -> a;  s[1] -> b
/// > in 1.0.0.1:5 > 2.0.0.2:6 udp
/// > in 1.0.0.1:5 > 2.0.0.2:7 udp
/// > in 1.0.0.1:5 > 2.0.0.2:6 udp "abc"
/// > in 1.0.0.1:5 > 2.0.0.3:6 tcp
/// < b  1.0.0.1:5 > 2.0.0.2:6 udp
/// < a  1.0.0.1:5 > 2.0.0.2:7 udp
/// < b  1.0.0.1:5 > 2.0.0.2:6 udp "abc"
/// < b  1.0.0.1:5 > 2.0.0.3:6 tcp
/// = s.flow_count 3
/// = s.drops.unmatched 0
/// ```
///
/// ```click
/// in -> s :: IPRRSwitch(MAX 1, CAPACITY 1) -> a;  s[1] -> b
/// > in hex 01 02
/// > in 1.0.0.1:5 > 2.0.0.2:7 udp
/// < a  hex 01 02
/// < a  1.0.0.1:5 > 2.0.0.2:7 udp
/// = s.flow_count 1
/// = s.displaced 1
/// ```
#[derive(Element)]
#[element(room = "switch", args = IPRRSwitchArgs)]
pub struct IPRRSwitch {
    /// Number of outputs in the rotation.
    outputs: u8,
    capacity: usize,
}

#[derive(Args)]
pub struct IPRRSwitchArgs {
    /// Uses only the first MAX outputs; all outputs by default.
    #[arg(keyword)]
    max: Option<u32>,
    /// The most flows to remember; beyond it the flow goes whose last packet is oldest.
    #[arg(keyword, default = 1 << 20, range = 1..)]
    capacity: u32,
}

impl Build for IPRRSwitch {
    type Args = IPRRSwitchArgs;

    fn build(args: IPRRSwitchArgs, setup: &Setup) -> Result<Self, ArgError> {
        let outputs = output_count(args.max, setup.outputs)?;
        Ok(IPRRSwitch { outputs, capacity: args.capacity as usize })
    }
}

/// Addresses and ports; all zero for packets that have none.
type FlowKey = (u32, u32, (u16, u16));

/// The flows with their outputs. All workers share them.
#[derive(Default, Local)]
#[local(methods)]
pub struct IPRRSwitchState {
    flows: Lru<FlowKey, u8>,
    /// The output of the latest flow.
    latest: u8,
    /// Number of flows that were forgotten because CAPACITY was reached.
    #[read]
    #[portable]
    displaced: u64,
}

#[handlers]
impl IPRRSwitchState {
    /// Number of flows that are remembered.
    #[read]
    fn flow_count(&self) -> usize {
        self.flows.len()
    }
}

/// The flow of a packet.
fn flow(packet: &mut Packet) -> FlowKey {
    let Some(ip) = packet.ipv4().filter(|ip| ip.is_first_fragment()) else {
        return FlowKey::default();
    };
    match ports(ip.payload()) {
        Some(ports) => (ip.src().to_bits(), ip.dst().to_bits(), ports),
        None => FlowKey::default(),
    }
}

impl PerPacket for IPRRSwitch {
    type On = on::Any;
    type Local = IPRRSwitchState;
    type Fate = Port;
    const SHARED: bool = true;

    fn packet(&self, state: &mut IPRRSwitchState, packet: &mut Packet) -> Port {
        let key = flow(packet);
        // After a hot swap the state may come from a switch with more outputs.
        let known = state.flows.get_mut(&key).copied().filter(|&port| port < self.outputs);
        let port = known.unwrap_or_else(|| {
            state.latest = (state.latest % self.outputs + 1) % self.outputs;
            let displaced = state.flows.insert(key, state.latest, self.capacity);
            state.displaced += u64::from(displaced.is_some());
            state.latest
        });
        Port::nth(port)
    }
}
