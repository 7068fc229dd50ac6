//! GTP-U tunnels over UDP and IPv4, and the flows and echo requests that are mapped to them.

use crate::gtp::{Gtp, user_packet};
use crate::{Icmp, Ipv4Header, Udp, icmp, ip_proto, udp};
use std::net::Ipv4Addr;

/// An address and a port.
pub type Endpoint = (Ipv4Addr, u16);

/// One direction of a tunnel: its endpoints and its identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// The sender.
    pub src: Endpoint,
    /// The receiver.
    pub dst: Endpoint,
    /// Tunnel endpoint identifier.
    pub teid: u32,
}

/// TTL of encapsulating packets.
const TTL: u8 = 250;

impl Tunnel {
    /// Length of the encapsulating headers.
    pub const OVERHEAD: usize = Ipv4Header::LEN + Udp::LEN + Gtp::LEN;

    /// The tunnel of an encapsulating IPv4 packet, and the offset of the inner packet. `None` if
    /// the packet does not contain a whole user packet.
    pub fn from_packet(packet: &[u8]) -> Option<(Tunnel, usize)> {
        let (ip, body) = ipv4(packet)?;
        let (udp, message) = Udp::from_prefix(body)?;
        if ip.protocol() != ip_proto::UDP || ip.is_fragment() {
            return None;
        }
        let (teid, start) = user_packet(message)?;
        let (src, dst) = ((ip.src(), udp.src_port()), (ip.dst(), udp.dst_port()));
        let before = ip.header_len() + Udp::LEN;
        Some((Tunnel { src, dst, teid }, before + start))
    }

    /// Writes the encapsulating headers to the first [`Tunnel::OVERHEAD`] bytes of `packet`,
    /// before the inner packet; `None` if `packet` is too long or too short. The UDP header has a
    /// checksum if `checksum` is true.
    pub fn encapsulate(&self, packet: &mut [u8], id: u16, checksum: bool) -> Option<()> {
        let total = u16::try_from(packet.len()).ok()?;
        let (ip_bytes, rest) = packet.split_at_mut_checked(Ipv4Header::LEN)?;
        let (udp_bytes, message) = rest.split_at_mut_checked(Udp::LEN)?;
        let inner = message.len().checked_sub(Gtp::LEN)? as u16;
        message[..Gtp::LEN].copy_from_slice(Gtp::new(self.teid, inner).bytes());
        let mut ip = Ipv4Header::new(ip_proto::UDP, self.src.0, self.dst.0, total);
        ip.set_ttl(TTL);
        ip.set_id(id);
        ip.update_checksum(&[]);
        let mut udp = Udp([0; Udp::LEN]);
        udp.set_src_port(self.src.1);
        udp.set_dst_port(self.dst.1);
        let len = Udp::LEN + message.len();
        udp.set_length(len as u16);
        if checksum {
            udp.update_checksum(ip.pseudo(len), message);
        }
        ip_bytes.copy_from_slice(ip.bytes());
        udp_bytes.copy_from_slice(udp.bytes());
        Some(())
    }
}

/// The IPv4 header of a packet, and the bytes behind it up to the packet's total length.
fn ipv4(packet: &[u8]) -> Option<(&Ipv4Header, &[u8])> {
    let (ip, _) = Ipv4Header::from_prefix(packet).filter(|(ip, _)| ip.version() == 4)?;
    let body = packet.get(ip.header_len().max(Ipv4Header::LEN)..ip.total_len().into())?;
    Some((ip, body))
}

/// Protocol and endpoints of a packet; ports are 0 if the protocol has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// IP protocol.
    pub protocol: u8,
    /// Source.
    pub src: Endpoint,
    /// Destination.
    pub dst: Endpoint,
}

impl Flow {
    /// The flow of an IPv4 packet; fragments have no ports.
    pub fn from_packet(packet: &[u8]) -> Option<Flow> {
        let (ip, body) = ipv4(packet)?;
        let with_ports = matches!(ip.protocol(), ip_proto::TCP | ip_proto::UDP);
        let ports = udp::ports(body).filter(|_| with_ports && !ip.is_fragment());
        let (sport, dport) = ports.unwrap_or_default();
        let (src, dst) = ((ip.src(), sport), (ip.dst(), dport));
        Some(Flow { protocol: ip.protocol(), src, dst })
    }

    /// The flow of the opposite direction.
    pub fn reversed(self) -> Flow {
        Flow { src: self.dst, dst: self.src, ..self }
    }
}

