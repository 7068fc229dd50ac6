//! Segments that the elements of a TCP host make, and the flows of those that they get.

use castanet_element::prelude::*;
use castanet_element::wire::{Ipv4Header, Tcp, ip_proto};
use castanet_kit::ip_flows::Endpoint;

/// The source and the destination of a segment.
pub(super) type SegmentFlow = (Endpoint, Endpoint);

/// No address and no port.
pub(super) const NO_ENDPOINT: Endpoint = (Ipv4Addr::UNSPECIFIED, 0);
/// Window of segments that the elements make.
const WINDOW: u16 = 32_120;
/// Type of service: little delay.
const LOW_DELAY: u8 = 0x10;
const TTL: u8 = 255;

/// The flow of a TCP segment or a UDP datagram over IPv4.
pub(super) fn flow_of(packet: &Packet) -> Option<SegmentFlow> {
    let ip = packet.ipv4_header()?;
    let tcp = packet.tcp_header().map(|tcp| (tcp.src_port(), tcp.dst_port()));
    let ports = || packet.udp_header().map(|udp| (udp.src_port(), udp.dst_port()));
    let (src, dst) = tcp.or_else(ports)?;
    Some(((ip.src(), src), (ip.dst(), dst)))
}

/// The first sequence number of a segment and how many it takes: its bytes of data, and one for SYN or
/// FIN. `None` if it is no TCP segment.
pub(super) fn sequence_of(packet: &Packet) -> Option<(u32, u32)> {
    let tcp = packet.tcp_header()?;
    let flagged = u32::from(tcp.is_syn() || tcp.is_fin());
    Some((tcp.seq(), data_of(packet)?.len() as u32 + flagged))
}

/// The data of a TCP segment.
pub(super) fn data_of(packet: &Packet) -> Option<&[u8]> {
    let (tcp, (_, segment)) = (packet.tcp_header()?, packet.ipv4_segment()?);
    Some(segment.get(tcp.header_len()..).unwrap_or_default())
}

/// Sets the addresses and ports of a TCP segment or a UDP datagram, and no checksum.
pub(super) fn set_flow(packet: &mut Packet, (src, dst): SegmentFlow) {
    if let Some(mut ip) = packet.ipv4() {
        ip.set_src(src.0);
        ip.set_dst(dst.0);
    }
    if let Some(mut tcp) = packet.tcp() {
        tcp.set_src_port(src.1);
        tcp.set_dst_port(dst.1);
    } else if let Some(mut udp) = packet.udp() {
        udp.set_src_port(src.1);
        udp.set_dst_port(dst.1);
    }
}

/// Makes a segment with these flags, sequence and acknowledgment numbers. Its checksums are zero, for elements
/// behind that change it anyhow.
pub(super) fn make_segment(
    (src, dst): SegmentFlow,
    flags: u8,
    (seq, ack): (u32, u32),
    data: &[u8],
    cx: &mut Cx,
) -> Option<Packet> {
    let mut packet = cx.alloc()?;
    let len = Ipv4Header::LEN + Tcp::LEN + data.len();
    let mut ip =
        Ipv4Header::new(ip_proto::TCP, src.0, dst.0, u16::try_from(len).unwrap_or(u16::MAX));
    ip.set_tos(LOW_DELAY);
    ip.set_dont_fragment(true);
    ip.set_ttl(TTL);
    ip.set_checksum(0);
    let mut tcp = Tcp::default();
    tcp.set_src_port(src.1);
    tcp.set_dst_port(dst.1);
    tcp.set_seq(seq);
    tcp.set_ack(ack);
    tcp.set_flags(flags);
    tcp.set_window(WINDOW);
    let bytes = packet.put_back(len);
    let (headers, rest) = bytes.split_at_mut(Ipv4Header::LEN + Tcp::LEN);
    let (ip_bytes, tcp_bytes) = headers.split_at_mut(Ipv4Header::LEN);
    ip_bytes.copy_from_slice(ip.bytes());
    tcp_bytes.copy_from_slice(tcp.bytes());
    rest.copy_from_slice(data);
    packet.set_network_header(0, Ipv4Header::LEN);
    packet.set_dst(dst.0);
    Some(packet)
}
