//! Drops by rules, and answers to rejected packets: resets of TCP, and ICMP errors.

use crate::burst::HookContext;
use crate::exit::Exit;
use crate::headers::Headers;
use crate::packet_log::Verdict;
use crate::rule::Rejection;
use crate::state::MiddleboxState;
use castanet_kit::rate::TokenBucket;
use castanet_kit::{icmp_error, icmp6_error};
use castanet_packet::Packet;
use castanet_wire::headers::Layer;
use castanet_wire::{
    Ethernet, Icmp, Ipv4Header, Ipv6Header, Tcp, checksum, icmp, icmp6, ip_proto, tcp::flag,
};
use std::net::IpAddr;

/// Answers to rejected packets that a worker sends in a second at most.
const ANSWERS_A_SECOND: u64 = 1000;
/// The longest ICMP error of IPv4 (RFC 1812, 4.3.2.3).
const MAX_ERROR_LEN: usize = 576;

impl HookContext<'_> {
    /// Drops a packet that begins no connection, by `exit`: counts it for its stateless rules.
    pub(crate) fn refuse(
        &self,
        state: &mut MiddleboxState,
        exit: Exit,
        headers: &Headers,
        packet: &mut Packet,
    ) -> Exit {
        let MiddleboxState { matcher, matched_rules, .. } = state;
        let mut dropping = None;
        for &slot in matched_rules.iter() {
            let entry = matcher.slots().entry(slot).filter(|entry| !entry.rule.stateful);
            let Some(drops) = entry.map(|entry| entry.plan.drop.is_some()) else { continue };
            matcher.count(slot, packet.len());
            dropping = dropping.or(Some(slot).filter(|_| drops));
        }
        self.log_refused(state, dropping, packet, headers);
        match dropping.filter(|_| exit == Exit::Rule) {
            Some(slot) => self.drop_by(state, slot, headers, packet),
            None => exit,
        }
    }

    /// Logs a packet that begins no connection for its stateless rules; the one in slot `dropping` drops it, if
    /// one does.
    fn log_refused(
        &self,
        state: &mut MiddleboxState,
        dropping: Option<u32>,
        packet: &Packet,
        headers: &Headers,
    ) {
        let MiddleboxState { matcher, matched_rules, packet_log, .. } = state;
        let slots = matcher.slots();
        let entries = || matched_rules.iter().filter_map(|&slot| slots.entry(slot));
        let own = || entries().filter(|entry| !entry.rule.stateful);
        if own().any(|entry| entry.plan.logs) {
            let plan = dropping.and_then(|slot| Some(&slots.entry(slot)?.plan));
            // Without a rule that drops it, the connection has found no room or no port.
            let verdict = plan.map_or(Verdict::Drop, |plan| Verdict::of(Some(plan)));
            packet_log.add_by(self, own(), verdict, &self.logged(packet, headers));
        }
    }

    /// Drops a packet by the rule in a slot. If the rule rejects, the packet becomes the answer, which
    /// leaves where the packet came from.
    pub(crate) fn drop_by(
        &self,
        state: &mut MiddleboxState,
        slot: u32,
        headers: &Headers,
        packet: &mut Packet,
    ) -> Exit {
        state.matcher.count_drop_of(slot);
        let entry = state.matcher.slots().entry(slot);
        let Some(rejection) = entry.and_then(|entry| entry.plan.rejection) else {
            return Exit::Rule;
        };
        // A frame goes back by its interface; a packet without an Ethernet header may be routed back.
        let own = (self.interfaces.len() == 1 && headers.network == 0).then_some(0);
        let Some(back) = self.interfaces.way_back(self.port).or(own) else { return Exit::Rule };
        let new = || TokenBucket::new(ANSWERS_A_SECOND, ANSWERS_A_SECOND, self.now);
        let answers = state.answers.get_or_insert_with(new);
        answers.fill(self.now);
        let source = self.interfaces.address(self.port, headers.is_ip6);
        if !answers.remove_if(1) || !answer(packet, headers, rejection, source) {
            return Exit::Rule;
        }
        state.rejected += 1;
        Exit::Out(back as u8)
    }
}

/// Turns a packet into the answer to it; `false`, and an unchanged packet, where there may be none:
/// for fragments, errors, resets, groups, and senders that are no single hosts. The answer to a
/// frame goes back to its source station; that to a packet without an Ethernet header has its
/// destination in the annotation. An ICMP error is from the source, else from the packet's destination, as
/// on a bridge; a reset is always from the latter.
fn answer(
    packet: &mut Packet,
    headers: &Headers,
    rejection: Rejection,
    source: Option<IpAddr>,
) -> bool {
    let Some(reply) = reply(packet, headers, rejection, source) else { return false };
    let (link, mark) = (headers.network, packet.network_offset());
    packet.cut(link);
    packet.put_back(reply.len()).copy_from_slice(&reply);
    match (mark, headers.is_ip6) {
        (None, _) => {}
        (Some(at), false) => packet.set_network_header(at, Ipv4Header::LEN),
        (Some(at), true) => packet.set_network_header(at, Ipv6Header::LEN),
    }
    match destination(&reply) {
        _ if link >= Ethernet::LEN => {
            if let Some((ether, _)) = Ethernet::from_prefix_mut(packet.bytes_mut()) {
                ether.mirror();
            }
        }
        Some(IpAddr::V4(address)) => packet.set_dst(address),
        Some(IpAddr::V6(address)) => packet.set_dst6(address),
        None => {}
    }
    true
}

