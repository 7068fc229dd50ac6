//! Examples of dropped packets: one for each element and reason, anew on request.

use crate::bed::{
    balance, build, build_replaceable, build_with, clean, library, options, run_until,
};
use crate::elements::CountState;
use castanet_element::class::{Class, per_batch, per_packet, source};
use castanet_element::fuse;
use castanet_element::node::fused::Fusion;
use castanet_element::prelude::*;
use castanet_element::wire::sketch;
use castanet_runtime::router::{DropRecord, Router};

/// Offset of a packet's number, behind the headers.
const NUMBER: usize = 28;

/// Makes numbered packets, of which the remainder by 8 says what becomes of them.
#[derive(Clone, Element)]
struct NumberSource {
    /// How many packets.
    #[arg(live)]
    limit: u64,
    /// The first number.
    #[arg(default = 0)]
    first: u64,
}

impl Source for NumberSource {
    type Local = CountState;
    type Fate = ();
    fn produce(&self, made: &mut CountState, n: usize, cx: &mut Cx) -> NextRun {
        for _ in 0..n {
            if made.count == self.limit {
                return NextRun::Done;
            }
            let text = "1.0.0.1 > 2.0.0.2 udp ttl 9 len 40";
            let mut bytes = sketch::build(text).expect("is a packet").bytes;
            if matches!(made.count % 8, 5 | 6) {
                bytes[0] = 0xf0;
            }
            let number = (self.first + made.count) as u32;
            bytes[NUMBER..NUMBER + 4].copy_from_slice(&number.to_be_bytes());
            let Some(mut packet) = cx.copy_in(&bytes) else { break };
            packet.set_network_header(0, 20);
            made.count += 1;
            cx.emit((), packet);
        }
        NextRun::Again
    }
}

/// The number of a packet; 2 if it has none.
fn number(bytes: &[u8]) -> u64 {
    let number = bytes.get(NUMBER..NUMBER + 4).and_then(|it| it.try_into().ok());
    number.map_or(2, u32::from_be_bytes).into()
}

/// Sends packets by their numbers.
#[derive(Element)]
struct Sort;

#[derive(Fate)]
enum SortExit {
    /// All others.
    On,
    /// Packets whose number leaves 2.
    #[optional]
    Aside,
    /// Packets whose number leaves 6 or 7.
    #[optional]
    Other,
    /// Packets whose number leaves 0.
    #[drop]
    Zero,
    /// Packets whose number leaves 1.
    #[drop]
    One,
}

impl PerPacket for Sort {
    type On = on::Any;
    type Local = CountState;
    type Fate = SortExit;
    fn packet(&self, _: &mut CountState, packet: &mut Packet) -> SortExit {
        match number(packet.bytes()) % 8 {
            0 => SortExit::Zero,
            1 => SortExit::One,
            2 => SortExit::Aside,
            6 | 7 => SortExit::Other,
            _ => SortExit::On,
        }
    }
}

/// Takes IPv4 packets one by one.
#[derive(Element)]
struct TakeIp;

impl PerPacket for TakeIp {
    type On = on::Ipv4;
    type Local = ();
    type Fate = ();
    fn packet(&self, _: &mut (), _: Ipv4) {}
}

/// Takes batches of IPv4 packets, and drops one by one those that are left.
#[derive(Element)]
struct TakeIpBatch;

#[derive(Fate)]
enum TakeIpBatchExit {
    /// No packet.
    #[allow(dead_code)] // there is none
    On,
    /// All packets.
    #[drop]
    All,
}

impl PerBatch for TakeIpBatch {
    type On = on::Ipv4;
    type Local = ();
    type Fate = TakeIpBatchExit;
    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        batch.into_iter().for_each(|packet| cx.emit(TakeIpBatchExit::All, packet));
    }
}

pub(crate) static CLASSES: &[Class] = &[
    source::<NumberSource>(),
    per_packet::<Sort>(),
    per_packet::<TakeIp>(),
    per_batch::<TakeIpBatch>(),
];

static FUSIONS: &[Fusion] = &[fuse!(packet Sort, packet TakeIp)];

/// Packets of one round of a source.
const ROUND: u64 = 800;
/// Distance between the numbers of two sources.
const APART: u64 = 1_000_000;

/// A source for each worker, in front of the same elements.
fn graph(workers: usize) -> String {
    let sources = (0..workers).map(|n| {
        let first = APART * n as u64;
        format!("m{n} :: NumberSource({ROUND}, {first}) -> s; Home(m{n}, {n});\n")
    });
    let elements = "s :: Sort; t :: TakeIp; b :: TakeIpBatch; k :: Keep(10);
        s -> t -> k -> Move(false) -> End; s[2] -> b -> End;";
    elements.to_owned() + &sources.collect::<String>()
}

/// The reasons in `graph`: name, reason, the remainders of their packets, the packets of a round.
const REASONS: &[(&str, &str, &[u64], u64)] = &[
    ("s", "zero", &[0], ROUND / 8),
    ("s", "one", &[1], ROUND / 8),
    ("s", "aside", &[2], ROUND / 8),
    ("t", "not_ip", &[5], ROUND / 8),
    ("b", "not_ip", &[6], ROUND / 8),
    ("b", "all", &[7], ROUND / 8),
    ("k", "full", &[3, 4], ROUND / 4),
];

