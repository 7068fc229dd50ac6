//! `FastTCPFlows`: makes TCP packets of many flows.

use super::flow_source::{
    self, Endpoints, Flow, FlowArgs, FlowSourceState, FrameLength, NextPacket, Pace,
};
use castanet_element::prelude::*;
use castanet_element::wire::tcp::flag;
use castanet_element::wire::{Ethernet, Ipv4Header, Tcp, ip_proto};

/// Generates Ethernet frames with TCP packets of many flows at an even rate.
///
/// Each packet belongs to a random one of FLOWS flows. A flow has FLOWSIZE packets: a SYN, data,
/// and a FIN; then another one takes its place. Ports and initial sequence numbers are random.
/// After LIMIT packets the source sends a FIN for each flow that is not complete. A rate of 0 means
/// as fast as the elements downstream take packets, a negative LIMIT no limit. Frames have 60 bytes
/// at least.
///
/// ```click
/// s :: FastTCPFlows(0, 10, 100, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 1, 4)
///   -> Strip(14) -> CheckIPHeader -> CheckTCPHeader
///   -> f :: IPClassifier(syn, fin, -) -> syn :: Counter -> Discard
/// f[1] -> fin :: Counter -> Discard;  f[2] -> data :: Counter -> Discard
/// = s.count 11
/// = syn.count 3
/// = fin.count 3
/// = data.count 5
/// = data.byte_count 430
/// ! s.active false
/// ! s.limit 2
/// ! s.rate 1
/// ! s.active true
/// + 5s
/// = s.count 3
/// ! s.active false
/// ! s.reset
/// = s.rate 0
/// ```
///
/// ```click
/// s :: FastTCPFlows(0, 1, 100, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 1, 3, STOP false)
///   -> c :: Counter -> Discard
/// = s.stop false
/// = c.count 2
/// ```
#[derive(Clone, Element)]
#[element(room = "source", args = FastTCPFlowsArgs)]
pub struct FastTCPFlows {
    #[flatten]
    pace: Pace,
    flows: u32,
    flowsize: u32,
    dst: Ipv4Addr,
    /// Template frames with a SYN, with data and with a FIN.
    frames: [Vec<u8>; 3],
}

#[derive(Args)]
pub struct FastTCPFlowsArgs {
    #[arg(flatten)]
    common: FlowArgs,
    /// Number of packets per flow; fewer than 3 are 3.
    #[arg]
    flowsize: u32,
    /// Whether the source makes packets.
    #[arg(default = true)]
    active: bool,
    /// Whether to stop the router after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
}

/// Packets of the smallest flow: a SYN, data and a FIN.
const MIN_FLOW_SIZE: u32 = 3;

impl Build for FastTCPFlows {
    type Args = FastTCPFlowsArgs;
    fn build(args: FastTCPFlowsArgs, setup: &Setup) -> Result<Self, ArgError> {
        let (flowsize, common) = (args.flowsize.max(MIN_FLOW_SIZE), args.common);
        if flowsize > args.flowsize {
            (setup.warn)("flow size < 3, defaulting to 3".into());
        }
        let endpoints = common.endpoints();
        let frames = [flag::SYN, flag::PSH | flag::ACK, flag::FIN]
            .map(|flags| tcp_frame(&endpoints, flags, common.length));
        let pace = Pace::new(common.rate, common.limit, args.active, args.stop);
        let (flows, dst) = (common.flows, endpoints.ip.1);
        Ok(FastTCPFlows { pace, flows, flowsize, dst, frames })
    }
}

/// A template frame with a TCP segment of these flags.
fn tcp_frame(endpoints: &Endpoints, flags: u8, length: FrameLength) -> Vec<u8> {
    let mut frame = flow_source::frame(endpoints, ip_proto::TCP, &[0; Tcp::LEN], length);
    if let Some((ip, segment)) = Ipv4Header::from_prefix_mut(&mut frame[Ethernet::LEN..]) {
        let len = segment.len();
        if let Some((tcp, payload)) = Tcp::from_prefix_mut(segment) {
            tcp.set_header_len(Tcp::LEN);
            tcp.set_flags(flags);
            tcp.set_window(u16::MAX);
            tcp.update_checksum(ip.pseudo(len), payload);
        }
    }
    frame
}

/// Click draws sequence and acknowledgment numbers of a SYN, of data and of a FIN for each flow.
const DRAWS: u32 = 6;

impl Source for FastTCPFlows {
    type Local = FlowSourceState;
    type Fate = ();

    fn can_take_state(&self, _: &FastTCPFlows) -> bool {
        true // flows are made anew where their number differs
    }

    fn start(&self, state: &mut FlowSourceState, cx: &mut Cx) -> Result<(), ArgError> {
        state.flows.prepare(self.flows, DRAWS, cx);
        Ok(())
    }

    fn produce(&self, state: &mut FlowSourceState, n: usize, cx: &mut Cx) -> NextRun {
        state.flows.prepare(self.flows, DRAWS, cx);
        self.pace.emit_due(state, n, cx, true, |state, left, cx| {
            let flow = match left {
                0 => state.flows.finish_one(self.flowsize),
                _ => Some(*state.flows.random_flow(self.flowsize, cx)),
            };
            let Some(flow) = flow else { return NextPacket::End };
            self.build_packet(flow, cx).map_or(NextPacket::NoFrame, NextPacket::Packet)
        })
    }
}

impl FastTCPFlows {
    /// Builds the next packet of a flow; the flow has counted it.
    fn build_packet(&self, flow: Flow, cx: &mut Cx) -> Option<Packet> {
        let template = match flow.sent {
            1 => 0,
            sent if sent == self.flowsize => 2,
            _ => 1,
        };
        let mut packet = flow_source::packet(&self.frames[template], self.dst, cx)?;
        if let Some(mut tcp) = packet.tcp() {
            let payload = tcp.payload().len() as u32;
            tcp.rewrite_src_port(flow.ports.0);
            tcp.rewrite_dst_port(flow.ports.1);
            tcp.rewrite_seq(flow.initial_seq.wrapping_add(payload.wrapping_mul(flow.sent - 1)));
        }
        Some(packet)
    }
}
