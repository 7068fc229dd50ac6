//! Property tests of rewriters: translation and its inverse, eviction, hostile packets.

use super::*;
use proptest::prelude::*;

/// Every kind of rewriter, with a pattern.
pub(super) const KINDS: [(RewriterKind, &str); 6] = [
    (RewriterKind::TcpUdp, "pattern 9.9.9.9 1000-1003 - - 0 1"),
    (RewriterKind::Tcp, "pattern 9.9.9.9 1000-1003? 3.0.0.3 - 0 1"),
    (RewriterKind::Udp, "keep 0 1"),
    (RewriterKind::SourceAddress, "pattern 9.0.0.0/30 - 0 1"),
    (RewriterKind::AddressPair, "pattern 9.0.0.0/30 3.0.0.3 0 1"),
    (RewriterKind::IcmpEcho, "pattern 9.9.9.9 1000-1003 - - 0 1"),
];

/// A packet between few hosts, of any protocol, whole or a fragment.
pub(super) fn packets() -> impl Strategy<Value = String> {
    let (host, port) = (1..5u8, 1000..1004u16);
    (host.clone(), host, port.clone(), port, 0..6u8).prop_map(|(a, b, c, d, kind)| match kind {
        0 => format!("1.0.0.{a}:{c} > 2.0.0.{b}:{d} udp \"data\""),
        1 => format!("1.0.0.{a}:{c} > 2.0.0.{b}:{d} udp nocheck"),
        2 => format!("1.0.0.{a}:{c} > 2.0.0.{b}:{d} tcp ack 7 tcpopt nop;nop;sack1:2 \"data\""),
        3 => format!("1.0.0.{a} > 2.0.0.{b} icmp type echo ident {c} seq {d}"),
        4 => format!("1.0.0.{a} > 2.0.0.{b} udp frag 1480 id {c}"),
        _ => format!("1.0.0.{a}:{c} > 2.0.0.{b}:{d} tcp ipopt rr{{1.0.0.1}}+2 fin"),
    })
}

