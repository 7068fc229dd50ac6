//! The table of neighbours: what it keeps, and how much each packet costs.

use super::*;
use proptest::prelude::*;

const MAC: [u8; 6] = [0, 1, 2, 3, 4, 5];
const MS: u64 = 1_000_000;

fn table(limits: Limits) -> ArpTable<u32> {
    ArpTable::new(limits)
}

#[test]
fn packets_wait_for_the_answer_in_order() {
    let mut t = table(Limits::default());
    assert_eq!(t.lookup(1, 0, 0), Lookup::Unknown);
    assert_eq!(t.wait(1, 10, 0), Wait::Queued { query: true });
    assert_eq!(t.wait(1, 11, 50 * MS), Wait::Queued { query: false });
    assert_eq!(t.wait(1, 12, 100 * MS), Wait::Queued { query: true });
    assert_eq!(t.insert(1, MAC, 200 * MS), [10, 11, 12]);
    assert_eq!(t.wait(1, 13, 300 * MS), Wait::Known(MAC, 13));
    assert_eq!((t.waiting(), t.drops(), t.count()), (0, 0, 1));
    assert_eq!(t.reverse_lookup(MAC), Some(1));
    let line = "0.0.0.1 1 00-01-02-03-04-05 0.100000\n";
    assert_eq!(t.listing(300 * MS, 0), (line.to_owned(), None));
}

#[test]
fn queries_slow_down_without_answers() {
    let mut t = table(Limits::default());
    let queries =
        (0..60u64).filter(|&i| t.wait(1, 0, i * 100 * MS) == Wait::Queued { query: true }).count();
    assert_eq!(queries, 10 + 2);
}

#[test]
fn entries_get_stale_and_expire() {
    let mut t = table(Limits { timeout: 10 * SECOND, ..Limits::default() });
    t.insert(1, MAC, 0);
    assert_eq!(t.lookup(1, 4 * SECOND, 5 * SECOND), Lookup::Known(MAC));
    assert_eq!(t.lookup(1, 5 * SECOND, 5 * SECOND), Lookup::Stale(MAC));
    assert_eq!(t.lookup(1, 5 * SECOND + MS, 5 * SECOND), Lookup::Known(MAC));
    assert_eq!(t.lookup(1, 10 * SECOND, 0), Lookup::Known(MAC));
    assert_eq!(t.lookup(1, 10 * SECOND + 1, 0), Lookup::Unknown);
    assert_eq!(t.wait(1, 7, 11 * SECOND), Wait::Queued { query: true });
    t.expire(11 * SECOND);
    assert_eq!((t.count(), t.drops()), (1, 0), "kept, since a packet asks for it");
    t.expire(12 * SECOND);
    assert_eq!((t.count(), t.waiting(), t.drops()), (0, 0, 1));
    t.insert(2, MAC, 0);
    assert_eq!(t.insert(2, [0xFF; 6], 0), []);
    assert_eq!(t.lookup(2, 0, 0), Lookup::Unknown);
}

#[test]
fn packets_for_a_dead_neighbour_are_given_up() {
    let mut t = table(Limits::default());
    for n in 0..300 {
        let full = matches!(t.wait(1, n, 0), Wait::Full(_));
        assert_eq!(full, n >= 256, "{n}");
    }
    t.wait(2, 7, SECOND);
    t.expire(3 * SECOND - 1);
    assert_eq!((t.waiting(), t.drops()), (257, 44));
    t.expire(3 * SECOND);
    assert_eq!((t.waiting(), t.drops(), t.count()), (1, 300, 2));
    // One that comes later waits as long, and has the others go whose time is over.
    assert_eq!(t.wait(1, 8, 4 * SECOND), Wait::Queued { query: true });
    assert_eq!((t.waiting(), t.drops()), (1, 301));
    assert_eq!(t.insert(1, MAC, 6 * SECOND), [8]);
}

/// Where addresses of a whole /8 are asked for, no packet looks at more than a few entries,
/// and neighbours that have answered stay.
#[test]
fn a_sweep_looks_at_few_entries_a_packet() {
    for entry_capacity in [Limits::ENTRIES as usize, 0] {
        let mut t = table(Limits { entry_capacity, ..Limits::default() });
        for ip in 1..=1000 {
            t.insert(ip, MAC, 0);
        }
        let mut most = 0;
        for n in 0..300_000u32 {
            let before = t.looks;
            t.wait((10 << 24) + n, n, u64::from(n) * 2000);
            most = most.max(t.looks - before);
        }
        // At most half of what may wait goes at once, so a packet pays for two.
        assert!(most <= 1024 + 8 && t.looks < 3 * 300_000, "{most} of {}", t.looks);
        assert!(t.count() <= limit(entry_capacity) && t.waiting() <= 2048);
        assert!((1..=1000).all(|ip| t.lookup(ip, SECOND, 0) == Lookup::Known(MAC)));
    }
}

