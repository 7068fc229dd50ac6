//! `TCPDemux`: passes on the TCP segments of known connections.

use super::segment::{NO_ENDPOINT, SegmentFlow, flow_of};
use castanet_element::prelude::*;
use std::collections::HashSet;

/// Passes on the TCP segments of the connections that `TCPConn`s behind it have opened or wait for.
///
/// ```click
/// RandomSeed(5)
/// in -> d :: TCPDemux -> [0] c :: TCPConn [0] -> data
/// Idle -> Queue -> [1] c [1] -> Unqueue -> answers;  c[2] -> SetTCPChecksum -> SetIPChecksum -> syn
/// ! c.ctrl listen 2.0.0.2 80
/// > in   1.0.0.1:5 > 2.0.0.2:81 tcp syn seq 9
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp syn seq 9
/// ~ reject packet from unknown flow
/// < syn  2.0.0.2:80 > 1.0.0.1:5 tcp syn seq 590011675 ack 10 win 32120 ttl 255 tos 16 df
/// < data 1.0.0.1:5 > 2.0.0.2:80 tcp syn seq 9
/// = d.drops.unknown 1
/// ```
#[derive(Element)]
#[element(room = "tcp", args = (), ports = "1/1", processing = "h/h")]
pub struct TCPDemux {
    flows: Shared<FlowTable>,
}

impl Build for TCPDemux {
    type Args = ();

    fn build((): (), setup: &Setup) -> Result<Self, ArgError> {
        Ok(TCPDemux { flows: setup.own_shared() })
    }
}

/// The flows of incoming segments that are known. The source, or a part of the destination, may stand for all:
/// 0.0.0.0, port 0.
#[derive(Default)]
pub(super) struct FlowTable {
    flows: HashSet<SegmentFlow>,
}

impl FlowTable {
    /// Adds a flow; returns whether it is new.
    pub(super) fn add(&mut self, flow: SegmentFlow) -> bool {
        self.flows.insert(flow)
    }

    /// Removes a flow.
    pub(super) fn remove(&mut self, flow: SegmentFlow) {
        self.flows.remove(&flow);
    }

    /// Whether segments of a flow are known.
    fn has(&self, (src, dst): SegmentFlow) -> bool {
        let (any, (address, port)) = (NO_ENDPOINT, dst);
        let known = [(src, dst), (any, dst), (any, (any.0, port)), (any, (address, 0)), (any, any)];
        !self.flows.is_empty() && known.iter().any(|flow| self.flows.contains(flow))
    }
}

#[derive(Fate)]
pub enum TCPDemuxExit {
    /// Segments of known connections.
    Known,
    /// Segments of no connection that a TCPConn has opened or waits for.
    #[drop]
    Unknown,
}

impl PerBatch for TCPDemux {
    type On = on::Tcp;
    type Local = ();
    type Fate = TCPDemuxExit;

    fn batch(&self, (): &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        self.flows.with(|table| {
            for packet in batch {
                let exit = match flow_of(&packet).is_some_and(|flow| table.has(flow)) {
                    true => TCPDemuxExit::Known,
                    false => {
                        cx.chatter("reject packet from unknown flow");
                        TCPDemuxExit::Unknown
                    }
                };
                cx.emit(exit, packet);
            }
        });
    }
}
