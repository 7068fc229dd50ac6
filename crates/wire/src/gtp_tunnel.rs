//! GTP tunnels over UDP and IPv4, and what says which packets belong into them.

use crate::gtp::{Gtp, user_packet};
use crate::{Icmp, Ipv4Header, Udp, icmp, ip_proto, udp};
use std::net::Ipv4Addr;

/// An address and a port.
pub type End = (Ipv4Addr, u16);

/// One way of a tunnel: who sends to whom, and its identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// Who sends.
    pub src: End,
    /// Who receives.
    pub dst: End,
    /// Tunnel endpoint identifier.
    pub teid: u32,
}

/// Time to live of packets that carry others.
const TTL: u8 = 250;

impl Tunnel {
    /// Length of the headers before a packet in the tunnel.
    pub const OVERHEAD: usize = Ipv4Header::LEN + Udp::LEN + Gtp::LEN;

    /// The tunnel in which an IPv4 packet is, and where in it the packet inside begins; `None` if
    /// it carries no user's packet, or not all of it.
    pub fn of(packet: &[u8]) -> Option<(Tunnel, usize)> {
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

    /// Writes the headers of the tunnel into the first [`Tunnel::OVERHEAD`] bytes of `packet`,
    /// before the packet inside; `None` if it is too long.
    pub fn encapsulate(&self, packet: &mut [u8], id: u16) -> Option<()> {
        let total = u16::try_from(packet.len()).ok()?;
        let (ip_bytes, rest) = packet.split_at_mut_checked(Ipv4Header::LEN)?;
        let (udp_bytes, message) = rest.split_at_mut_checked(Udp::LEN)?;
        let inside = message.len().checked_sub(Gtp::LEN)? as u16;
        message[..Gtp::LEN].copy_from_slice(Gtp::new(self.teid, inside).bytes());
        let mut ip = Ipv4Header::new(ip_proto::UDP, self.src.0, self.dst.0, total);
        ip.set_ttl(TTL);
        ip.set_id(id);
        ip.update_checksum(&[]);
        let mut udp = Udp([0; Udp::LEN]);
        udp.set_src_port(self.src.1);
        udp.set_dst_port(self.dst.1);
        let len = Udp::LEN + message.len();
        udp.set_length(len as u16);
        udp.update_checksum(ip.pseudo(len), message);
        ip_bytes.copy_from_slice(ip.bytes());
        udp_bytes.copy_from_slice(udp.bytes());
        Some(())
    }
}

/// An IPv4 header, and what follows it in the same packet.
fn ipv4(packet: &[u8]) -> Option<(&Ipv4Header, &[u8])> {
    let (ip, _) = Ipv4Header::from_prefix(packet).filter(|(ip, _)| ip.version() == 4)?;
    let body = packet.get(ip.header_len().max(Ipv4Header::LEN)..ip.total_len().into())?;
    Some((ip, body))
}

/// Protocol and ends of a packet; ports are 0 where the protocol has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// IP protocol.
    pub protocol: u8,
    /// Where it comes from.
    pub src: End,
    /// Where it goes.
    pub dst: End,
}

impl Flow {
    /// The flow of an IPv4 packet; all fragments belong to one without ports.
    pub fn of(packet: &[u8]) -> Option<Flow> {
        let (ip, body) = ipv4(packet)?;
        let with_ports = matches!(ip.protocol(), ip_proto::TCP | ip_proto::UDP);
        let ports = udp::ports(body).filter(|_| with_ports && !ip.is_fragment());
        let (sport, dport) = ports.unwrap_or_default();
        let (src, dst) = ((ip.src(), sport), (ip.dst(), dport));
        Some(Flow { protocol: ip.protocol(), src, dst })
    }

    /// That of the packets that answer.
    pub fn reversed(self) -> Flow {
        Flow { src: self.dst, dst: self.src, ..self }
    }
}

/// An ICMP echo request, and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ping {
    /// Who asks.
    pub src: Ipv4Addr,
    /// Who is asked.
    pub dst: Ipv4Addr,
    /// Identifier.
    pub id: u16,
    /// Sequence number.
    pub seq: u16,
}

impl Ping {
    /// Length of the request.
    pub const LEN: usize = 60;

    /// Writes the request.
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

    /// The request that an IPv4 packet replies to.
    pub fn replied(packet: &[u8]) -> Option<Ping> {
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
    fn what_is_put_into_a_tunnel_comes_out_of_it() {
        let inside = bytes("1.0.0.1:5 > 2.0.0.2:6 tcp");
        let (src, dst) = ((Ipv4Addr::new(9, 0, 0, 1), 2152), (Ipv4Addr::new(9, 0, 0, 2), 2153));
        let tunnel = Tunnel { src, dst, teid: 7 };
        let mut packet = [vec![0; Tunnel::OVERHEAD], inside.clone()].concat();
        assert_eq!(tunnel.encapsulate(&mut packet, 3), Some(()));
        let shown = sketch::print(&packet, sketch::Layer::Network);
        assert!(shown.starts_with("9.0.0.1:2152 > 9.0.0.2:2153 udp ttl 250 id 3"), "{shown}");
        assert!(!shown.contains("bad"), "{shown}");
        assert_eq!(Tunnel::of(&packet), Some((tunnel, Tunnel::OVERHEAD)));
        assert_eq!(Tunnel::of(&packet[..packet.len() - 1]), None);
        assert_eq!(Tunnel::of(&inside), None);
        assert_eq!(tunnel.encapsulate(&mut [0; 10], 3), None);
        assert_eq!(tunnel.encapsulate(&mut vec![0; 70000], 3), None);
    }

    #[test]
    fn flows_have_ports_where_there_are_any() {
        let flow = Flow::of(&bytes("1.0.0.1:5 > 2.0.0.2:6 udp")).expect("is one");
        assert_eq!((flow.src.1, flow.dst.1), (5, 6));
        assert_eq!(flow.reversed(), Flow::of(&bytes("2.0.0.2:6 > 1.0.0.1:5 udp")).expect("one"));
        let other = Flow::of(&bytes("1.0.0.1 > 2.0.0.2 icmp")).expect("is one");
        assert_eq!((other.src.1, other.dst.1), (0, 0));
        assert_eq!(Flow::of(&[0x45; 19]), None);
    }

    #[test]
    fn pings_are_known_by_their_replies() {
        let (src, dst) = (Ipv4Addr::new(1, 0, 0, 1), Ipv4Addr::new(2, 0, 0, 2));
        let ping = Ping { src, dst, id: 5, seq: 6 };
        let mut request = [1; Ping::LEN];
        ping.write(&mut request);
        let shown = sketch::print(&request, sketch::Layer::Network);
        assert!(shown.starts_with("1.0.0.1 > 2.0.0.2 icmp echo ident 5 seq 6"), "{shown}");
        assert_eq!(Ping::replied(&request), None);
        let reply = bytes("2.0.0.2 > 1.0.0.1 icmp type 0 ident 5 seq 6");
        assert_eq!(Ping::replied(&reply), Some(ping));
    }
}
