//! `FastUDPFlows`: makes UDP packets of many flows.

use super::flow_source::{self, FlowArgs, FlowOrder, FlowSourceState, NextPacket, Pace};
use super::udp_flow_frame::UdpFlowFrame;
use castanet_element::prelude::*;

/// Generates Ethernet frames with UDP packets of many flows at an even rate.
///
/// Each packet belongs to a random one of FLOWS flows, or to the next one with SEQUENTIAL; after
/// FLOWSIZE packets another flow takes its place. Ports are random; with SEQUENTIAL they count up
/// from random ones. A rate of 0 means as fast as the elements downstream take packets,
/// a negative LIMIT no limit. Frames have 60 bytes at least.
///
/// ```click
/// s :: FastUDPFlows(0, 10, 60, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 3, 2)
///   -> Strip(14) -> CheckIPHeader -> CheckUDPHeader
///   -> f :: IPClassifier(src host 1.0.0.1 and dst host 2.0.0.2) -> c :: Counter -> Discard
/// = s.count 10
/// = c.count 10
/// = c.byte_count 460
/// ! s.limit 12
/// = c.count 12
/// ! s.active false
/// ! s.rate 2
/// ! s.active true
/// + 1100ms
/// = s.count 3
/// ! s.active false
/// ! s.reset
/// = s.rate 0
/// ```
///
/// ```click
/// FastUDPFlows(FLOWSIZE 2, FLOWS 2, DSTIP 2.0.0.2, DSTETH 0:0:0:0:0:2, SRCIP 1.0.0.1, SRCETH 0:0:0:0:0:1,
///     LENGTH 60, LIMIT 8, RATE 0, SEQUENTIAL true, FLOWBURST 2, CHECKSUM false, STOP true)
///   -> Strip(14) -> a :: AggregateIPFlows -> c :: AggregateCounter -> Discard
/// = c.nagg 4
/// = c.count 8
/// ```
///
/// ```click
/// s :: FastUDPFlows(0, 1, 60, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 1, 9)
///   -> c :: Classifier(6/000000000003, 0/000000000004, -) -> a :: Counter -> Discard
/// c[1] -> b :: Counter -> Discard;  c[2] -> other :: Counter -> Discard
/// = s.length 60
/// = s.limit 1
/// = s.stop false
/// ! s.srceth 0:0:0:0:0:3
/// ! s.limit 2
/// = a.byte_count 60
/// ! s.length 100
/// = s.length 100
/// = a.byte_count 260
/// ! s.srceth 0:0:0:0:0:1
/// ! s.dsteth 0:0:0:0:0:4
/// ! s.limit 3
/// = b.byte_count 100
/// = other.count 1
/// ```
#[derive(Clone, Element)]
#[element(room = "source", args = FastUDPFlowsArgs)]
pub struct FastUDPFlows {
    #[flatten]
    pace: Pace,
    flows: u32,
    flowsize: u32,
    order: FlowOrder,
    burst: usize,
    #[flatten]
    frame: UdpFlowFrame,
}

#[derive(Args)]
pub struct FastUDPFlowsArgs {
    #[arg(flatten)]
    common: FlowArgs,
    /// Number of packets per flow.
    #[arg(range = 1..)]
    flowsize: u32,
    /// Maximum number of packets per turn.
    #[arg(keyword, default = 32, range = 1..)]
    burst: usize,
    /// Number of packets in a row that belong to one flow.
    #[arg(keyword, default = 1, range = 1..)]
    flowburst: u32,
    /// Whether packets have a UDP checksum.
    #[arg(keyword, default = true)]
    checksum: bool,
    /// Whether flows follow each other in order, and new ones have the next port numbers.
    #[arg(keyword, default = false)]
    sequential: bool,
    /// An argument of FastClick without effect: packets share no bytes.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    duplicate: bool,
    /// Whether the source makes packets.
    #[arg(keyword, default = true)]
    active: bool,
    /// Whether to stop the router after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
}

impl Build for FastUDPFlows {
    type Args = FastUDPFlowsArgs;
    fn build(args: FastUDPFlowsArgs, _: &Setup) -> Result<Self, ArgError> {
        let (flowsize, common) = (args.flowsize, args.common);
        let frame = UdpFlowFrame::new(common.endpoints(), common.length, args.checksum);
        let pace = Pace::new(common.rate, common.limit, args.active, args.stop);
        let order = FlowOrder { burst: args.flowburst, sequential: args.sequential };
        let (flows, burst) = (common.flows, args.burst);
        Ok(FastUDPFlows { pace, flows, flowsize, order, burst, frame })
    }
}

impl Source for FastUDPFlows {
    type Local = FlowSourceState;
    type Fate = ();

    fn can_take_state(&self, _: &FastUDPFlows) -> bool {
        true // flows are made anew where their number differs
    }

    fn start(&self, state: &mut FlowSourceState, cx: &mut Cx) -> Result<(), ArgError> {
        state.flows.prepare(self.flows, 0, cx);
        Ok(())
    }

    fn produce(&self, state: &mut FlowSourceState, n: usize, cx: &mut Cx) -> NextRun {
        state.lay_out(self.frame.layout);
        state.flows.prepare(self.flows, 0, cx);
        let dst = self.frame.endpoints.ip.1;
        self.pace.emit_due(state, n.min(self.burst), cx, false, |state, _, cx| {
            let Some(mut packet) = flow_source::packet(&self.frame.bytes, dst, cx) else {
                return NextPacket::NoFrame;
            };
            let flow = state.flows.flow_in_order(self.order, self.flowsize, cx);
            UdpFlowFrame::set_flow(&mut packet, flow);
            NextPacket::Packet(packet)
        })
    }
}
