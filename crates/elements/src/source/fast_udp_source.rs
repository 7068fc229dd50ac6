//! `FastUDPSource`: makes UDP packets of one flow.

use super::flow_source::{self, Endpoints, FlowSourceState, FrameLength, NextPacket, Pace};
use castanet_element::args::UdpPort;
use castanet_element::prelude::*;
use castanet_element::wire::{Ethernet, Ipv4Header, Udp, ip_proto};

/// Generates Ethernet frames with UDP packets of one flow at an even rate.
///
/// A rate of 0 means as fast as the elements downstream take packets, a negative LIMIT no limit.
/// With INTERVAL both ports increase by one after that many packets. Frames have 60 bytes at least.
///
/// ```click
/// s :: FastUDPSource(2, 3, 60, 0:0:0:0:0:1, 1.0.0.1, 1234, 0:0:0:0:0:2, 2.0.0.2, 5678, 1, 2) -> out
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1:1234 > 2.0.0.2:5678 udp ttl 250 len 46 ; dst 2.0.0.2
/// + 10s
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1:1234 > 2.0.0.2:5678 udp ttl 250 len 46
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1:1235 > 2.0.0.2:5679 udp ttl 250 len 46
/// = s.count 3
/// = s.rate 3
/// ! s.active false
/// ! s.rate 0
/// ! s.limit 1
/// ! s.active true
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1:1234 > 2.0.0.2:5678 udp ttl 250 len 46
/// = s.count 1
/// ```
///
/// ```click
/// s :: FastUDPSource(LIMIT 1, DPORT domain, STOP false) -> out
/// < out eth 0:0:0:0:0:0 > 0:0:0:0:0:0 127.0.0.1:1000 > 127.0.0.1:53 udp ttl 250 len 50
/// = s.limit 1
/// = s.stop false
/// ```
#[derive(Clone, Element)]
#[element(room = "source", args = FastUDPSourceArgs)]
pub struct FastUDPSource {
    #[flatten]
    pace: Pace,
    interval: u32,
    ports: (u16, u16),
    dst: Ipv4Addr,
    frame: Vec<u8>,
}

#[derive(Args)]
pub struct FastUDPSourceArgs {
    /// Rate in packets per second; no limit if 0.
    #[arg(default = 0)]
    rate: u32,
    /// Total number of packets to make; no limit if negative.
    #[arg(default = -1)]
    limit: i64,
    /// Length of the frames in bytes.
    #[arg(default = FrameLength(64), shown = "64")]
    length: FrameLength,
    /// Source Ethernet address.
    #[arg(default = MacAddr::default(), shown = "0:0:0:0:0:0")]
    srceth: MacAddr,
    /// Source IPv4 address.
    #[arg(default = Ipv4Addr::LOCALHOST, shown = "127.0.0.1")]
    srcip: Ipv4Addr,
    /// Source port.
    #[arg(default = UdpPort(1000), shown = "1000")]
    sport: UdpPort,
    /// Destination Ethernet address.
    #[arg(default = MacAddr::default(), shown = "0:0:0:0:0:0")]
    dsteth: MacAddr,
    /// Destination IPv4 address.
    #[arg(default = Ipv4Addr::LOCALHOST, shown = "127.0.0.1")]
    dstip: Ipv4Addr,
    /// Destination port.
    #[arg(default = UdpPort(1000), shown = "1000")]
    dport: UdpPort,
    /// Whether packets have a UDP checksum.
    #[arg(default = true)]
    checksum: bool,
    /// Number of packets after which the ports increase by one; never if 0.
    #[arg(default = 0)]
    interval: u32,
    /// Whether the source makes packets.
    #[arg(default = true)]
    active: bool,
    /// Whether to stop the router after the last packet.
    #[arg(keyword, default = false)]
    stop: bool,
}

impl Build for FastUDPSource {
    type Args = FastUDPSourceArgs;
    fn build(args: FastUDPSourceArgs, _: &Setup) -> Result<Self, ArgError> {
        let endpoints =
            Endpoints { ether: (args.srceth, args.dsteth), ip: (args.srcip, args.dstip) };
        let ports = (args.sport.0, args.dport.0);
        let frame = udp_frame(&endpoints, ports, args.length, args.checksum);
        let pace = Pace::new(args.rate, args.limit, args.active, args.stop);
        Ok(FastUDPSource { pace, interval: args.interval, ports, dst: args.dstip, frame })
    }
}

/// A template frame with a UDP datagram.
pub(super) fn udp_frame(
    endpoints: &Endpoints,
    ports: (u16, u16),
    length: FrameLength,
    checksum: bool,
) -> Vec<u8> {
    let mut frame = flow_source::frame(endpoints, ip_proto::UDP, &[0; Udp::LEN], length);
    if let Some((ip, segment)) = Ipv4Header::from_prefix_mut(&mut frame[Ethernet::LEN..]) {
        let len = segment.len();
        if let Some((udp, payload)) = Udp::from_prefix_mut(segment) {
            udp.set_src_port(ports.0);
            udp.set_dst_port(ports.1);
            udp.set_length(len as u16);
            if checksum {
                udp.update_checksum(ip.pseudo(len), payload);
            }
        }
    }
    frame
}

/// Sets the ports of a packet and updates its checksum.
#[inline]
pub(super) fn set_ports(packet: &mut Packet, (src, dst): (u16, u16)) {
    if let Some(mut udp) = packet.udp() {
        udp.rewrite_src_port(src);
        udp.rewrite_dst_port(dst);
    }
}

impl Source for FastUDPSource {
    type Local = FlowSourceState;
    type Fate = ();

    fn produce(&self, state: &mut FlowSourceState, n: usize, cx: &mut Cx) -> NextRun {
        self.pace.emit_due(state, n, cx, false, |state, _, cx| {
            let Some(mut packet) = flow_source::packet(&self.frame, self.dst, cx) else {
                return NextPacket::NoFrame;
            };
            let steps =
                state.pace_state.count.checked_div(self.interval.into()).unwrap_or(0) as u16;
            if steps > 0 {
                let (src, dst) = self.ports;
                set_ports(&mut packet, (src.wrapping_add(steps), dst.wrapping_add(steps)));
            }
            NextPacket::Packet(packet)
        })
    }
}
