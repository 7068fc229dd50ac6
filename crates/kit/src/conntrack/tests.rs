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

impl Entry for Nat {
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

fn table(limit: usize) -> Table<Nat> {
    Table::with_seed(limit, Seed::fixed())
}

/// Adds a flow; a full table evicts one that may go.
fn insert(
    flows: &mut Table<Nat>,
    (key, flow): (Tuple4, Nat),
    until: u64,
    may_go: impl FnMut(&Nat) -> bool,
) -> Result<Id, Nat> {
    if flows.len() >= flows.limit() {
        flows.evict(may_go);
    }
    flows.insert(key, flow, until, 0)
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
        flows.insert(key(n), Nat { second, number: n }, SECOND, 0).unwrap();
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
            flows.insert(first, Nat { second, number: round }, SECOND, 0).unwrap()
        });
        let added: Vec<Id> = added.collect();
        assert_eq!(flows.insert(key(9999), plain(7), SECOND, 0), Err(plain(7)));
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
        flows.insert(key(n), plain(n), lifetime(n), 0).unwrap();
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
        while !flows.expire(moment, 100, |_, _, flow| over.push(flow.number)) {}
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
    let id = flows.insert(key(1), plain(1), moment + 9000 * SECOND, moment).unwrap();
    flows.set_deadline(id, moment + SECOND);
    assert_eq!(flows.take_expired(id, moment + SECOND - 1), None);
    let other = flows.insert(key(2), plain(2), moment + SECOND, moment).unwrap();
    assert_eq!(flows.take_expired(other, moment + SECOND + TICK), Some((key(2), plain(2))));
    assert_eq!((flows.len(), flows.counts().expired), (1, 9001));
    assert!(flows.expire(moment + SECOND - 1, 9, |_, _, _| panic!("too early")));
    assert!(flows.expire(moment + SECOND + TICK, 9, |_, _, _| {}) && flows.is_empty());
}

#[test]
fn a_flood_evicts_the_first_to_expire() {
    let mut flows = table(10_000);
    for n in 0..5000 {
        flows.insert(key(n), plain(1), 3600 * SECOND, 0).unwrap();
    }
    for n in 0..1_000_000u32 {
        let now = u64::from(n) * 1000;
        let may_go = |flow: &Nat| flow.number == 0;
        insert(&mut flows, (key(5000 + n), plain(0)), now + 30 * SECOND, may_go).unwrap();
        assert!(flows.len() <= 10_000);
    }
    assert!((0..5000).all(|n| flows.find(&key(n)).is_some()));
    // The most recent flows are there.
    assert!((1_000_000..1_005_000).all(|n| flows.find(&key(n)).is_some()));
    assert_eq!(flows.counts().evicted, 995_000);
    // No flow may be evicted: the new one is refused.
    assert_eq!(flows.insert(key(9_000_000), plain(2), 0, 0), Err(plain(2)));
}

