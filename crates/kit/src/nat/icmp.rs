//! ICMP errors about packets that were rewritten: they quote what was sent, and are to be about
//! what that was before.

use super::by::{By, echo};
use super::{Table, Tuple4};
use castanet_wire::checksum::{Delta, Sum};
use castanet_wire::{Icmp, Ipv4Header, Tcp, icmp, ip_proto, transport, udp};
use std::net::Ipv4Addr;

/// What an error quotes.
#[derive(Clone, Copy, Debug)]
pub struct Quote {
    /// What a reply to it would look like.
    reply: Tuple4,
    /// Whether its ports, or its identifier, are there.
    whole: bool,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    /// TCP's sequence number.
    seq: Option<u32>,
}

/// The packet that was quoted, as it was before it was rewritten.
#[derive(Clone, Copy, Debug)]
pub struct Restored {
    src: Ipv4Addr,
    dst: Ipv4Addr,
    /// The ports, or the identifier first, where the rewriter goes by these.
    ports: Option<(u16, u16)>,
    seq: Option<u32>,
    /// Where replies to it go: so also errors.
    pub output: u8,
    /// The annotation that replies get, if this is about one that goes back.
    pub anno: Option<u8>,
}

/// What the message quotes, if it is an error about a packet of IPv4.
pub fn quote(message: &[u8]) -> Option<Quote> {
    let (error, quoted) = Icmp::from_prefix(message).filter(|(it, _)| it.is_error())?;
    let _ = error;
    let (ip, rest) = Ipv4Header::from_prefix(quoted)?;
    let (_, segment) = ip.split_options(rest).or_else(|| {
        // Options that are cut off: there are no ports then.
        (ip.header_len() >= Ipv4Header::LEN).then_some((&[][..], &[][..]))
    })?;
    if ip.version() != 4 {
        return None;
    }
    let (src, dst, protocol) = (ip.src(), ip.dst(), ip.protocol());
    let segment = if ip.is_first_fragment() { segment } else { &[] };
    let ends = match protocol {
        ip_proto::TCP | ip_proto::UDP | ip_proto::DCCP if segment.len() >= transport::PORTS_LEN => {
            udp::ports(segment).map(|(from, to)| Tuple4::new((dst, to), (src, from), protocol))
        }
        ip_proto::ICMP => Icmp::from_prefix(segment).and_then(|(it, _)| match it.kind() {
            icmp::ECHO => Some(echo(src, dst, it.id()).reversed()),
            icmp::ECHO_REPLY => Some(echo(dst, src, it.id())),
            _ => None,
        }),
        _ => None,
    };
    // So much of TCP is always quoted, while the rest of its header may not be.
    let seq = segment.get(Tcp::SEQ..).and_then(|bytes| bytes.first_chunk());
    let seq = seq.filter(|_| protocol == ip_proto::TCP).map(|bytes| u32::from_be_bytes(*bytes));
    let reply = ends.unwrap_or(Tuple4::new((dst, 0), (src, 0), protocol));
    Some(Quote { reply, whole: ends.is_some(), src, dst, seq })
}

impl Table {
    /// What the quoted packet was before a member rewrote it.
    pub fn restore(&self, zone: u16, quote: &Quote) -> Option<Restored> {
        let by = self.members.get(usize::from(zone))?.rules.by;
        let protocol = quote.reply.proto();
        let keys = match by {
            By::Source => {
                let reply = Ipv4Header::new(protocol, quote.dst, quote.src, 0);
                [by.of(quote.reply), by.other_key(&reply.0, 0)]
            }
            By::Pair => [by.of(quote.reply), None],
            By::Echo => [(quote.whole && protocol == ip_proto::ICMP).then_some(quote.reply), None],
            By::Both | By::Tcp | By::Udp => [by.of(quote.reply).filter(|_| quote.whole), None],
        };
        let found = keys.into_iter().flatten().find_map(|key| self.find(&key.in_zone(zone)));
        let ((id, back), flows) = (found?, self.flows.as_ref()?);
        let (key, mapping) = (*flows.key(id), flows.get(id));
        // What was found is replies: a reply comes in as the flow's other side looks.
        let before = if back { key } else { mapping.back.unwrap_or(key) };
        let (src, dst) = match (by, back) {
            (By::Source, true) => ((before.src().0, 0), (quote.dst, 0)),
            (By::Source, false) => ((quote.src, 0), (before.dst().0, 0)),
            _ => (before.src(), before.dst()),
        };
        let ports = match (by, back) {
            (By::Source | By::Pair, _) => None,
            (By::Echo, false) => Some((dst.1, 0)),
            _ => Some((src.1, dst.1)),
        };
        Some(Restored {
            src: src.0,
            dst: dst.0,
            ports,
            seq: quote.seq.map(|seq| mapping.unshifted(!back, seq)),
            output: mapping.outputs[usize::from(back)],
            anno: back.then_some(mapping.anno),
        })
    }
}

/// Makes an error be about the packet as it was before, and go to who had sent that. Who sent the
/// error stays, unless that is the packet's receiver by the address that it was given.
pub fn restore(datagram: &mut [u8], quote: &Quote, restored: &Restored) -> Option<Ipv4Addr> {
    let (ip, rest) = Ipv4Header::from_prefix_mut(datagram)?;
    let mut receiver = None;
    if ip.dst() == quote.src {
        ip.rewrite_dst(restored.src);
        receiver = Some(restored.src);
    }
    if ip.src() == quote.dst {
        ip.rewrite_src(restored.dst);
    }
    let options = ip.header_len().checked_sub(Ipv4Header::LEN)?;
    let (message, quoted) = Icmp::from_prefix_mut(rest.get_mut(options..)?)?;
    // What changes lies in the first bytes, headers with options; the sum of all others stays.
    const HEADERS: usize = 60 + 20;
    let length = quoted.len().min(HEADERS);
    let before = Sum::new().slice(&quoted[..length]);
    rewrite_quoted(quoted, quote, restored);
    message.adjust_checksum(Delta::new().sum(before, Sum::new().slice(&quoted[..length])));
    receiver
}

fn rewrite_quoted(quoted: &mut [u8], quote: &Quote, restored: &Restored) -> Option<()> {
    let (ip, rest) = Ipv4Header::from_prefix_mut(quoted)?;
    let addresses = ip.rewrite_src(restored.src).and(ip.rewrite_dst(restored.dst));
    if !ip.is_first_fragment() {
        return None;
    }
    let options = ip.header_len().checked_sub(Ipv4Header::LEN)?;
    let segment = rest.get_mut(options..)?;
    if ip.protocol() == ip_proto::ICMP {
        let (echo, _) = Icmp::from_prefix_mut(segment).filter(|_| quote.whole)?;
        echo.rewrite_id(restored.ports?.0);
        return Some(());
    }
    let mut delta = addresses;
    if let Some((src, dst)) = restored.ports {
        let (from, to) = udp::ports(segment)?;
        delta = delta.u16(from, src).u16(to, dst);
        transport::set_ports(segment, src, dst);
    }
    if let (Some(old), Some(new)) = (quote.seq, restored.seq)
        && let Some(bytes) = segment.get_mut(Tcp::SEQ..)?.first_chunk_mut()
    {
        delta = delta.u32(old, new);
        *bytes = new.to_be_bytes();
    }
    transport::adjust_checksum(ip.protocol(), segment, delta);
    Some(())
}
