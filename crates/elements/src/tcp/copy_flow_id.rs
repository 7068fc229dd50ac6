//! `CopyFlowID`: writes the addresses and ports of a first packet to others.

use super::segment::{NO_ENDPOINT, SegmentFlow, flow_of, set_flow};
use castanet_element::prelude::*;

/// Writes the addresses and ports of the first packet on input 0 to all packets on input 1.
///
/// Packets are TCP segments and UDP datagrams over IPv4, and leave by the output of their input's number. Before the
/// first one on input 0, the addresses are 0.0.0.0 and the ports 0. Checksums are not updated;
/// `SetTCPChecksum`, `SetUDPChecksum` and `SetIPChecksum` do that.
///
/// ```click
/// a -> [0] c :: CopyFlowID [0] -> x;  b -> [1] c [1] -> SetTCPChecksum -> SetIPChecksum -> y
/// > a 1.0.0.1:10 > 2.0.0.2:20 tcp
/// > a 3.0.0.3:30 > 4.0.0.4:40 tcp
/// > b 5.0.0.5:50 > 6.0.0.6:60 tcp "data"
/// < x 1.0.0.1:10 > 2.0.0.2:20 tcp
/// < x 3.0.0.3:30 > 4.0.0.4:40 tcp
/// < y 1.0.0.1:10 > 2.0.0.2:20 tcp "data"
/// ! c.reset
/// > a 3.0.0.3:30 > 4.0.0.4:40 tcp
/// > b 5.0.0.5:50 > 6.0.0.6:60 tcp
/// < x 3.0.0.3:30 > 4.0.0.4:40 tcp
/// < y 3.0.0.3:30 > 4.0.0.4:40 tcp
/// > b 1.0.0.1 > 2.0.0.2 icmp type echo
/// = c.drops.no_ports 1
/// ```
/// ```click
/// a -> [0] c :: CopyFlowID [0] -> x;  b -> [1] c [1] -> SetUDPChecksum -> SetIPChecksum -> y
/// > a 1.0.0.1:10 > 2.0.0.2:20 udp
/// > b 5.0.0.5:50 > 6.0.0.6:60 udp "data"
/// < x 1.0.0.1:10 > 2.0.0.2:20 udp
/// < y 1.0.0.1:10 > 2.0.0.2:20 udp "data"
/// ```
#[derive(Element)]
#[element(room = "tcp", ports = "2/2", processing = "a/a", flow = "#/#")]
pub struct CopyFlowID;

/// The remembered flow.
#[derive(Local)]
#[local(methods)]
pub struct CopyFlowIDState {
    flow: SegmentFlow,
    is_set: bool,
}

impl Default for CopyFlowIDState {
    fn default() -> Self {
        CopyFlowIDState { flow: (NO_ENDPOINT, NO_ENDPOINT), is_set: false }
    }
}

#[handlers]
impl CopyFlowIDState {
    /// Remembers the flow of the next packet on input 0.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.is_set = false;
        Ok(())
    }
}

#[derive(Fate)]
pub enum CopyFlowIDExit {
    /// Packets of input 0.
    Source,
    /// Packets of input 1, with the remembered addresses and ports.
    Copy,
    /// Packets that are neither TCP nor UDP.
    #[drop]
    NoPorts,
}

impl PerBatch for CopyFlowID {
    type On = on::Ipv4;
    type Local = CopyFlowIDState;
    type Fate = CopyFlowIDExit;
    // There is one first packet.
    const SHARED: bool = true;

    fn batch(&self, state: &mut CopyFlowIDState, port: usize, batch: Batch, cx: &mut Cx) {
        for mut packet in batch {
            let exit = match (flow_of(&packet), port) {
                (None, _) => CopyFlowIDExit::NoPorts,
                (Some(flow), 0) => {
                    if !state.is_set {
                        (state.flow, state.is_set) = (flow, true);
                    }
                    CopyFlowIDExit::Source
                }
                (Some(_), _) => {
                    set_flow(&mut packet, state.flow);
                    CopyFlowIDExit::Copy
                }
            };
            cx.emit(exit, packet);
        }
    }
}