/// Most flows are idle, but were postponed while they were active; some stay active.
#[test]
fn a_full_table_evicts_the_least_postponed_flow() {
    for life in [600 * SECOND, 3 * 3600 * SECOND] {
        let (mut flows, mut now) = (table(1000), 0);
        for n in 0..100_000 {
            // Ten per tick: all flows are checked each second.
            now += TICK / 10;
            _ = flows.expire(now, 64, |_, _, _| {});
            insert(&mut flows, (key(n), plain(n)), now + life, |_| true).expect("a flow may go");
            let goes_on = |n: &u32| n.is_multiple_of(100);
            let recent = n.saturating_sub(200)..n;
            for n in (0..n).filter(goes_on).take(3).chain(recent.step_by(7)) {
                if let Some((id, _)) = flows.find(&key(n)) {
                    flows.flow(id).postpone(now + life).expect("is later");
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
        insert(&mut flows, (key(n), plain(1)), 10 * SECOND + u64::from(n) * TICK / 100, may_go)
            .unwrap();
    }
    let mut refused = 0;
    for n in 9000..100_000 {
        refused += u32::from(insert(&mut flows, (key(n), plain(0)), 60 * SECOND, may_go).is_err());
    }
    // Each refused insertion has checked some of the flows that may not go; none is checked again.
    assert!((1..=9000 / 64 + 1).contains(&refused), "{refused}");
    assert!((0..9000).all(|n| flows.find(&key(n)).is_some()));
    // They are evicted in order, and once all may not go, every insertion is refused.
    assert!((99_000..100_000).all(|n| flows.find(&key(n)).is_some()));
    for n in 100_000..101_000 {
        while insert(&mut flows, (key(n), plain(1)), 60 * SECOND, may_go).is_err() {}
    }
    assert!(
        (0..1000).all(|n| insert(&mut flows, (key(200_000 + n), plain(1)), 0, may_go).is_err())
    );
    // A flow that may go again is found, wherever the search was.
    flows.get_mut(flows.find(&key(17)).unwrap().0).number = 0;
    let tries = (0..1000)
        .take_while(|n| insert(&mut flows, (key(300_000 + n), plain(1)), 0, may_go).is_err());
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
    impl Entry for Empty {
        type Key = Same;
    }
    let mut flows: Table<Empty> = Table::with_seed(10_000, Seed::fixed());
    let inserted = (0..1000).filter(|&n| flows.insert(Same(n), Empty, SECOND, 0).is_ok());
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
    fn check(&self, flows: &Table<Nat>) {
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
                    let done = flows.insert(key(n), flow, now + life, now);
                    assert_eq!(done.is_ok(), model.0.len() < 200);
                    if done.is_ok() {
                        model.0.insert(n, (now + life, second));
                    }
                }
                Step::SetDeadline { n, life } => if let Some((id, _)) = flows.find(&key(n)) {
                    let (until, end) = (now + life, &mut model.0.get_mut(&n).unwrap().0);
                    // Shared access can only postpone.
                    if flows.flow(id).postpone(until).is_ok() {
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
                    let done = flows.expire(now, limit, |_, _, flow| {
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

/// A connection that is translated from one tuple to another: its second key, and whether the ends
/// of each key are swapped.
#[derive(Default)]
struct Connection {
    number: u32,
    second: Option<Tuple4>,
    swapped: [bool; 2],
}

impl Entry for Connection {
    type Key = Tuple4;
    fn second_key(&self) -> Option<&Tuple4> {
        self.second.as_ref()
    }
}

/// The key of a tuple, and whether its ends are swapped: for both directions, or for one.
fn policy_key(tuple: Tuple4, is_shared: bool) -> (Tuple4, bool) {
    if is_shared { tuple.ordered() } else { (tuple, false) }
}

proptest! {
    /// Packets find their connection and its direction, whether both directions share a key (as in
    /// `Middlebox`) or have one each (as in rewriters).
    #[test]
    fn both_kinds_of_keys_agree_with_a_map(
        is_shared: bool,
        packets in prop::collection::vec((1..4u8, 1..4u8, 0..5u8, 1..20 * SECOND), 1..150),
    ) {
        let mut table: Table<Connection> = Table::new(1000);
        // The number, whether the tuple is one of replies, and the end.
        let mut model: HashMap<Tuple4, (u32, bool, u64)> = HashMap::new();
        let mut now = 0;
        for (number, (src, dst, kind, life)) in (0..).zip(packets) {
            now += u64::from(kind) * SECOND;
            while !table.expire(now, 10, |_, _, _| {}) {}
            let end = |host: u8| (Ipv4Addr::new(10, 0, 0, host), u16::from(host));
            let nat = (Ipv4Addr::new(9, 9, 9, 9), 1000 + number as u16);
            let dst = if src == dst { 9 } else { dst };
            let (from, outer) =
                (Tuple4::new(end(src), end(dst), 17), Tuple4::new(nat, end(dst), 17));
            let to = if kind > 2 { outer } else { from };
            let mut batch = LookupBatch::default();
            let known: Vec<Tuple4> = model.keys().copied().chain([from, to.reversed()]).collect();
            let all = known.iter().map(|&tuple| policy_key(tuple, is_shared));
            let all: Vec<(usize, bool)> =
                all.map(|(key, swapped)| (batch.push(key), swapped)).collect();
            batch.look_up(&table);
            for (tuple, (at, swapped)) in known.iter().zip(all) {
                let slot = batch.slot(at);
                prop_assert_eq!(slot, table.find_slot(&batch.key(at)));
                let found = slot.entry().filter(|(id, _)| table.deadline(*id) > now);
                let found = found.map(|(id, is_second)| {
                    let entry = table.get(id);
                    let is_turned = swapped != entry.swapped[usize::from(is_second)];
                    (entry.number, if is_shared { is_turned } else { is_second })
                });
                let live = model.get(tuple).filter(|it| it.2 > now);
                prop_assert_eq!(found, live.map(|it| (it.0, it.1)));
            }
            let replies = to.reversed();
            for tuple in [from, replies] {
                let found = table.find(&policy_key(tuple, is_shared).0);
                found.map(|(id, _)| table.take_expired(id, now));
            }
            if let Some((id, _)) = table.find(&policy_key(from, is_shared).0) {
                if table.flow(id).postpone(now + life).is_err() {
                    table.set_deadline(id, now + life);
                }
                let (number, until) = (table.get(id).number, table.deadline(id));
                model.values_mut().filter(|it| it.0 == number).for_each(|it| it.2 = until);
            } else if table.find(&policy_key(replies, is_shared).0).is_none() {
                let (first, first_swapped) = policy_key(from, is_shared);
                let (second, second_swapped) = match is_shared {
                    true => to.ordered(),
                    false => (replies, false),
                };
                let second = Some(second).filter(|second| *second != first);
                let swapped = [first_swapped, second_swapped];
                let until = now + life;
                let entry = Connection { number, second, swapped };
                assert!(table.insert(first, entry, until, now).is_ok());
                model.insert(from, (number, false, until));
                model.insert(replies, (number, true, until));
                if is_shared {
                    model.insert(from.reversed(), (number, true, until));
                    model.insert(to, (number, false, until));
                }
            }
            model.retain(|_, it| it.2 > now);
        }
    }
}

/// A packet between these hosts and ports (or with this identifier) as a sketch, with its tuple.
fn packet(kind: u8, hosts: (u8, u8), ports: (u16, u16)) -> (String, Tuple) {
    let ((a, b), (c, d)) = (hosts, ports);
    let v4 = |host: u8| Ipv4Addr::new(1, 0, 0, host).into();
    let v6 = |host: u16| std::net::Ipv6Addr::new(1, 0, 0, 0, 0, 0, 0, host).into();
    let tuple = |proto| Tuple { src: (v4(a), c), dst: (v4(b), d), proto };
    let echo = |proto| Tuple { src: (v4(a), c), dst: (v4(b), c), proto };
    let wide = |proto| Tuple { src: (v6(a.into()), c), dst: (v6(b.into()), d), proto };
    match kind {
        0 => (format!("1.0.0.{a}:{c} > 1.0.0.{b}:{d} udp \"data\""), tuple(17)),
        1 => (format!("1.0.0.{a}:{c} > 1.0.0.{b}:{d} udp nocheck"), tuple(17)),
        2 => (format!("1.0.0.{a}:{c} > 1.0.0.{b}:{d} tcp ack 7 \"data\""), tuple(6)),
        3 => (format!("1.0.0.{a} > 1.0.0.{b} icmp type echo ident {c} seq 3"), echo(1)),
        4 => (format!("[1::{a:x}]:{c} > [1::{b:x}]:{d} udp \"data\""), wide(17)),
        _ => (format!("[1::{a:x}]:{c} > [1::{b:x}]:{d} tcp fin ack 9"), wide(6)),
    }
}

fn rewritten(
    bytes: &mut [u8],
    at: HeaderOffsets,
    quoted: Option<HeaderOffsets>,
    (from, to): (&Tuple, &Tuple),
) {
    fn rewrite<A: Address>(
        bytes: &mut [u8],
        at: HeaderOffsets,
        quoted: Option<HeaderOffsets>,
        (from, to): (&Tuple, &Tuple),
    ) -> Option<()> {
        let (from, to) = (TupleKey::<A>::of_tuple(from), TupleKey::of_tuple(to));
        match quoted {
            None => rewrite_tuple(bytes, at, &from, &to),
            Some(quoted) => rewrite_error(bytes, at, quoted, (&from, &to), |_| {}),
        }
    }
    let done = match from.is_ip6() {
        false => rewrite::<Ipv4Addr>(bytes, at, quoted, (from, to)),
        true => rewrite::<std::net::Ipv6Addr>(bytes, at, quoted, (from, to)),
    };
    assert!(done.is_some());
}

proptest! {
    /// A rewritten packet is the one that would have been built, and so is an error about it.
    #[test]
    fn rewriting_a_tuple_equals_building_it(
        kind in 0..6u8,
        hosts: [(u8, u8); 2],
        ports: [(u16, u16); 2],
    ) {
        use castanet_wire::sketch::{self, Layer};
        let build = |text: &str| sketch::build(text).map(|it| it.bytes);
        let ((before, from), (after, to)) =
            (packet(kind, hosts[0], ports[0]), packet(kind, hosts[1], ports[1]));
        let transport = if from.is_ip6() { 40 } else { 20 };
        let mut bytes = build(&before).unwrap();
        let at = HeaderOffsets { network: 0, transport, end: bytes.len(), protocol: from.proto };
        rewritten(&mut bytes, at, None, (&from, &to));
        let shown = |bytes: &[u8]| sketch::print(bytes, Layer::Network);
        prop_assert_eq!(shown(&bytes), shown(&build(&after).unwrap()));
        if !from.is_ip6() {
            let error = |receiver: &Tuple, quoted: &str| {
                format!("77.0.0.1 > {} icmp type unreachable [{quoted}]", receiver.src.0)
            };
            let mut bytes = build(&error(&from, &before)).unwrap();
            let at = HeaderOffsets { protocol: 1, end: bytes.len(), ..at };
            let (network, protocol) = (28, from.proto);
            let quoted = HeaderOffsets { network, transport: 48, end: bytes.len(), protocol };
            rewritten(&mut bytes, at, Some(quoted), (&from, &to));
            prop_assert_eq!(shown(&bytes), shown(&build(&error(&to, &after)).unwrap()));
        }
    }
}
