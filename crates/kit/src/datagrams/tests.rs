//! Admission of fragments in any order, of datagrams of any sender.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;
use std::net::Ipv4Addr;

type Table = Datagrams<u32>;

fn key(id: u16) -> Key {
    let mut ip = Ipv4Header::new(17, Ipv4Addr::new(1, 0, 0, 1), Ipv4Addr::new(2, 0, 0, 2), 20);
    ip.set_id(id);
    Key::of4(&ip)
}

fn key6(id: u32) -> Key {
    Key::of6(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED, id)
}

fn piece(start: usize, length: usize, more: bool) -> Piece {
    let head = (start == 0).then(|| head(7));
    Piece { start, length, more, protocol: ip_proto::UDP, head }
}

fn head(byte: u8) -> Head {
    Head { protocol: ip_proto::UDP, bytes: [byte; 8].into() }
}

fn first(byte: u8) -> Piece {
    Piece { head: Some(head(byte)), ..piece(0, 24, true) }
}

const OVERLAP: Admission = Admission::Refused(Refusal::Overlap);
const TINY: Admission = Admission::Refused(Refusal::Tiny);

#[test]
fn later_fragments_follow_the_first() {
    let mut table = Table::default();
    assert_eq!(table.admit(key(1), &piece(0, 24, true), 0), Admission::First);
    assert!(table.settle(key(1), None).is_empty());
    let follows = Admission::Follows(head(7));
    assert_eq!(table.admit(key(2), &piece(24, 8, true), 0), Admission::Waits, "another's");
    assert_eq!(table.admit(key(1), &piece(32, 8, false), 0), follows);
    assert_eq!(table.admit(key(1), &piece(32, 8, false), 0), follows, "once more");
    assert_eq!(table.admit(key(1), &piece(24, 8, true), 0), follows);
    // It is whole: the identification may be another datagram's.
    assert_eq!((table.len(), table.admit(key(1), &first(8), 0)), (1, Admission::First));
    table.settle(key(1), Some(250));
    let denied = Admission::Refused(Refusal::Denied(250));
    assert_eq!(table.admit(key(1), &piece(24, 8, true), 0), denied);
    assert_eq!(table.admit(key(1), &first(8), 0), denied);
}

#[test]
fn those_that_come_first_wait() {
    let mut table = Table::default();
    for (n, start) in [(1, 40), (2, 24), (3, 32)] {
        assert_eq!(table.admit(key(1), &piece(start, 8, start < 40), 0), Admission::Waits);
        table.hold(key(1), n);
    }
    assert_eq!(table.waiting(), 3);
    assert_eq!(table.admit(key(1), &piece(0, 24, true), SECOND), Admission::First);
    assert_eq!(table.settle(key(1), None), [1, 2, 3]);
    assert!(table.is_empty() && table.waiting() == 0, "it is whole");
    // Others wait in vain.
    assert_eq!(table.admit(key(2), &piece(24, 8, true), SECOND), Admission::Waits);
    table.hold(key(2), 4);
    assert!(table.expire(5 * SECOND, 9) && table.is_empty());
    assert_eq!(table.take_gone(), [(4, Refusal::Lone)]);
}

#[test]
fn what_overlaps_is_refused_with_all_of_its_datagram() {
    for second in [
        piece(16, 16, true),
        piece(8, 8, true),
        piece(16, 8, false),
        first(8),
        piece(0, 16, true),
        piece(0, 32, true),
    ] {
        for key in [key(1), key6(1)] {
            let mut table = Table::default();
            assert_eq!(table.admit(key, &piece(0, 24, true), 0), Admission::First);
            table.settle(key, None);
            assert_eq!(table.admit(key, &second, 0), OVERLAP, "{second:?}");
            assert_eq!(table.admit(key, &piece(24, 8, true), 0), OVERLAP, "all of it");
            // So does the first where it comes second.
            let mut table = Table::default();
            if second.start > 0 {
                assert_eq!(table.admit(key, &second, 0), Admission::Waits);
                table.hold(key, 1);
                assert_eq!(table.admit(key, &piece(0, 24, true), 0), OVERLAP);
                assert_eq!(table.take_gone(), [(1, Refusal::Overlap)]);
                assert_eq!(table.waiting(), 0);
            }
        }
    }
    // Two ends, something behind the end, and an end before something.
    for pair in [[(64, false), (72, false)], [(64, false), (72, true)], [(72, true), (64, false)]] {
        let mut table = Table::default();
        let [a, b] = pair.map(|(start, more)| table.admit(key(1), &piece(start, 8, more), 0));
        assert_eq!((a, b), (Admission::Waits, OVERLAP), "{pair:?}");
    }
}

