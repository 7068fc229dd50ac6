//! Tests of admission: fragments in any order, from any sender.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;
use std::net::Ipv4Addr;

type Table = FragmentTracker<u32>;

fn key(id: u16) -> DatagramKey {
    let mut ip = Ipv4Header::new(17, Ipv4Addr::new(1, 0, 0, 1), Ipv4Addr::new(2, 0, 0, 2), 20);
    ip.set_id(id);
    DatagramKey::v4(&ip)
}

fn key6(id: u32) -> DatagramKey {
    DatagramKey::v6(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED, id)
}

fn fragment(start: usize, length: usize, more: bool) -> Fragment {
    let head = (start == 0).then(|| head(7));
    Fragment { start, length, more, protocol: ip_proto::UDP, head }
}

fn head(byte: u8) -> HeaderChain {
    HeaderChain { protocol: ip_proto::UDP, bytes: [byte; 8].into() }
}

fn first(byte: u8) -> Fragment {
    Fragment { head: Some(head(byte)), ..fragment(0, 24, true) }
}

const OVERLAP: Admission = Admission::Refused(Refusal::Overlap);
const TINY: Admission = Admission::Refused(Refusal::Tiny);

#[test]
fn later_fragments_follow_the_first() {
    let mut table = Table::default();
    assert_eq!(table.admit(key(1), &fragment(0, 24, true), 0), Admission::First);
    assert!(table.set_verdict(key(1), None).is_empty());
    let follows = Admission::Later(head(7));
    assert_eq!(table.admit(key(2), &fragment(24, 8, true), 0), Admission::Pending, "another's");
    assert_eq!(table.admit(key(1), &fragment(32, 8, false), 0), follows);
    assert_eq!(table.admit(key(1), &fragment(32, 8, false), 0), follows, "once more");
    assert_eq!(table.admit(key(1), &fragment(24, 8, true), 0), follows);
    // The datagram is complete: the identification may be used again.
    assert_eq!((table.len(), table.admit(key(1), &first(8), 0)), (1, Admission::First));
    table.set_verdict(key(1), Some(250));
    let denied = Admission::Refused(Refusal::Denied(250));
    assert_eq!(table.admit(key(1), &fragment(24, 8, true), 0), denied);
    assert_eq!(table.admit(key(1), &first(8), 0), denied);
}

#[test]
fn fragments_before_the_first_are_queued() {
    let mut table = Table::default();
    for (n, start) in [(1, 40), (2, 24), (3, 32)] {
        assert_eq!(table.admit(key(1), &fragment(start, 8, start < 40), 0), Admission::Pending);
        table.push(key(1), n);
    }
    assert_eq!(table.queued(), 3);
    assert_eq!(table.admit(key(1), &fragment(0, 24, true), SECOND), Admission::First);
    assert_eq!(table.set_verdict(key(1), None), [1, 2, 3]);
    assert!(table.is_empty() && table.queued() == 0, "it is whole");
    // The first fragment of this one does not come.
    assert_eq!(table.admit(key(2), &fragment(24, 8, true), SECOND), Admission::Pending);
    table.push(key(2), 4);
    assert!(table.expire(5 * SECOND, 9) && table.is_empty());
    assert_eq!(table.take_dropped(), [(4, Refusal::NoFirst)]);
}

#[test]
fn overlapping_fragments_are_refused_with_their_datagram() {
    for second in [
        fragment(16, 16, true),
        fragment(8, 8, true),
        fragment(16, 8, false),
        first(8),
        fragment(0, 16, true),
        fragment(0, 32, true),
    ] {
        for key in [key(1), key6(1)] {
            let mut table = Table::default();
            assert_eq!(table.admit(key, &fragment(0, 24, true), 0), Admission::First);
            table.set_verdict(key, None);
            assert_eq!(table.admit(key, &second, 0), OVERLAP, "{second:?}");
            assert_eq!(table.admit(key, &fragment(24, 8, true), 0), OVERLAP, "all of it");
            // The same if the first fragment comes second.
            let mut table = Table::default();
            if second.start > 0 {
                assert_eq!(table.admit(key, &second, 0), Admission::Pending);
                table.push(key, 1);
                assert_eq!(table.admit(key, &fragment(0, 24, true), 0), OVERLAP);
                assert_eq!(table.take_dropped(), [(1, Refusal::Overlap)]);
                assert_eq!(table.queued(), 0);
            }
        }
    }
    // Two ends, a fragment behind the end, and an end before a fragment.
    for pair in [[(64, false), (72, false)], [(64, false), (72, true)], [(72, true), (64, false)]] {
        let mut table = Table::default();
        let [a, b] = pair.map(|(start, more)| table.admit(key(1), &fragment(start, 8, more), 0));
        assert_eq!((a, b), (Admission::Pending, OVERLAP), "{pair:?}");
    }
}

#[test]
fn fragments_that_split_headers_are_refused() {
    let mut table = Table::default();
    let tcp = |start, head| Fragment { protocol: ip_proto::TCP, head, ..fragment(start, 16, true) };
    for (id, tiny) in [tcp(0, None), tcp(8, None), tcp(16, None)].into_iter().enumerate() {
        assert_eq!(table.admit(key6(id as u32), &tiny, 0), TINY);
        assert_eq!(table.admit(key6(id as u32), &tcp(24, None), 0), TINY, "all of it");
    }
    assert_eq!(table.admit(key(1), &tcp(24, None), 0), Admission::Pending);
    let mut segment = [0; 60];
    for (offset, length) in [(5, 20), (6, 24), (15, 60), (0, 20)] {
        segment[Tcp::OFFSET_BYTE] = offset << 4;
        assert_eq!(header_len(ip_proto::TCP, &segment), Some(length));
        assert_eq!(header_len(ip_proto::TCP, &segment[..length - 1]), None);
    }
    let lengths = [ip_proto::UDP, ip_proto::ICMP, 99].map(|it| header_len(it, &segment[..8]));
    assert_eq!(lengths, [Some(8), Some(8), Some(0)]);
    assert_eq!(header_len(ip_proto::UDP, &segment[..7]), None);
    assert_eq!(HeaderChain::new(6, &segment, 20).map(|it| it.bytes.len()), Some(60));
    assert_eq!(HeaderChain::new(6, &[0; 600], 520), None);
}