/// The destination of an IP packet.
fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(Ipv4Header::from_prefix(packet)?.0.dst().into()),
        _ => Some(Ipv6Header::from_prefix(packet)?.0.dst().into()),
    }
}

/// The answer to a packet, from its IP header on.
fn reply(
    packet: &Packet,
    headers: &Headers,
    rejection: Rejection,
    source: Option<IpAddr>,
) -> Option<Vec<u8>> {
    if headers.is_fragment {
        return None;
    }
    let bytes = packet.bytes();
    let is_group = headers.network >= Ethernet::LEN && bytes.first()? & 1 != 0;
    let ip = bytes.get(headers.network..headers.end)?;
    let (kind4, code4, code6) = match rejection {
        Rejection::Reset | Rejection::Port => (icmp::UNREACHABLE, 3, 4),
        Rejection::Admin => (icmp::UNREACHABLE, 13, 1),
        Rejection::Host => (icmp::UNREACHABLE, 1, 3),
        Rejection::Net => (icmp::UNREACHABLE, 0, 0),
    };
    match headers.is_ip6 {
        false => icmp_error::check_allowed(ip, kind4, is_group, &[]).ok()?,
        true => icmp6_error::check_allowed(ip, icmp6::UNREACHABLE, code6, is_group).ok()?,
    }
    if rejection == Rejection::Reset && headers.upper == Layer::Tcp {
        let segment = bytes.get(headers.transport..headers.end)?;
        return with_header(ip, None, ip_proto::TCP, reset(segment)?.0.to_vec());
    }
    let (kind, code) = if headers.is_ip6 { (icmp6::UNREACHABLE, code6) } else { (kind4, code4) };
    let quoted = match headers.is_ip6 {
        false => icmp_error::quote_len(ip.len(), MAX_ERROR_LEN, 0),
        true => icmp6_error::quote_len(ip.len(), Icmp::LEN),
    };
    let mut message = vec![0; Icmp::LEN];
    message.extend(&ip[..quoted]);
    let (head, _) = Icmp::from_prefix_mut(&mut message)?;
    head.set_kind(kind);
    head.set_code(code);
    let protocol = if headers.is_ip6 { ip_proto::ICMPV6 } else { ip_proto::ICMP };
    with_header(ip, source, protocol, message)
}

/// The reset that answers a segment (RFC 9293, 3.10.7.1); `None` for a reset.
fn reset(segment: &[u8]) -> Option<Tcp> {
    let (head, behind) = Tcp::from_prefix(segment)?;
    let flags = head.flags();
    if flags & flag::RST != 0 {
        return None;
    }
    let mut answer = Tcp([0; Tcp::LEN]);
    answer.set_src_port(head.dst_port());
    answer.set_dst_port(head.src_port());
    answer.set_header_len(Tcp::LEN);
    if flags & flag::ACK != 0 {
        answer.set_seq(head.ack());
        answer.set_flags(flag::RST);
    } else {
        let options = head.header_len().saturating_sub(Tcp::LEN);
        let data = behind.len().saturating_sub(options) as u32;
        let signs = (flags & (flag::SYN | flag::FIN)).count_ones();
        answer.set_ack(head.seq().wrapping_add(data).wrapping_add(signs));
        answer.set_flags(flag::RST | flag::ACK);
    }
    Some(answer)
}