/// An ICMP echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ping {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Identifier.
    pub id: u16,
    /// Sequence number.
    pub seq: u16,
}

impl Ping {
    /// Length of the request in bytes.
    pub const LEN: usize = 60;

    /// Writes the request as an IPv4 packet.
    pub fn write(&self, packet: &mut [u8; Ping::LEN]) {
        packet.fill(0);
        let ip = Ipv4Header::new(ip_proto::ICMP, self.src, self.dst, Ping::LEN as u16);
        let mut request = Icmp([0; Icmp::LEN]);
        request.set_kind(icmp::ECHO);
        request.set_id(self.id);
        request.set_seq(self.seq);
        let (head, body) = packet.split_at_mut(Ipv4Header::LEN);
        let (first, data) = body.split_at_mut(Icmp::LEN);
        request.update_checksum(data);
        head.copy_from_slice(ip.bytes());
        first.copy_from_slice(request.bytes());
    }

    /// The request that an IPv4 packet replies to, if it is an echo reply.
    pub fn from_reply(packet: &[u8]) -> Option<Ping> {
        let (ip, body) = ipv4(packet)?;
        let (reply, _) = Icmp::from_prefix(body)?;
        let is = ip.protocol() == ip_proto::ICMP
            && ip.is_first_fragment()
            && reply.kind() == icmp::ECHO_REPLY;
        is.then(|| Ping { src: ip.dst(), dst: ip.src(), id: reply.id(), seq: reply.seq() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch;

    fn bytes(text: &str) -> Vec<u8> {
        sketch::build(text).expect("is a sketch").bytes
    }

    #[test]
    fn encapsulated_packets_are_recognised() {
        let inner = bytes("1.0.0.1:5 > 2.0.0.2:6 tcp");
        let (src, dst) = ((Ipv4Addr::new(9, 0, 0, 1), 2152), (Ipv4Addr::new(9, 0, 0, 2), 2153));
        let tunnel = Tunnel { src, dst, teid: 7 };
        let mut packet = [vec![0; Tunnel::OVERHEAD], inner.clone()].concat();
        assert_eq!(tunnel.encapsulate(&mut packet, 3, true), Some(()));
        let shown = sketch::print(&packet, sketch::Layer::Network);
        assert!(shown.starts_with("9.0.0.1:2152 > 9.0.0.2:2153 udp ttl 250 id 3"), "{shown}");
        assert!(!shown.contains("bad"), "{shown}");
        assert_eq!(Tunnel::from_packet(&packet), Some((tunnel, Tunnel::OVERHEAD)));
        assert_eq!(Tunnel::from_packet(&packet[..packet.len() - 1]), None);
        assert_eq!(Tunnel::from_packet(&inner), None);
        assert_eq!(tunnel.encapsulate(&mut [0; 10], 3, true), None);
        assert_eq!(tunnel.encapsulate(&mut vec![0; 70000], 3, true), None);
    }

    #[test]
    fn flows_of_tcp_and_udp_have_ports() {
        let flow = Flow::from_packet(&bytes("1.0.0.1:5 > 2.0.0.2:6 udp")).expect("is one");
        assert_eq!((flow.src.1, flow.dst.1), (5, 6));
        assert_eq!(
            flow.reversed(),
            Flow::from_packet(&bytes("2.0.0.2:6 > 1.0.0.1:5 udp")).expect("one")
        );
        let other = Flow::from_packet(&bytes("1.0.0.1 > 2.0.0.2 icmp")).expect("is one");
        assert_eq!((other.src.1, other.dst.1), (0, 0));
        assert_eq!(Flow::from_packet(&[0x45; 19]), None);
    }

    #[test]
    fn echo_replies_identify_their_requests() {
        let (src, dst) = (Ipv4Addr::new(1, 0, 0, 1), Ipv4Addr::new(2, 0, 0, 2));
        let ping = Ping { src, dst, id: 5, seq: 6 };
        let mut request = [1; Ping::LEN];
        ping.write(&mut request);
        let shown = sketch::print(&request, sketch::Layer::Network);
        assert!(shown.starts_with("1.0.0.1 > 2.0.0.2 icmp echo ident 5 seq 6"), "{shown}");
        assert_eq!(Ping::from_reply(&request), None);
        let reply = bytes("2.0.0.2 > 1.0.0.1 icmp type 0 ident 5 seq 6");
        assert_eq!(Ping::from_reply(&reply), Some(ping));
    }
}