/// Numbers of the examples of all reasons, which are the same as the handlers count.
fn examples(router: &mut Router, anew: bool, rounds: u64) -> Vec<u64> {
    let records = router.drop_report(anew).unwrap();
    let sources = (0..4).filter(|n| router.graph().find(&format!("m{n}")).is_some()).count() as u64;
    assert_eq!(records.len(), REASONS.len(), "{records:#?}");
    let of = |&(name, reason, remainders, count): &(&str, &str, &[u64], u64)| {
        let record = records.iter().find(|it| (&*it.name, &*it.reason) == (name, reason)).unwrap();
        let example = record.example.as_ref().unwrap();
        let kept = if name == "k" { 10 } else { 0 };
        assert_eq!(record.count, count * sources * rounds - kept, "{name} {reason}");
        let number = number(&example.image.bytes);
        assert!(remainders.contains(&(number % APART % 8)), "{name} {reason}: {number}");
        assert_eq!((example.image.length, example.image.network), (40, Some(0)));
        assert!(example.time > Time(0));
        number
    };
    let numbers = REASONS.iter().map(of).collect();
    for record in &records {
        let counters = router.counters(record.element);
        let losses = router.losses(record.element, &counters);
        assert!(losses.contains(&(record.reason.clone(), record.count)), "{record:?}");
    }
    numbers
}

fn run_rounds(workers: usize, burst: usize, fused: bool) {
    let mut library = library();
    if fused {
        library.fuse(FUSIONS);
    }
    let mut options = options(workers, true);
    options.burst = burst;
    let mut router = build_with(&library, &graph(workers), &options);
    router.settle(20_000);
    let first = examples(&mut router, false, 1);
    assert_eq!(examples(&mut router, false, 1), first);
    let places: Vec<_> = first[..6].iter().map(|number| number % APART).collect();
    assert_eq!(places, [0, 1, 2, 5, 6, 7]);
    if workers == 1 {
        // The first ten that come to the store find room.
        assert_eq!(first[6], 43);
    }
    let next_round = |router: &mut Router, limit: u64| {
        (0..workers)
            .for_each(|n| router.write(&format!("m{n}.limit"), &limit.to_string()).unwrap());
        router.settle(20_000);
    };
    // Nobody has asked for others: more packets change nothing.
    next_round(&mut router, 2 * ROUND);
    assert_eq!(examples(&mut router, true, 2), first);
    // The old ones stay until there are others.
    assert_eq!(examples(&mut router, false, 2), first);
    next_round(&mut router, 3 * ROUND);
    let second = examples(&mut router, false, 3);
    let places: Vec<_> = second.iter().map(|number| number % APART).collect();
    assert_eq!(places, [0, 1, 2, 5, 6, 7, 3].map(|place| 2 * ROUND + place));
    balance(&mut router);
    clean(router);
}

#[test]
fn each_reason_has_the_example_of_a_packet_that_was_dropped() {
    for workers in [1, 3] {
        for burst in [1, 4, 32, 256] {
            run_rounds(workers, burst, false);
            run_rounds(workers, burst, true);
        }
    }
}

/// The only record of a router with packets `some bytes`, which has an example.
fn only(text: &str) -> DropRecord {
    let mut router = build(text, 1, true);
    router.settle(2000);
    let mut records = router.drop_report(false).unwrap();
    assert_eq!(records.len(), 1, "{records:#?}");
    let record = records.remove(0);
    assert_eq!(&*record.example.as_ref().unwrap().image.bytes, b"some bytes");
    clean(router);
    record
}

#[test]
fn reasons_of_the_runtime_have_examples_and_sentences() {
    let circle = only("Make(1) -> a :: Count -> b :: Count -> a");
    assert_eq!((&*circle.reason, circle.count), ("loop", 1));
    let trip = only("Make(40) -> t :: Trip(40) -> End");
    assert_eq!((&*trip.name, &*trip.class, &*trip.reason), ("t", "Trip", "panic"));
    assert_eq!(trip.count, 8, "the second burst");
    let open = only("Make(5) -> i :: Sort -> End");
    assert_eq!((&*open.name, &*open.reason, open.count), ("i", "aside", 5));
    assert_eq!(
        open.doc,
        "Packets whose number leaves 2. Nothing is connected to output 1, so its packets are dropped."
    );
}

#[test]
fn examples_stay_in_a_hot_swap() {
    for workers in [1, 2] {
        let text = |more: &str| graph(workers).replace("-> t ->", &format!("-> t -> {more}"));
        let mut router = build_replaceable(&text(""), workers);
        let done = |round: u64| {
            move |router: &mut Router| {
                let made = (0..workers).all(|n| {
                    router.read(&format!("m{n}.count")).unwrap() == (round * ROUND).to_string()
                });
                let records = router.drop_report(false).unwrap();
                let count: u64 = records.iter().map(|record| record.count).sum();
                made && count == ROUND * round * workers as u64 - 10
            }
        };
        run_until(&mut router, done(1));
        let first = examples(&mut router, false, 1);
        let more = |router: &mut Router, round: u64| {
            for n in 0..workers {
                router.write(&format!("m{n}.limit"), &(round * ROUND).to_string()).unwrap();
            }
            run_until(router, done(round));
        };
        router.write("hotconfig", &text("c :: Count -> ")).unwrap();
        run_until(&mut router, |router| router.has_handler("c.count", false));
        assert_eq!(examples(&mut router, false, 1), first);
        // The examples that were requested before are recorded already.
        more(&mut router, 2);
        assert_eq!(examples(&mut router, true, 2), first);
        more(&mut router, 3);
        let second = examples(&mut router, false, 3);
        assert!(second.iter().all(|number| number % APART >= 2 * ROUND), "{second:?}");
        balance(&mut router);
        clean(router);
    }
}
