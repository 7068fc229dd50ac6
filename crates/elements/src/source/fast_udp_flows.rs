//! `FastUDPFlows`: UDP packets of many flows, at a rate.

use super::fast_udp_source::{set_ports, udp_frame};
use super::flows::{self, Ends, Length, Made, Next, Pacing, pacing_handlers};
use castanet_engine::prelude::*;

/// Makes Ethernet frames with UDP packets of many flows, at an even rate.
///
/// Each packet is of any of FLOWS flows; one that has had FLOWSIZE packets
/// begins anew. Ports are random. A rate of 0 is as fast as packets are taken, a
/// negative LIMIT none. Frames have 60 bytes at least.
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
#[derive(Clone, Element)]
#[element(room = "source", args = Fields, methods)]
pub struct FastUDPFlows {
    pacing: Pacing,
    flows: u32,
    flowsize: u32,
    dst: Ipv4Addr,
    frame: Vec<u8>,
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
    #[arg(range = 1..)]
    flowsize: u32,
    /// Whether packets have a UDP checksum.
    #[arg(default = true)]
    checksum: bool,
    /// Whether to make packets.
    #[arg(default = true)]
    active: bool,
}

impl Build for FastUDPFlows {
    type Args = Fields;
    fn build(args: Fields, _: &Setup) -> Result<Self, ArgError> {
        let ends = Ends { ether: (args.srceth, args.dsteth), ip: (args.srcip, args.dstip) };
        let frame = udp_frame(&ends, (0, 0), args.length.0, args.checksum);
        let pacing = Pacing::new(args.rate, args.limit, args.active);
        let Fields { flows, flowsize, dstip: dst, .. } = args;
        Ok(FastUDPFlows { pacing, flows, flowsize, dst, frame })
    }
}

pacing_handlers!(FastUDPFlows);

impl Source for FastUDPFlows {
    type Local = Made;
    type Fate = ();

    fn ask(&self, made: &mut Made, n: usize, cx: &mut Cx) -> Asked {
        self.pacing.ask(made, n, cx, false, |made, _, cx| {
            let Some(mut packet) = flows::packet(&self.frame, self.dst, cx) else {
                return Next::Famine;
            };
            set_ports(&mut packet, made.flows.any(self.flows, self.flowsize, cx).ports);
            Next::Packet(packet)
        })
    }
}