proptest! {
    /// Translated packets have correct checksums, no two flows get the same key, and replies
    /// are translated back to the flow.
    #[test]
    fn translating_replies_restores_the_flow(
        case in prop::sample::select(KINDS.to_vec()),
        packets in prop::collection::vec(packets(), 1..60),
    ) {
        let (kind, input) = case;
        let mut it = table(kind, &[input, "drop"], 1000);
        let mut flows: HashMap<Tuple4, Tuple4> = HashMap::new();
        for packet in packets {
            let before = sketch::build(&packet).unwrap().bytes;
            let mut bytes = before.clone();
            let translation = translate_bytes(&mut it, 0, &mut bytes, NOW);
            let Ok(Translation::Rewritten { output, .. }) = translation else {
                prop_assert_eq!(&bytes, &before);
                continue;
            };
            prop_assert_eq!(output, 0);
            let shown = sketch::print(&bytes, sketch::Layer::Network);
            // A sketch prints incorrect checksums.
            prop_assert!(!shown.contains("sum") && !shown.contains("badcheck"), "{}", shown);
            let key = |bytes: &[u8]| {
                let (ip, rest) = Ipv4Header::from_prefix(bytes).unwrap();
                kind.key(ip, ip.split_options(rest).unwrap().1).unwrap().0
            };
            let other = flows.insert(key(&bytes), key(&before));
            prop_assert!(other.is_none_or(|other| other == key(&before)), "{}", packet);
        }
        for (to, flow) in flows {
            let reply = if kind == RewriterKind::SourceAddress {
                Tuple4::new(([0; 4].into(), 0), to.src(), 0)
            } else {
                to.reversed()
            };
            prop_assert_eq!(it.0.lookup(0, reply), Some(flow.reversed()));
        }
    }

    /// Of all best-effort mappings, including the new one, the first to expire is evicted.
    #[test]
    fn the_first_mapping_to_expire_is_evicted(
        guarantee in 0..3u64,
        capacity in 1..12u32,
        packets in prop::collection::vec((0..20u16, 0..6u8, 0..1_500_000_000u64), 1..200),
    ) {
        let mut it = guaranteed_table(capacity, guarantee, "keep 0 1");
        let mut now = NOW;
        for (host, kind, later) in packets {
            now += later;
            let ends = match kind % 3 {
                1 => format!("2.0.0.2:80 > 1.0.0.1:{host}"),
                _ => format!("1.0.0.1:{host} > 2.0.0.2:80"),
            };
            let kinds = ["udp", "udp", "tcp \"data\"", "tcp rst", "tcp \"back\"", "tcp fin"];
            let packet = format!("{ends} {}", kinds[usize::from(kind)]);
            it.0.expire(now, 1000);
            let before: HashMap<Tuple4, (u64, bool)> = it.0.flows.iter().map(|(id, key, mapping)| {
                let end = it.0.flows.deadline(id) / 1_000_000;
                (*key, (end, mapping.guarantee_end(end) <= now / 1_000_000))
            }).collect();
            let passed = translate(&mut it, 0, &packet, now);
            let after: Vec<Tuple4> = it.0.flows.iter().map(|(_, key, _)| *key).collect();
            prop_assert!(after.len() <= capacity as usize);
            let added = after.iter().any(|key| !before.contains_key(key));
            let evicted: Vec<_> = before.iter().filter(|(key, _)| !after.contains(key)).collect();
            let ends = before.values().filter(|it| it.1).map(|it| it.0).min();
            let first = ends.filter(|&end| guarantee > 0 || end <= now / 1_000_000 + 300_000);
            match (&passed, evicted[..].as_ref()) {
                (Err(_), []) => prop_assert!(before.len() == capacity as usize && first.is_none()),
                (Ok(_), []) => prop_assert!(!added || before.len() < capacity as usize),
                // Expired mappings are removed before the table is searched.
                (Ok(_), [(_, (end, _))]) if *end <= now / 1_000_000 => {}
                (Ok(_), [(_, (end, free))]) => prop_assert_eq!((Some(*end), *free), (first, true)),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    /// No content of a packet causes a panic.
    #[test]
    fn hostile_bytes(
        case in prop::sample::select(KINDS.to_vec()),
        packets in prop::collection::vec((packets(), any::<[(u8, u8); 4]>(), 0..80usize), 1..20),
    ) {
        let mut it = table(case.0, &[case.1, "pass 1"], 8);
        for (n, (packet, changes, length)) in packets.into_iter().enumerate() {
            let mut bytes = sketch::build(&packet).unwrap().bytes;
            for (at, value) in changes {
                let at = usize::from(at) % bytes.len();
                bytes[at] = value;
            }
            bytes.truncate(length.max(20));
            // The caller has checked that there is a header.
            bytes[0] = 0x40 | bytes[0].max(5) & 0xf;
            _ = translate_bytes(&mut it, n % 2, &mut bytes, NOW);
            if let Some(quote) = parse_quote(&bytes) {
                let original = it.0.original(0, &quote);
                original.map(|original| rewrite_error(&mut bytes, &original));
            }
            _ = parse_port_command(&bytes);
            _ = replace_data(&bytes, 0..3, b"x");
        }
    }

    #[test]
    fn hostile_errors(
        packet in packets(),
        changes in any::<[(u8, u8); 3]>(),
        case in prop::sample::select(KINDS.to_vec()),
        length in 20..200usize,
    ) {
        let mut it = table(case.0, &[case.1, "drop"], 8);
        let mut sent = sketch::build(&packet).unwrap().bytes;
        _ = translate_bytes(&mut it, 0, &mut sent, NOW);
        let mut error = sketch::build("4.0.0.4 > 9.9.9.9 icmp type unreachable").unwrap().bytes;
        error.extend(&sent);
        for (at, value) in changes {
            let at = 20 + usize::from(at) % (error.len() - 20);
            error[at] = value;
        }
        error.truncate(length);
        if let Some(quote) = parse_quote(&error[20..])
            && let Some(original) = it.0.original(0, &quote)
        {
            rewrite_error(&mut error, &original);
        }
    }
}