/// Packets for addresses that all expired at once cost no walk each either.
#[test]
fn expired_entries_are_looked_at_once() {
    let mut t = table(Limits { timeout: 10 * SECOND, ..Limits::default() });
    for ip in 0..50_000 {
        t.insert(ip, MAC, u64::from(ip));
    }
    for ip in 0..50_000 {
        t.wait(ip, ip, 20 * SECOND);
    }
    assert!(t.looks <= 3 * 50_000, "{}", t.looks);
}

#[test]
fn capacities_hold() {
    let limits =
        Limits { capacity: 4, entry_capacity: 3, entry_packet_capacity: 2, ..Limits::default() };
    let mut t = table(limits);
    t.wait(1, 0, 0);
    t.wait(1, 1, 0);
    assert_eq!(t.wait(1, 2, 0), Wait::Full(2));
    t.wait(2, 3, 1);
    t.wait(2, 4, 1);
    assert_eq!((t.waiting(), t.drops()), (4, 1));
    t.wait(3, 5, 2);
    assert_eq!((t.waiting(), t.drops()), (2, 4), "half is left, the new one included");
    t.wait(4, 6, 3);
    assert_eq!((t.count(), t.reverse_lookup(MAC)), (3, None));
    assert_eq!(t.take_waiting(), [4, 5, 6]);
    assert_eq!((t.count(), t.waiting()), (3, 0));
    t.wait(2, 4, 3);
    t.wait(3, 5, 3);
    t.wait(4, 6, 3);
    assert_eq!(t.insert(2, MAC, 4), [4]);
    t.clear();
    assert_eq!((t.count(), t.waiting(), t.drops()), (0, 0, 6));
}

proptest! {
    #[test]
    fn never_more_than_allowed_and_nothing_lost(
        steps in prop::collection::vec((0u8..4, 0u32..12, 0u64..3 * SECOND), 1..200),
        capacity in 1usize..10, entry_capacity in 1usize..6, each in 0usize..4,
        slim_factor in 1usize..4,
    ) {
        let timeout = 10 * SECOND;
        let limits =
            Limits { capacity, entry_capacity, entry_packet_capacity: each, slim_factor, timeout, packet_timeout: 4 * SECOND };
        let mut t = table(limits);
        let (mut now, mut given, mut back) = (0, 0, 0);
        for (step, ip, wait) in steps {
            now += wait;
            match step {
                0 => back += t.insert(ip, MAC, now).len() as u64,
                1 => t.expire(now),
                _ => {
                    given += 1;
                    back += u64::from(matches!(t.wait(ip, ip, now), Wait::Known(..)));
                }
            }
            prop_assert!(t.count() <= entry_capacity && t.waiting() <= capacity);
            prop_assert_eq!(given, back + t.waiting() as u64 + t.drops());
            let ages = |list| t.list(list).map(|e| e.live_at).collect::<Vec<u64>>();
            let (known, unknown) = (ages(List::Known), ages(List::Unknown));
            prop_assert!(known.is_sorted() && unknown.is_sorted());
            prop_assert_eq!(known.len() + unknown.len(), t.count());
            prop_assert!(t.list(List::Waiting).map(|e| e.waits_since).is_sorted());
            let queued: usize = t.list(List::Waiting).map(|e| e.waiting.len()).sum();
            prop_assert_eq!(queued, t.waiting());
        }
    }
}

/// Each piece is of a few places; what is there all the while is in the text once.
#[test]
fn long_tables_are_listed_in_pieces() {
    const ALL: u32 = 5000;
    let mut t = table(Limits { timeout: 0, ..Limits::default() });
    for n in 0..ALL {
        t.insert(n, [2, 0, 0, 0, 0, 1], u64::from(n) * MS);
    }
    let (mut text, mut from, mut pieces) = (String::new(), 0, 0);
    loop {
        let (piece, next) = t.listing(u64::from(ALL) * MS, from);
        assert!(piece.lines().count() <= PIECE);
        text += &piece;
        pieces += 1;
        // Another comes meanwhile, and one is heard of again.
        t.insert(ALL + pieces, [2, 0, 0, 0, 0, 2], u64::from(ALL) * MS);
        t.insert(pieces, [2, 0, 0, 0, 0, 1], u64::from(ALL) * MS);
        match next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert!(pieces as usize >= ALL as usize / PIECE);
    let text = oldest_first(text);
    assert!(text.starts_with("0.0.0.0 1 02-00-00-00-00-01 5.000000\n"), "{}", &text[..99]);
    let mut old: Vec<&str> = text.lines().filter(|it| it.contains("00-01 ")).collect();
    let ages = old.iter().map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
    assert!(ages.collect::<Vec<_>>().is_sorted_by(|a, b| a >= b));
    old.sort_by_key(|line| line.split(' ').next());
    old.dedup_by_key(|line| line.split(' ').next());
    assert_eq!(old.len(), ALL as usize);
}
