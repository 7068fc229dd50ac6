//! `DynamicUDPIPEncap`: prepends UDP and IPv4 headers whose ports count up.

use super::headers;
use crate::ip::encap::EncapExit;
use castanet_element::args::UdpPort;
use castanet_element::prelude::*;

/// Prepends UDP and IPv4 headers to each packet, with ports that count up.
///
/// After every INTERVAL packets both ports are one higher; 65535 is followed by
/// 0. With INTERVAL 0 they stay as they are. The
/// element sets the destination annotation to DST, and counts the
/// identifications of the IPv4 headers from 0. `UDPIPEncap` has constant ports.
///
/// ```click
/// in -> e :: DynamicUDPIPEncap(1.0.0.1, 1234, 2.0.0.2, 65535, true, 2) -> out
/// > in  hex 61 62 63
/// > in  hex 61
/// > in  hex
/// < out 1.0.0.1:1234 > 2.0.0.2:65535 udp ttl 250 "abc" ; dst 2.0.0.2 network 0
/// < out 1.0.0.1:1234 > 2.0.0.2:65535 udp ttl 250 id 1 "a"
/// < out 1.0.0.1:1235 > 2.0.0.2:0 udp ttl 250 id 2
/// > in  1.0.0.1 > 2.0.0.2 udp len 65508
/// = e.drops.too_long 1
/// > in  hex 62
/// > in  hex 63
/// < out 1.0.0.1:1235 > 2.0.0.2:0 udp ttl 250 id 3 "b"
/// < out 1.0.0.1:1236 > 2.0.0.2:1 udp ttl 250 id 4 "c"
/// ```
/// ```click
/// in -> DynamicUDPIPEncap(1.0.0.1, 1234, 2.0.0.2, 53, CHECKSUM false) -> out
/// > in  hex 61
/// > in  hex 62
/// < out 1.0.0.1:1234 > 2.0.0.2:53 udp ttl 250 nocheck "a"
/// < out 1.0.0.1:1234 > 2.0.0.2:53 udp ttl 250 id 1 nocheck "b"
/// ```
#[derive(Element)]
#[element(room = "udp", gives = "ip", headers = Gives(FirstHeader::Ip, MarkedHeader::Ip))]
pub struct DynamicUDPIPEncap {
    /// Source address.
    #[arg]
    src: Ipv4Addr,
    /// Source port of the first packets.
    #[arg]
    sport: UdpPort,
    /// Destination address.
    #[arg]
    dst: Ipv4Addr,
    /// Destination port of the first packets.
    #[arg]
    dport: UdpPort,
    /// Whether to compute the UDP checksum.
    #[arg(default = true)]
    checksum: bool,
    /// Number of packets with the same ports; 0 for all packets.
    #[arg(default = 0)]
    interval: u32,
}

/// Number of packets so far.
#[derive(Default, Local)]
pub struct PortCounter {
    /// Identification of the next packet.
    next_id: u16,
    /// Number of packets with the present ports.
    count: u32,
    /// Difference of the present ports to the first ones.
    step: u16,
}

impl PerPacket for DynamicUDPIPEncap {
    type On = on::Any;
    type Local = PortCounter;
    type Fate = EncapExit;
    // All workers share one sequence.
    const SHARED: bool = true;

    fn packet(&self, state: &mut PortCounter, packet: &mut Packet) -> EncapExit {
        let Some(len) = headers::total_len(packet) else { return EncapExit::TooLong };
        let (id, step) = (state.next_id, state.step);
        state.count_packet(self.interval);
        let ports = (self.sport.0.wrapping_add(step), self.dport.0.wrapping_add(step));
        packet.set_dst(self.dst);
        let (src, dst) = ((self.src, ports.0), (self.dst, ports.1));
        headers::push(packet, src, dst, (len, id), self.checksum)
    }
}

impl PortCounter {
    /// Counts a packet, and goes to the next ports if it is the last with the present ones.
    fn count_packet(&mut self, interval: u32) {
        self.next_id = self.next_id.wrapping_add(1);
        self.count = self.count.wrapping_add(1);
        if interval > 0 && self.count >= interval {
            self.count = 0;
            self.step = self.step.wrapping_add(1);
        }
    }
}