/// The message behind a header that goes back to the sender of a packet, with its checksum: from `source`, else
/// from the packet's destination.
fn with_header(
    packet: &[u8],
    source: Option<IpAddr>,
    protocol: u8,
    mut message: Vec<u8>,
) -> Option<Vec<u8>> {
    let (header, sum) = match packet.first()? >> 4 {
        4 => {
            let (ip, _) = Ipv4Header::from_prefix(packet)?;
            let (from, to) =
                (if let Some(IpAddr::V4(own)) = source { own } else { ip.dst() }, ip.src());
            let length = (Ipv4Header::LEN + message.len()) as u16;
            let header = Ipv4Header::new(protocol, from, to, length);
            let pseudo = match protocol {
                ip_proto::ICMP => checksum::Sum::new(),
                _ => checksum::pseudo_v4(from, to, protocol, message.len()),
            };
            (header.0.to_vec(), pseudo)
        }
        _ => {
            let (ip, _) = Ipv6Header::from_prefix(packet)?;
            let (from, to) =
                (if let Some(IpAddr::V6(own)) = source { own } else { ip.dst() }, ip.src());
            let header = Ipv6Header::new(protocol, from, to, message.len() as u16);
            (header.0.to_vec(), checksum::pseudo_v6(from, to, protocol, message.len()))
        }
    };
    let sum = sum.slice(&message).checksum();
    let at = if protocol == ip_proto::TCP { Tcp::CHECKSUM } else { Icmp::CHECKSUM };
    message.get_mut(at..at + 2)?.copy_from_slice(&sum.to_be_bytes());
    Some([header, message].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers;
    use crate::tests::packet;
    use castanet_wire::sketch;
    use proptest::prelude::*;

    /// The answer to a packet; `None` without one.
    fn answered(text: &str, rejection: Rejection) -> Option<String> {
        let (mut packet, start) = packet(text);
        let headers = headers::find(&packet).expect("is IP");
        answer(&mut packet, &headers, rejection, None).then(|| sketch::print(packet.bytes(), start))
    }

    #[test]
    fn answers_go_back_with_what_they_answer() {
        let port = Rejection::Port;
        for (text, rejection, wanted) in [
            (
                "eth 2:0:0:0:0:1 > 2:0:0:0:0:2 vlan 7 1.0.0.1:5 > 2.0.0.2:6 tcp syn fin seq 7 \"ab\"",
                Rejection::Reset,
                "eth 02:00:00:00:00:02 > 02:00:00:00:00:01 vlan 7 \
                 2.0.0.2:6 > 1.0.0.1:5 tcp rst ack 11 win 0 ttl 64 len 40",
            ),
            (
                "[1::1]:5 > [2::2]:6 udp \"x\"",
                Rejection::Host,
                "2::2 > 1::1 icmp6 type 1 code 3 [[1::1]:5 > [2::2]:6 udp \"x\"]",
            ),
            (
                "1.0.0.1:5 > 2.0.0.2:6 tcp syn",
                port,
                "2.0.0.2 > 1.0.0.1 icmp type unreachable code 3 [1.0.0.1:5 > 2.0.0.2:6 tcp syn]",
            ),
        ] {
            let normal = |text: &str| {
                let built = sketch::build(text).expect("is a packet");
                sketch::print(&built.bytes, built.layer)
            };
            assert_eq!(answered(text, rejection).as_deref().map(normal), Some(normal(wanted)));
        }
    }

    #[test]
    fn errors_are_no_longer_than_they_may_be() {
        for (text, most) in
            [("1.0.0.1 > 2.0.0.2 udp len 1500", 576), ("1::1 > 2::2 udp len 1500", 1280)]
        {
            let (mut packet, _) = packet(text);
            let headers = headers::find(&packet).expect("is IP");
            assert!(answer(&mut packet, &headers, Rejection::Net, None));
            assert_eq!(packet.len(), most, "{text}");
        }
    }

    #[test]
    fn groups_errors_resets_and_fragments_get_no_answer() {
        for text in [
            "1.0.0.1 > 224.0.0.1 udp",
            "0.0.0.0 > 2.0.0.2 udp",
            "1.0.0.1:5 > 2.0.0.2:6 tcp rst",
            "1.0.0.1 > 2.0.0.2 icmp type unreachable code 3 [2.0.0.2 > 1.0.0.1 udp]",
            "1.0.0.1:5 > 2.0.0.2:6 udp id 1 frag 0+ len 60",
            "1::1 > ff02::1 udp",
            "eth 2:0:0:0:0:1 > ff:ff:ff:ff:ff:ff 1.0.0.1:5 > 2.0.0.2:6 tcp syn",
        ] {
            assert_eq!(answered(text, Rejection::Reset), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_get_a_sound_answer_or_none(
            is_tcp: bool,
            cut in 0..80_usize,
            changes in prop::collection::vec((0..60_usize, any::<u8>()), 0..6),
        ) {
            let upper = if is_tcp { "tcp syn" } else { "udp" };
            let built = sketch::build(&format!("eth 2:0:0:0:0:1 > 2:0:0:0:0:2 1.0.0.1:5 > 2.0.0.2:6 {upper} len 60"));
            let mut bytes = built.expect("is a packet").bytes;
            for (at, byte) in changes {
                bytes.get_mut(at).into_iter().for_each(|it| *it = byte);
            }
            bytes.truncate(cut);
            let mut packet = Packet::from_bytes(&bytes);
            let Some(headers) = headers::find(&packet) else { return Ok(()) };
            if answer(&mut packet, &headers, Rejection::Reset, None) {
                let found = headers::find(&packet).expect("is IP");
                let ip = &packet.bytes()[found.network..];
                prop_assert_eq!(found.end, packet.len());
                if !found.is_ip6 {
                    let (header, _) = Ipv4Header::from_prefix(ip).expect("has a header");
                    prop_assert!(checksum::header_ok(&header.0));
                }
            } else {
                prop_assert_eq!(packet.bytes(), &bytes[..]);
            }
        }
    }
}
