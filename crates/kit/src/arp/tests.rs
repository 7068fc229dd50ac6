//! Tests of the neighbour table: contents, limits and the work per packet.

use super::*;
use proptest::prelude::*;

const MAC: [u8; 6] = [0, 1, 2, 3, 4, 5];
const MS: u64 = 1_000_000;

fn table(limits: Limits) -> ArpTable<u32> {
    ArpTable::new(limits)
}

#[test]
fn packets_are_released_in_order_by_the_reply() {
    let mut t = table(Limits::default());
    assert_eq!(t.lookup(1, 0, 0), Lookup::Unknown);
    assert_eq!(t.enqueue(1, 10, 0), EnqueueResult::Queued { query: true });
    assert_eq!(t.enqueue(1, 11, 50 * MS), EnqueueResult::Queued { query: false });
    assert_eq!(t.enqueue(1, 12, 100 * MS), EnqueueResult::Queued { query: true });
    assert_eq!(t.insert(1, MAC, 200 * MS), [10, 11, 12]);
    assert_eq!(t.enqueue(1, 13, 300 * MS), EnqueueResult::Known(MAC, 13));
    assert_eq!((t.queued(), t.drops(), t.count()), (0, 0, 1));
    assert_eq!(t.reverse_lookup(MAC), Some(1));
    let line = "0.0.0.1 1 00-01-02-03-04-05 0.100000\n";
    assert_eq!(t.listing(300 * MS, 0), (line.to_owned(), None));
}

#[test]
fn queries_slow_down_without_answers() {
    let mut t = table(Limits::default());
    let queries = (0..60u64)
        .filter(|&i| t.enqueue(1, 0, i * 100 * MS) == EnqueueResult::Queued { query: true })
        .count();
    assert_eq!(queries, 10 + 2);
}

#[test]
fn a_peek_finds_what_a_lookup_would_find_and_changes_nothing() {
    let mut t = table(Limits { timeout: 10 * SECOND, ..Limits::default() });
    t.insert(1, MAC, 0);
    t.enqueue(2, 7, 0);
    let mut stale = 0;
    for at in (0..12 * SECOND).step_by((50 * MS) as usize) {
        for (ip, poll) in [(1, 0), (1, 2 * SECOND), (2, 0), (3, 0)] {
            let peeks = [t.peek(ip, at, poll), t.peek(ip, at, poll)];
            let lookup = t.lookup(ip, at, poll);
            let expected = if lookup == Lookup::Known(MAC) { Some(MAC) } else { None };
            assert_eq!(peeks, [expected; 2], "{ip} at {at}");
            stale += usize::from(lookup == Lookup::Stale(MAC));
        }
    }
    // Of those that are to be confirmed, the first ten are a tenth of a second apart, the others two seconds.
    assert_eq!(stale, 10 + 3);
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
    assert_eq!(t.enqueue(1, 7, 11 * SECOND), EnqueueResult::Queued { query: true });
    t.expire(11 * SECOND);
    assert_eq!((t.count(), t.drops()), (1, 0), "kept, since a packet asks for it");
    t.expire(12 * SECOND);
    assert_eq!((t.count(), t.queued(), t.drops()), (0, 0, 1));
    t.insert(2, MAC, 0);
    assert_eq!(t.insert(2, [0xFF; 6], 0), []);
    assert_eq!(t.lookup(2, 0, 0), Lookup::Unknown);
}

#[test]
fn packets_for_a_dead_neighbour_are_dropped() {
    let mut t = table(Limits::default());
    for n in 0..300 {
        let full = matches!(t.enqueue(1, n, 0), EnqueueResult::Full(_));
        assert_eq!(full, n >= 256, "{n}");
    }
    t.enqueue(2, 7, SECOND);
    t.expire(3 * SECOND - 1);
    assert_eq!((t.queued(), t.drops()), (257, 44));
    t.expire(3 * SECOND);
    assert_eq!((t.queued(), t.drops(), t.count()), (1, 300, 2));
    // A later packet is queued as long; the expired ones are dropped at that time.
    assert_eq!(t.enqueue(1, 8, 4 * SECOND), EnqueueResult::Queued { query: true });
    assert_eq!((t.queued(), t.drops()), (1, 301));
    assert_eq!(t.insert(1, MAC, 6 * SECOND), [8]);
}

/// In a scan of a whole /8, each packet visits only a few entries, and neighbours that have replied
/// stay.
#[test]
fn an_address_scan_visits_few_entries_per_packet() {
    for entry_capacity in [Limits::ENTRIES as usize, 0] {
        let mut t = table(Limits { entry_capacity, ..Limits::default() });
        for ip in 1..=1000 {
            t.insert(ip, MAC, 0);
        }
        let mut max_visits = 0;
        for n in 0..300_000u32 {
            let before = t.visits;
            t.enqueue((10 << 24) + n, n, u64::from(n) * 2000);
            max_visits = max_visits.max(t.visits - before);
        }
        // At most half of the queued packets are dropped at once, so each packet pays for two.
        assert!(max_visits <= 1024 + 8 && t.visits < 3 * 300_000, "{max_visits} of {}", t.visits);
        assert!(t.count() <= limit(entry_capacity) && t.queued() <= 2048);
        assert!((1..=1000).all(|ip| t.lookup(ip, SECOND, 0) == Lookup::Known(MAC)));
    }
}

