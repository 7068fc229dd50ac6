//! Tests of plain packets: they are translated as all others.

use super::properties::{KINDS, packets};
use super::*;
use proptest::prelude::*;

/// Translates a packet as a plain one; `None` if it is not plain.
fn translate_plain(
    (table, zone): &(Table, u16),
    key: Tuple4,
    bytes: &mut [u8],
    now: u64,
) -> Option<Translation> {
    let (key, slot) = (key.in_zone(*zone), table.find_one(&key.in_zone(*zone)));
    table.plain_translation(*zone, now)?.translate(&key, slot, bytes)
}

/// The reply to a packet.
fn reply(packet: &[u8]) -> Vec<u8> {
    let mut bytes = packet.to_vec();
    let segment = usize::from(bytes[0] & 15) * 4;
    bytes[12..20].rotate_left(4);
    if let Some(ports) = bytes.get_mut(segment..segment + 4) {
        ports.rotate_left(2);
    }
    bytes
}

/// The part of a packet that its IP header counts.
fn datagram(bytes: &[u8]) -> &[u8] {
    let (ip, _) = Ipv4Header::from_prefix(bytes).expect("has a header");
    let length = usize::from(ip.total_len());
    &bytes[..if length < Ipv4Header::LEN { bytes.len() } else { length.min(bytes.len()) }]
}

proptest! {
    /// Whether a packet is plain makes no difference to its key, its translation, its bytes and the
    /// expiry of its mapping.
    #[test]
    fn plain_packets_are_translated_as_all_others(
        (kind, input) in prop::sample::select(KINDS.to_vec()),
        packets in prop::collection::vec(
            (packets(), any::<[(u8, u8); 2]>(), 20..120usize, any::<bool>(), 0..2_000_000_000u64), 1..60
        ),
    ) {
        let mut it = table(kind, &[input, "drop"], 1000);
        let (mut now, mut last) = (NOW, Vec::new());
        for (packet, changes, length, is_changed, later) in packets {
            now += later;
            it.0.expire(now, 1000);
            let mut bytes = sketch::build(&packet).unwrap().bytes;
            if is_changed {
                for (at, value) in changes {
                    let at = usize::from(at) % bytes.len();
                    bytes[at] = value;
                }
                bytes[0] = 0x40 | bytes[0].max(5) & 0xf;
                bytes.truncate(length);
            }
            // The packet, and the reply to the one before it as it was translated.
            let before = Some(&last).filter(|last| !last.is_empty()).map(|last| reply(last));
            for bytes in before.iter().chain([&bytes]) {
                let bytes = datagram(bytes).to_vec();
                let (ip, rest) = Ipv4Header::from_prefix(&bytes).unwrap();
                let segment = rest.get(ip.header_len().max(20) - 20..).unwrap_or_default();
                let known = kind.key(ip, segment);
                prop_assert_eq!(kind.key_of(&bytes), known);
                if let Some((key, may_open)) = known {
                    let (mut plain, mut other) = (bytes.clone(), bytes.clone());
                    let translation = translate_plain(&it, key, &mut plain, now);
                    let ends = |it: &(Table, u16)| -> Vec<u64> {
                        it.0.flows.iter().map(|(id, ..)| it.0.flows.deadline(id)).collect()
                    };
                    let before = ends(&it);
                    let key = key.in_zone(it.1);
                    let slot = it.0.find_one(&key);
                    let info = PacketInfo { input: 0, key, may_open, slot, anno: 0, now };
                    match translation {
                        None => prop_assert_eq!(&plain, &bytes),
                        Some(translation) => {
                            let all = it.0.translate_shared(it.1, info, &mut other);
                            prop_assert_eq!(all, Ok(Ok(translation)));
                            prop_assert_eq!(&plain, &other);
                            prop_assert_eq!(ends(&it), before);
                        }
                    }
                }
                last = bytes;
                _ = translate_bytes(&mut it, 0, &mut last, now);
            }
        }
    }
}

#[test]
fn packets_that_change_no_state_are_plain() {
    let mut it = table(RewriterKind::TcpUdp, &["pattern 9.9.9.9 1000 - - 0 1"], 1000);
    let mut is_plain = |packet: &str| {
        let mut bytes = sketch::build(packet).unwrap().bytes;
        let (key, _) = RewriterKind::TcpUdp.key_of(&bytes).expect("has ports");
        let translation = translate_plain(&it, key, &mut bytes.clone(), NOW);
        let translated = translate_bytes(&mut it, 0, &mut bytes, NOW);
        assert!(translation.is_none_or(|translation| translated == Ok(translation)));
        translation.is_some()
    };
    let (udp, back) = ("1.0.0.1:5 > 2.0.0.2:6 udp", "2.0.0.2:6 > 9.9.9.9:1000 udp");
    let found = [udp, udp, udp, back, back, udp, back].map(&mut is_plain);
    assert_eq!(found, [false, false, false, false, true, true, true]);
    let [syn, data, fin] = ["syn", "ack 5 \"data\"", "fin ack 5"]
        .map(|flags| format!("1.0.0.1:5 > 2.0.0.2:6 tcp {flags}"));
    let found = [&syn, &syn, &data, &data, &fin, &fin].map(|packet| is_plain(packet));
    assert_eq!(found, [false, true, false, true, false, true]);
    // The length of one that the device is to segment.
    assert!(is_plain("1.0.0.1:5 > 2.0.0.2:6 udp iplen 0"));
    // Options, and fragments.
    assert!(!is_plain("1.0.0.1:5 > 2.0.0.2:6 udp ipopt rr{1.0.0.1}+2"));
    assert!(!is_plain("1.0.0.1:5 > 2.0.0.2:6 udp frag 0+"));
}

#[test]
fn packets_of_expired_and_of_shifted_mappings_are_not_plain() {
    let mut it = table(RewriterKind::TcpUdp, &["pattern 9.9.9.9 1000 - - 0 1"], 1000);
    let mut bytes = sketch::build("1.0.0.1:5 > 2.0.0.2:6 tcp ack 5").unwrap().bytes;
    let (key, _) = RewriterKind::TcpUdp.key_of(&bytes).expect("has ports");
    translate_bytes(&mut it, 0, &mut bytes.clone(), NOW).expect("opens a mapping");
    let mut translation = |it: &_, now| translate_plain(it, key, &mut bytes, now);
    assert!(translation(&it, NOW + 3601 * SECOND).is_none());
    assert!(translation(&it, NOW).is_some());
    let id = it.0.flows.iter().next().expect("is there").0;
    it.0.flows.get_mut(id).shifts();
    assert!(translation(&it, NOW).is_none());
}
