//! Tests of the flow table against a naive model.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;
use std::net::Ipv4Addr;

const SECOND: u64 = 1_000_000_000;
/// The delay with which a flow may expire.
const TICK: u64 = 1 << 27;

#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Nat {
    second: Option<Tuple4>,
    number: u32,
}

impl Flow for Nat {
    type Key = Tuple4;
    fn second_key(&self) -> Option<&Tuple4> {
        self.second.as_ref()
    }
}

fn key(n: u32) -> Tuple4 {
    Tuple4::new((Ipv4Addr::from_bits(n), n as u16), (Ipv4Addr::from_bits(!n), 80), 6)
}

fn plain(number: u32) -> Nat {
    Nat { second: None, number }
}

fn table(limit: usize) -> Flows<Nat> {
    Flows::with_seed(limit, 0, Seed::fixed())
}

#[test]
fn both_directions_are_one_flow() {
    let forward =
        Tuple4::new(("10.0.0.2".parse().unwrap(), 5), ("10.0.0.1".parse().unwrap(), 9), 17);
    assert_ne!(forward, forward.reversed());
    assert_eq!(forward.ordered().0, forward.reversed().ordered().0);
    assert_ne!(forward.ordered().1, forward.reversed().ordered().1);
    let forward = Tuple6::new(("1::2".parse().unwrap(), 5), ("1::1".parse().unwrap(), 9), 17);
    assert_eq!(forward.ordered(), (forward.reversed(), true));
    assert_eq!(forward.reversed().ordered(), (forward.reversed(), false));
    assert_eq!(forward.src(), ("1::2".parse().unwrap(), 5));
    assert_eq!((forward.dst(), forward.proto()), (("1::1".parse().unwrap(), 9), 17));
    assert_ne!(forward.in_zone(7), forward);
    assert_eq!(forward.in_zone(7).in_zone(0), forward);
}

#[test]
fn many_flows_are_found_by_either_key_one_by_one_and_in_bursts() {
    const MANY: u32 = 100_000;
    let mut flows = table(MANY as usize);
    for n in 0..MANY {
        let second = n.is_multiple_of(3).then(|| key(n + MANY));
        flows.insert(key(n), Nat { second, number: n }, SECOND, |_| false).unwrap();
    }
    assert_eq!(flows.len(), MANY as usize);
    let keys: Vec<Tuple4> = (0..2 * MANY + 1000).map(key).collect();
    let mut found = vec![Slot::NONE; keys.len()];
    flows.find_all(&keys, &mut found);
    for (n, (key, found)) in (0..).zip(keys.iter().zip(found)) {
        let found = found.entry();
        assert_eq!(found, flows.find(key));
        let number = found.map(|(id, is_second)| (flows.get(id).number, is_second));
        let expected = match n {
            _ if n < MANY => Some((n, false)),
            _ if n < 2 * MANY && (n - MANY).is_multiple_of(3) => Some((n - MANY, true)),
            _ => None,
        };
        assert_eq!(number, expected, "{n}");
    }
    // The aim is 64 bytes beside the data of a flow.
    let each = flows.memory() as f64 / f64::from(MANY) - size_of::<Nat>() as f64;
    assert!(each < 64.0, "{each} bytes a flow");
}

#[test]
fn removed_flows_leave_only_free_room() {
    let mut flows = table(1000);
    for round in 0..200u32 {
        let added = (0..1000).map(|n| {
            let (first, second) = (key(2 * n), Some(key(2 * n + 1)));
            flows.insert(first, Nat { second, number: round }, SECOND, |_| false).unwrap()
        });
        let added: Vec<Id> = added.collect();
        assert_eq!(flows.insert(key(9999), plain(7), SECOND, |_| false), Err(plain(7)));
        for id in added {
            assert_eq!(flows.remove(id).1.number, round);
        }
        assert!(flows.is_empty() && (0..2000).all(|n| flows.find(&key(n)).is_none()));
    }
    assert_eq!(flows.counts(), Counts { added: 200_000, refused: 200, ..Counts::default() });
}

#[test]
fn flows_expire_on_time() {
    let mut flows = table(100_000);
    // From a millisecond to a day.
    let lifetime = |n: u32| (u64::from(n) * u64::from(n) + 1) * SECOND / 1000;
    for n in 0..9000 {
        flows.insert(key(n), plain(n), lifetime(n), |_| false).unwrap();
    }
    let deadline_of = |n: u32| lifetime(n) + if n.is_multiple_of(7) { 3 * SECOND } else { 0 };
    let mut moment = 0;
    while !flows.is_empty() {
        moment += SECOND * 11;
        if moment == SECOND * 11 {
            for n in (0..9000).step_by(7) {
                let (id, _) = flows.find(&key(n)).unwrap();
                flows.set_deadline(id, deadline_of(n));
            }
        }
        let mut over = Vec::new();
        while !flows.expire(moment, 100, |_, flow| over.push(flow.number)) {}
        for n in over {
            assert!(
                (moment.saturating_sub(SECOND * 11 + TICK)..=moment).contains(&deadline_of(n)),
                "{n} at {moment}"
            );
        }
        assert!(moment < 90_000 * SECOND);
    }
    assert_eq!(flows.counts().expired, 9000);
    // A flow whose expiry is moved forward expires earlier.
    let id = flows.insert(key(1), plain(1), moment + 9000 * SECOND, |_| false).unwrap();
    flows.set_deadline(id, moment + SECOND);
    assert_eq!(flows.take_expired(id, moment + SECOND - 1), None);
    let other = flows.insert(key(2), plain(2), moment + SECOND, |_| false).unwrap();
    assert_eq!(flows.take_expired(other, moment + SECOND + TICK), Some((key(2), plain(2))));
    assert_eq!((flows.len(), flows.counts().expired), (1, 9001));
    assert!(flows.expire(moment + SECOND - 1, 9, |_, _| panic!("too early")));
    assert!(flows.expire(moment + SECOND + TICK, 9, |_, _| {}) && flows.is_empty());
}