#[test]
fn headers_are_not_cut_in_two() {
    let mut table = Table::default();
    let tcp = |start, head| Piece { protocol: ip_proto::TCP, head, ..piece(start, 16, true) };
    for (id, tiny) in [tcp(0, None), tcp(8, None), tcp(16, None)].into_iter().enumerate() {
        assert_eq!(table.admit(key6(id as u32), &tiny, 0), TINY);
        assert_eq!(table.admit(key6(id as u32), &tcp(24, None), 0), TINY, "all of it");
    }
    assert_eq!(table.admit(key(1), &tcp(24, None), 0), Admission::Waits);
    let mut segment = [0; 60];
    for (offset, length) in [(5, 20), (6, 24), (15, 60), (0, 20)] {
        segment[Tcp::OFFSET_BYTE] = offset << 4;
        assert_eq!(header_len(ip_proto::TCP, &segment), Some(length));
        assert_eq!(header_len(ip_proto::TCP, &segment[..length - 1]), None);
    }
    let lengths = [ip_proto::UDP, ip_proto::ICMP, 99].map(|it| header_len(it, &segment[..8]));
    assert_eq!(lengths, [Some(8), Some(8), Some(0)]);
    assert_eq!(header_len(ip_proto::UDP, &segment[..7]), None);
    assert_eq!(Head::new(6, &segment, 20).map(|it| it.bytes.len()), Some(60));
    assert_eq!(Head::new(6, &[0; 600], 520), None);
}

#[test]
fn identifications_of_ipv4_are_used_again() {
    let limits = Limits::default();
    for (key, wanted) in [(key(1), Admission::First), (key6(1), OVERLAP)] {
        let mut table = Table::default();
        table.admit(key, &first(1), 0);
        table.settle(key, None);
        assert_eq!(table.admit(key, &first(2), limits.reuse), wanted);
    }
    let mut table = Table::default();
    assert_eq!(table.admit(key(1), &first(1), 0), Admission::First);
    assert_eq!(table.admit(key(1), &first(2), limits.reuse - 1), OVERLAP);
    assert_eq!(table.admit(key(1), &piece(24, 8, true), limits.reuse), OVERLAP);
    assert_eq!(table.admit(key(1), &first(2), limits.reuse), Admission::First);
    let all = limits.timeout + 2 * SECOND;
    assert_eq!(table.admit(key(1), &piece(24, 8, true), all), Admission::Waits, "forgotten");
}

#[test]
fn a_flood_leaves_room_for_others() {
    let limits = Limits { datagrams: 100, waiting: 20, each: 4, ..Limits::default() };
    let mut table = Table::new(limits);
    for id in 0..2000 {
        table.admit(key(id), &piece(64, 8, true), id.into());
        table.hold(key(id), id.into());
        // In order, fragments of others pass.
        let whole = table.admit(key6(id.into()), &first(1), id.into());
        assert_eq!(whole, Admission::First);
        table.settle(key6(id.into()), None);
        let rest = table.admit(key6(id.into()), &piece(24, 8, false), id.into());
        assert_eq!(rest, Admission::Follows(head(1)));
        assert!(table.len() <= 100 && table.waiting <= 20);
        let gone = table.take_gone();
        assert!(gone.iter().all(|(_, why)| *why == Refusal::Excess));
    }
    let mut table = Table::new(limits);
    for n in 0..6 {
        table.admit(key(1), &piece(64 + n * 8, 8, true), 0);
        table.hold(key(1), n as u32);
    }
    assert_eq!(table.take_gone(), [(4, Refusal::Excess), (5, Refusal::Excess)]);
    table.clear();
    assert_eq!((table.len(), table.waiting()), (0, 4));
    assert!(table.take_gone().iter().all(|(_, why)| *why == Refusal::Lone));
}

#[test]
fn impossible_fragments_leave_nothing_behind() {
    let mut table = Table::default();
    for piece in [piece(0, 0, true), piece(8, 7, true), piece(65528, 8, false)] {
        let refused = Admission::Refused(Refusal::Impossible);
        assert_eq!((table.admit(key(1), &piece, 0), table.len()), (refused, 0));
    }
}

proptest! {
    /// Bytes of a header that pass are those of one first fragment, whoever sends what in which
    /// order: no later fragment that passes has a byte that another one has which passed.
    #[test]
    fn no_byte_passes_twice_with_other_words(
        steps in prop::collection::vec((0u16..3, 0usize..8, 1usize..5, any::<bool>(), 0u8..2), 1..80),
        ip6: bool,
    ) {
        let limits = Limits { datagrams: 2, waiting: 6, each: 3, ..Limits::default() };
        let mut table = Datagrams::<(u16, usize, usize)>::new(limits);
        let mut passed: HashMap<u16, Vec<(usize, usize)>> = HashMap::new();
        let (mut held, mut back) = (0, 0);
        for (n, (id, start, units, more, byte)) in steps.into_iter().enumerate() {
            let it = Piece { head: (start == 0).then(|| head(byte)), ..piece(start * 8, units * 8, more) };
            let key = if ip6 { key6(id.into()) } else { key(id) };
            let mut passes = vec![];
            match table.admit(key, &it, n as u64) {
                Admission::First => {
                    // Another one begins where the one before is whole or had to go.
                    let fresh = passed.entry(id).or_default();
                    if fresh.first() != Some(&(0, units * 8)) {
                        fresh.clear();
                    }
                    passes.push((id, 0, units * 8));
                    let waited = table.settle(key, None);
                    back += waited.len();
                    passes.extend(waited);
                }
                Admission::Follows(_) => passes.push((id, start * 8, (start + units) * 8)),
                Admission::Waits => {
                    held += 1;
                    table.hold(key, (id, start * 8, (start + units) * 8));
                }
                Admission::Refused(_) => {}
            }
            back += table.take_gone().len();
            prop_assert_eq!(held, back + table.waiting());
            prop_assert!(table.len() <= 2 && table.waiting <= 6);
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
