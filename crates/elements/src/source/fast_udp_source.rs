//! `FastUDPSource`: UDP packets of one flow, at a rate.

use super::flows::{self, Ends, Length, Made, Next, Pacing, pacing_handlers};
use castanet_engine::prelude::*;
use castanet_engine::wire::{Ethernet, Ipv4Header, Udp, ip_proto};

/// Makes Ethernet frames with UDP packets of one flow, at an even rate.
///
/// A rate of 0 is as fast as they are taken, a negative LIMIT none. With
/// INTERVAL both ports go up by one after so many packets. Frames have 60 bytes
/// at least.
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
#[derive(Clone, Element)]
#[element(room = "source", args = Fields, methods)]
pub struct FastUDPSource {
    pacing: Pacing,
    interval: u32,
    ports: (u16, u16),
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
    /// Source port.
    #[arg]
    sport: u16,
    /// Destination's Ethernet address.
    #[arg]
    dsteth: MacAddr,
    /// Destination's address.
    #[arg]
    dstip: Ipv4Addr,
    /// Destination port.
    #[arg]
    dport: u16,
    /// Whether packets have a UDP checksum.
    #[arg(default = true)]
    checksum: bool,
    /// After how many packets the ports go up; 0 for never.
    #[arg(default = 0)]
    interval: u32,
    /// Whether to make packets.
    #[arg(default = true)]
    active: bool,
}

impl Build for FastUDPSource {
    type Args = Fields;
    fn build(args: Fields, _: &Setup) -> Result<Self, ArgError> {
        let ends = Ends { ether: (args.srceth, args.dsteth), ip: (args.srcip, args.dstip) };
        let ports = (args.sport, args.dport);
        let frame = udp_frame(&ends, ports, args.length.0, args.checksum);
        let pacing = Pacing::new(args.rate, args.limit, args.active);
        Ok(FastUDPSource { pacing, interval: args.interval, ports, dst: args.dstip, frame })
    }
}

/// A frame with a UDP packet.
pub(super) fn udp_frame(ends: &Ends, ports: (u16, u16), length: usize, checksum: bool) -> Vec<u8> {
    let mut frame = flows::frame(ends, ip_proto::UDP, &[0; Udp::LEN], length);
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

/// Gives a packet other ports.
#[inline]
pub(super) fn set_ports(packet: &mut Packet, (src, dst): (u16, u16)) {
    if let Some(mut udp) = packet.udp() {
        udp.rewrite_src_port(src);
        udp.rewrite_dst_port(dst);
    }
}

pacing_handlers!(FastUDPSource);

impl Source for FastUDPSource {
    type Local = Made;
    type Fate = ();

    fn ask(&self, made: &mut Made, n: usize, cx: &mut Cx) -> Asked {
        self.pacing.ask(made, n, cx, false, |made, _, cx| {
            let Some(mut packet) = flows::packet(&self.frame, self.dst, cx) else {
                return Next::Famine;
            };
            let steps = made.pace.count.checked_div(self.interval.into()).unwrap_or(0) as u16;
            if steps > 0 {
                let (src, dst) = self.ports;
                set_ports(&mut packet, (src.wrapping_add(steps), dst.wrapping_add(steps)));
            }
            Next::Packet(packet)
        })
    }
}