#[test]
fn a_flood_evicts_the_first_to_expire() {
    let mut flows = table(10_000);
    for n in 0..5000 {
        flows.insert(key(n), plain(1), 3600 * SECOND, |_| false).unwrap();
    }
    for n in 0..1_000_000u32 {
        let now = u64::from(n) * 1000;
        let may_go = |flow: &Nat| flow.number == 0;
        flows.insert(key(5000 + n), plain(0), now + 30 * SECOND, may_go).unwrap();
        assert!(flows.len() <= 10_000);
    }
    assert!((0..5000).all(|n| flows.find(&key(n)).is_some()));
    // The most recent flows are there.
    assert!((1_000_000..1_005_000).all(|n| flows.find(&key(n)).is_some()));
    assert_eq!(flows.counts().evicted, 995_000);
    // No flow may be evicted: the new one is refused.
    assert_eq!(flows.insert(key(9_000_000), plain(2), 0, |_| false), Err(plain(2)));
}

/// Most flows are idle, but were postponed while they were active; some stay active.
#[test]
fn a_full_table_evicts_the_least_postponed_flow() {
    for life in [600 * SECOND, 3 * 3600 * SECOND] {
        let (mut flows, mut now) = (table(1000), 0);
        for n in 0..100_000 {
            // Ten per tick: all flows are checked each second.
            now += TICK / 10;
            _ = flows.expire(now, 64, |_, _| {});
            flows.insert(key(n), plain(n), now + life, |_| true).expect("a flow may go");
            let goes_on = |n: &u32| n.is_multiple_of(100);
            let recent = n.saturating_sub(200)..n;
            for n in (0..n).filter(goes_on).take(3).chain(recent.step_by(7)) {
                if let Some((id, _)) = flows.find(&key(n)) {
                    flows.postpone(id, now + life).expect("is later");
                }
            }
        }
        let stayed = [0, 100, 200].map(|n| flows.find(&key(n)).is_some());
        assert!(life > 600 * SECOND || stayed == [true; 3], "{stayed:?}");
        assert_eq!((flows.len(), flows.counts().refused), (1000, 0));
    }
}

#[test]
fn evictable_flows_are_found_behind_any_number_of_others() {
    let mut flows = table(10_000);
    let may_go = |flow: &Nat| flow.number == 0;
    for n in 0..9000 {
        flows.insert(key(n), plain(1), 10 * SECOND + u64::from(n) * TICK / 100, may_go).unwrap();
    }
    let mut refused = 0;
    for n in 9000..100_000 {
        refused += u32::from(flows.insert(key(n), plain(0), 60 * SECOND, may_go).is_err());
    }
    // Each refused insertion has checked some of the flows that may not go; none is checked again.
    assert!((1..=9000 / 64 + 1).contains(&refused), "{refused}");
    assert!((0..9000).all(|n| flows.find(&key(n)).is_some()));
    // They are evicted in order, and once all may not go, every insertion is refused.
    assert!((99_000..100_000).all(|n| flows.find(&key(n)).is_some()));
    for n in 100_000..101_000 {
        while flows.insert(key(n), plain(1), 60 * SECOND, may_go).is_err() {}
    }
    assert!((0..1000).all(|n| flows.insert(key(200_000 + n), plain(1), 0, may_go).is_err()));
    // A flow that may go again is found, wherever the search was.
    flows.get_mut(flows.find(&key(17)).unwrap().0).number = 0;
    let tries =
        (0..1000).take_while(|n| flows.insert(key(300_000 + n), plain(1), 0, may_go).is_err());
    assert!(tries.count() <= 10_000 / 64 + 1);
    assert!(flows.find(&key(17)).is_none());
}

