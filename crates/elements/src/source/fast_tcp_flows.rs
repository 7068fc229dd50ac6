//! `FastTCPFlows`: TCP packets of many flows, at a rate.

use super::flows::{self, Ends, Flow, Length, Made, Next, Pacing, pacing_handlers};
use castanet_engine::prelude::*;
use castanet_engine::wire::tcp::flag;
use castanet_engine::wire::{Ethernet, Ipv4Header, Tcp, ip_proto};

/// Makes Ethernet frames with TCP packets of many flows, at an even rate.
///
/// Each packet is of any of FLOWS flows, which have FLOWSIZE packets: a SYN,
/// data, and a FIN. One that is over begins anew. Ports and first sequence
/// numbers are random. After LIMIT packets a FIN is sent for each flow that is
/// not over. A rate of 0 is as fast as packets are taken, a negative LIMIT none.
/// Frames have 60 bytes at least.
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
#[derive(Clone, Element)]
#[element(room = "source", args = Fields, methods)]
pub struct FastTCPFlows {
    pacing: Pacing,
    flows: u32,
    flowsize: u32,
    dst: Ipv4Addr,
    /// Frames with a SYN, with data and with a FIN.
    frames: [Vec<u8>; 3],
}

#[derive(Args)]
pub struct Fields {
    /// Packets a second; 0 for no limit.
    #[arg]
    rate: u32,
    /// How many packets to make in all; no limit if negative.
    #[arg]
    limit: i64,
    /// Length of the frames.
    #[arg]
    length: Length,
    /// Source's Ethernet address.
    #[arg]
    srceth: MacAddr,
    /// Source's address.
    #[arg]
    srcip: Ipv4Addr,
    /// Destination's Ethernet address.
    #[arg]
    dsteth: MacAddr,
    /// Destination's address.
    #[arg]
    dstip: Ipv4Addr,
    /// How many flows there are at a time.
    #[arg(range = 1..=16777216)]
    flows: u32,
    /// How many packets a flow has.
    #[arg(range = 3..)]
    flowsize: u32,
    /// Whether to make packets.
    #[arg(default = true)]
    active: bool,
}

impl Build for FastTCPFlows {
    type Args = Fields;
    fn build(args: Fields, _: &Setup) -> Result<Self, ArgError> {
        let ends = Ends { ether: (args.srceth, args.dsteth), ip: (args.srcip, args.dstip) };
        let frames = [flag::SYN, flag::PSH | flag::ACK, flag::FIN]
            .map(|flags| tcp_frame(&ends, flags, args.length.0));
        let pacing = Pacing::new(args.rate, args.limit, args.active);
        let Fields { flows, flowsize, dstip: dst, .. } = args;
        Ok(FastTCPFlows { pacing, flows, flowsize, dst, frames })
    }
}

/// A frame with a TCP packet.
fn tcp_frame(ends: &Ends, flags: u8, length: usize) -> Vec<u8> {
    let mut frame = flows::frame(ends, ip_proto::TCP, &[0; Tcp::LEN], length);
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

pacing_handlers!(FastTCPFlows);

impl Source for FastTCPFlows {
    type Local = Made;
    type Fate = ();

    fn ask(&self, made: &mut Made, n: usize, cx: &mut Cx) -> Asked {
        self.pacing.ask(made, n, cx, true, |made, left, cx| {
            let flow = match left {
                0 => made.flows.unfinished(self.flowsize),
                _ => Some(*made.flows.any(self.flows, self.flowsize, cx)),
            };
            let Some(flow) = flow else { return Next::Over };
            self.packet(flow, cx).map_or(Next::Famine, Next::Packet)
        })
    }
}

impl FastTCPFlows {
    /// The packet that a flow has just counted.
    fn packet(&self, flow: Flow, cx: &mut Cx) -> Option<Packet> {
        let which = match flow.sent {
            1 => 0,
            sent if sent == self.flowsize => 2,
            _ => 1,
        };
        let mut packet = flows::packet(&self.frames[which], self.dst, cx)?;
        if let Some(mut tcp) = packet.tcp() {
            let payload = tcp.payload().len() as u32;
            tcp.rewrite_src_port(flow.ports.0);
            tcp.rewrite_dst_port(flow.ports.1);
            tcp.rewrite_seq(flow.number.wrapping_add(payload.wrapping_mul(flow.sent - 1)));
        }
        Some(packet)
    }
}