/// After all entries have expired at once, packets do not walk through all of them either.
#[test]
fn expired_entries_are_visited_once() {
    let mut t = table(Limits { timeout: 10 * SECOND, ..Limits::default() });
    for ip in 0..50_000 {
        t.insert(ip, MAC, u64::from(ip));
    }
    for ip in 0..50_000 {
        t.enqueue(ip, ip, 20 * SECOND);
    }
    assert!(t.visits <= 3 * 50_000, "{}", t.visits);
}

#[test]
fn capacities_are_enforced() {
    let limits =
        Limits { capacity: 4, entry_capacity: 3, entry_packet_capacity: 2, ..Limits::default() };
    let mut t = table(limits);
    t.enqueue(1, 0, 0);
    t.enqueue(1, 1, 0);
    assert_eq!(t.enqueue(1, 2, 0), EnqueueResult::Full(2));
    t.enqueue(2, 3, 1);
    t.enqueue(2, 4, 1);
    assert_eq!((t.queued(), t.drops()), (4, 1));
    t.enqueue(3, 5, 2);
    assert_eq!((t.queued(), t.drops()), (2, 4), "half is left, the new one included");
    t.enqueue(4, 6, 3);
    assert_eq!((t.count(), t.reverse_lookup(MAC)), (3, None));
    assert_eq!(t.take_queued(), [4, 5, 6]);
    assert_eq!((t.count(), t.queued()), (3, 0));
    t.enqueue(2, 4, 3);
    t.enqueue(3, 5, 3);
    t.enqueue(4, 6, 3);
    assert_eq!(t.insert(2, MAC, 4), [4]);
    t.clear();
    assert_eq!((t.count(), t.queued(), t.drops()), (0, 0, 6));
}

proptest! {
    #[test]
    fn limits_hold_and_no_packet_is_lost(
        steps in prop::collection::vec((0u8..4, 0u32..12, 0u64..3 * SECOND), 1..200),
        capacity in 1usize..10, entry_capacity in 1usize..6, each in 0usize..4,
        slim_factor in 1usize..4,
    ) {
        let timeout = 10 * SECOND;
        let limits =
            Limits { capacity, entry_capacity, entry_packet_capacity: each, slim_factor, timeout, packet_timeout: 4 * SECOND };
        let mut t = table(limits);
        let (mut now, mut passed, mut back) = (0, 0, 0);
        for (step, ip, wait) in steps {
            now += wait;
            match step {
                0 => back += t.insert(ip, MAC, now).len() as u64,
                1 => t.expire(now),
                _ => {
                    passed += 1;
                    back += u64::from(matches!(t.enqueue(ip, ip, now), EnqueueResult::Known(..)));
                }
            }
            prop_assert!(t.count() <= entry_capacity && t.queued() <= capacity);
            prop_assert_eq!(passed, back + t.queued() as u64 + t.drops());
            let ages = |list| t.list(list).map(|e| e.live_at).collect::<Vec<u64>>();
            let (known, unknown) = (ages(List::Known), ages(List::Unknown));
            prop_assert!(known.is_sorted() && unknown.is_sorted());
            prop_assert_eq!(known.len() + unknown.len(), t.count());
            prop_assert!(t.list(List::Queued).map(|e| e.queued_since).is_sorted());
            let queued: usize = t.list(List::Queued).map(|e| e.queued.len()).sum();
            prop_assert_eq!(queued, t.queued());
        }
    }
}

/// Each part covers a bounded number of entries; an entry that stays is listed once.
#[test]
fn long_tables_are_listed_in_parts() {
    const ALL: u32 = 5000;
    let mut t = table(Limits { timeout: 0, ..Limits::default() });
    for n in 0..ALL {
        t.insert(n, [2, 0, 0, 0, 0, 1], u64::from(n) * MS);
    }
    let (mut text, mut from, mut parts) = (String::new(), 0, 0);
    loop {
        let (part, next) = t.listing(u64::from(ALL) * MS, from);
        assert!(part.lines().count() <= ENTRIES_PER_PART);
        text += &part;
        parts += 1;
        // Meanwhile a new entry is added and an old one refreshed.
        t.insert(ALL + parts, [2, 0, 0, 0, 0, 2], u64::from(ALL) * MS);
        t.insert(parts, [2, 0, 0, 0, 0, 1], u64::from(ALL) * MS);
        match next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert!(parts as usize >= ALL as usize / ENTRIES_PER_PART);
    let text = sort_oldest_first(text);
    assert!(text.starts_with("0.0.0.0 1 02-00-00-00-00-01 5.000000\n"), "{}", &text[..99]);
    let mut old: Vec<&str> = text.lines().filter(|it| it.contains("00-01 ")).collect();
    let ages = old.iter().map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
    assert!(ages.collect::<Vec<_>>().is_sorted_by(|a, b| a >= b));
    old.sort_by_key(|line| line.split(' ').next());
    old.dedup_by_key(|line| line.split(' ').next());
    assert_eq!(old.len(), ALL as usize);
}