#[test]
fn ipv4_identifications_are_reused() {
    let limits = Limits::default();
    for (key, expected) in [(key(1), Admission::First), (key6(1), OVERLAP)] {
        let mut table = Table::default();
        table.admit(key, &first(1), 0);
        table.set_verdict(key, None);
        assert_eq!(table.admit(key, &first(2), limits.reuse), expected);
    }
    let mut table = Table::default();
    assert_eq!(table.admit(key(1), &first(1), 0), Admission::First);
    assert_eq!(table.admit(key(1), &first(2), limits.reuse - 1), OVERLAP);
    assert_eq!(table.admit(key(1), &fragment(24, 8, true), limits.reuse), OVERLAP);
    assert_eq!(table.admit(key(1), &first(2), limits.reuse), Admission::First);
    let all = limits.timeout + 2 * SECOND;
    assert_eq!(table.admit(key(1), &fragment(24, 8, true), all), Admission::Pending, "forgotten");
}

#[test]
fn a_flood_leaves_room_for_other_datagrams() {
    let limits = Limits { datagrams: 100, queued: 20, per_datagram: 4, ..Limits::default() };
    let mut table = Table::new(limits);
    for id in 0..2000 {
        table.admit(key(id), &fragment(64, 8, true), id.into());
        table.push(key(id), id.into());
        // Fragments of other datagrams pass, in order.
        let whole = table.admit(key6(id.into()), &first(1), id.into());
        assert_eq!(whole, Admission::First);
        table.set_verdict(key6(id.into()), None);
        let rest = table.admit(key6(id.into()), &fragment(24, 8, false), id.into());
        assert_eq!(rest, Admission::Later(head(1)));
        assert!(table.len() <= 100 && table.queued <= 20);
        let dropped = table.take_dropped();
        assert!(dropped.iter().all(|(_, reason)| *reason == Refusal::Excess));
    }
    let mut table = Table::new(limits);
    for n in 0..6 {
        table.admit(key(1), &fragment(64 + n * 8, 8, true), 0);
        table.push(key(1), n as u32);
    }
    assert_eq!(table.take_dropped(), [(4, Refusal::Excess), (5, Refusal::Excess)]);
    table.clear();
    assert_eq!((table.len(), table.queued()), (0, 4));
    assert!(table.take_dropped().iter().all(|(_, reason)| *reason == Refusal::NoFirst));
}

#[test]
fn invalid_fragments_leave_no_state() {
    let mut table = Table::default();
    for fragment in [fragment(0, 0, true), fragment(8, 7, true), fragment(65528, 8, false)] {
        let refused = Admission::Refused(Refusal::Invalid);
        assert_eq!((table.admit(key(1), &fragment, 0), table.len()), (refused, 0));
    }
}

proptest! {
    /// The header bytes that pass are those of one first fragment, whatever the senders do: no
    /// later fragment passes that overlaps another one that passed.
    #[test]
    fn no_byte_passes_twice_with_different_contents(
        steps in prop::collection::vec((0u16..3, 0usize..8, 1usize..5, any::<bool>(), 0u8..2), 1..80),
        ip6: bool,
    ) {
        let limits = Limits { datagrams: 2, queued: 6, per_datagram: 3, ..Limits::default() };
        let mut table = FragmentTracker::<(u16, usize, usize)>::new(limits);
        let mut passed: HashMap<u16, Vec<(usize, usize)>> = HashMap::new();
        let (mut queued_count, mut back) = (0, 0);
        for (n, (id, start, units, more, byte)) in steps.into_iter().enumerate() {
            let it = Fragment { head: (start == 0).then(|| head(byte)), ..fragment(start * 8, units * 8, more) };
            let key = if ip6 { key6(id.into()) } else { key(id) };
            let mut passes = vec![];
            match table.admit(key, &it, n as u64) {
                Admission::First => {
                    // A new first fragment passes after the previous datagram was complete or
                    // dropped.
                    let fresh = passed.entry(id).or_default();
                    if fresh.first() != Some(&(0, units * 8)) {
                        fresh.clear();
                    }
                    passes.push((id, 0, units * 8));
                    let waited = table.set_verdict(key, None);
                    back += waited.len();
                    passes.extend(waited);
                }
                Admission::Later(_) => passes.push((id, start * 8, (start + units) * 8)),
                Admission::Pending => {
                    queued_count += 1;
                    table.push(key, (id, start * 8, (start + units) * 8));
                }
                Admission::Refused(_) => {}
            }
            back += table.take_dropped().len();
            prop_assert_eq!(queued_count, back + table.queued());
            prop_assert!(table.len() <= 2 && table.queued <= 6);
            for (id, from, to) in passes {
                let others = passed.entry(id).or_default();
                let apart = |&(a, b): &(usize, usize)| (a, b) == (from, to) || b <= from || to <= a;
                let is_first = others.first().is_some_and(|&(_, end)| from < end && from > 0);
                prop_assert!(!is_first, "{from}..{to} of {id} is over the first of {others:?}");
                if others.iter().all(apart) {
                    others.push((from, to));
                }
            }
        }
    }
}