#[test]
fn colliding_hashes_take_bounded_memory() {
    #[derive(Clone, Copy, PartialEq, Eq, Default)]
    struct Same(u32);
    impl Key for Same {
        fn hash(&self, _: &Seed) -> u64 {
            0x0123_4567_89ab_cdef
        }
    }
    #[derive(Default)]
    struct Empty;
    impl Flow for Empty {
        type Key = Same;
    }
    let mut flows: Flows<Empty> = Flows::with_seed(10_000, 0, Seed::fixed());
    let inserted = (0..1000).filter(|&n| flows.insert(Same(n), Empty, SECOND, |_| true).is_ok());
    assert_eq!(inserted.count(), 24);
    assert_eq!((flows.len(), flows.counts().refused), (24, 976));
    assert!(flows.memory() < 4 << 20, "{}", flows.memory());
    assert!((0..24).all(|n| flows.find(&Same(n)).is_some()));
}

#[test]
fn every_bit_of_a_key_changes_the_hash() {
    let seed = Seed::fixed();
    let base = key(12345);
    let mut flips = [0u32; 64];
    let (src, dst) = (base.src(), base.dst());
    let flipped = |ip: Ipv4Addr, bit: u32| Ipv4Addr::from_bits(ip.to_bits() ^ 1 << bit);
    for bit in 0..32 {
        let others = [
            Tuple4::new((flipped(src.0, bit), src.1), dst, 6),
            Tuple4::new(src, (flipped(dst.0, bit), dst.1), 6),
            Tuple4::new((src.0, src.1 ^ 1 << (bit % 16)), dst, 6),
            Tuple4::new(src, (dst.0, dst.1 ^ 1 << (bit % 16)), 6),
        ];
        for other in others {
            let changed = base.hash(&seed) ^ other.hash(&seed);
            assert!((10..54).contains(&changed.count_ones()), "{other:?}");
            (0..64).for_each(|at| flips[at] += (changed >> at) as u32 & 1);
        }
    }
    assert!(flips.iter().all(|flips| (32..96).contains(flips)), "{flips:?}");
}

#[derive(Clone, Debug)]
enum Step {
    Insert { n: u32, second: bool, life: u64 },
    SetDeadline { n: u32, life: u64 },
    Remove { n: u32 },
    Wait { time: u64, limit: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let life = prop_oneof![1..10 * SECOND, SECOND..20_000 * SECOND];
    let n = 0..300u32;
    let step = prop_oneof![
        6 => (n.clone(), any::<bool>(), life.clone())
            .prop_map(|(n, second, life)| Step::Insert { n, second, life }),
        3 => (n.clone(), life.clone()).prop_map(|(n, life)| Step::SetDeadline { n, life }),
        2 => n.prop_map(|n| Step::Remove { n }),
        1 => (life, 1..100usize).prop_map(|(time, limit)| Step::Wait { time, limit }),
    ];
    prop::collection::vec(step, 0..600)
}

/// The expected table: by number, the expiry and whether the flow has two keys.
#[derive(Default)]
struct Model(HashMap<u32, (u64, bool)>);

impl Model {
    fn check(&self, flows: &Flows<Nat>) {
        assert_eq!(flows.len(), self.0.len());
        assert_eq!(flows.iter().count(), self.0.len());
        for n in 0..300 {
            let found = flows.find(&key(n));
            assert_eq!(found.is_some(), self.0.contains_key(&n), "{n}");
            let second = flows.find(&key(n + 1000));
            assert_eq!(second.is_some(), self.0.get(&n).is_some_and(|it| it.1), "{n}");
            if let Some((id, _)) = second.or(found) {
                assert_eq!(flows.get(id).number, n);
            }
        }
    }
}

proptest! {
    #[test]
    fn it_agrees_with_a_map(steps in steps()) {
        let (mut flows, mut model, mut now) = (table(200), Model::default(), 0);
        for step in steps {
            match step {
                Step::Insert { n, second, life } if flows.find(&key(n)).is_none() => {
                    let flow = Nat { second: second.then(|| key(n + 1000)), number: n };
                    let done = flows.insert(key(n), flow, now + life, |_| false);
                    assert_eq!(done.is_ok(), model.0.len() < 200);
                    if done.is_ok() {
                        model.0.insert(n, (now + life, second));
                    }
                }
                Step::SetDeadline { n, life } => if let Some((id, _)) = flows.find(&key(n)) {
                    let (until, end) = (now + life, &mut model.0.get_mut(&n).unwrap().0);
                    // Shared access can only postpone.
                    if flows.postpone(id, until).is_ok() {
                        assert!(until + 2 * TICK > *end);
                        *end = until.max(*end);
                    } else {
                        flows.set_deadline(id, until);
                        assert!(until < *end);
                        *end = until;
                    }
                },
                Step::Remove { n } => if let Some((id, _)) = flows.find(&key(n)) {
                    assert_eq!(flows.remove(id).1.number, n);
                    model.0.remove(&n);
                },
                Step::Wait { time, limit } => {
                    now += time;
                    let (is_due, before) = (flows.is_due(now), flows.len());
                    let done = flows.expire(now, limit, |_, flow| {
                        assert!(model.0.remove(&flow.number).unwrap().0 <= now);
                    });
                    assert!(is_due || (done && flows.len() == before));
                    let late = model.0.values().any(|it| it.0 + TICK <= now);
                    assert!(!(done && late));
                }
                Step::Insert { .. } => {}
            }
        }
        model.check(&flows);
    }
}
