//! State of elements that goes to another instance: both sides are routers with clocks of their own.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_element::portable_state::{StateEpoch, StateRecord};
use castanet_element::time::Time;
use castanet_elements::library;
use castanet_runtime::console::Console;
use castanet_runtime::router::{Options, Router, StatePlaces};
use castanet_runtime::worker::{StateChange, StatePosition};
use common::{Lines, build_simulated, clean, number};
use std::sync::Arc;

/// A router under simulated time, and the lines that its elements print.
fn build(text: &str) -> (Router, Arc<Lines>) {
    let lines = Arc::new(Lines::default());
    let mut options = Options::new(lines.clone() as Arc<dyn Console>);
    (options.workers, options.simulated) = (1, true);
    let router = Router::from_text(text, &library(), &options);
    (router.unwrap_or_else(|wrong| panic!("{wrong}")), lines)
}

/// A router that has run a configuration to its end.
fn run(text: &str) -> Router {
    let (mut router, _) = build(text);
    router.run(None);
    router
}

fn epoch(router: &Router) -> StateEpoch {
    StateEpoch(router.clock().now())
}

/// All records of the compound `t1`, by parts of which none is long.
fn export(router: &mut Router, epoch: StateEpoch) -> (StatePlaces, Vec<StateChange>) {
    let places = router.state_places("t1").unwrap();
    let (mut all, mut next) = (Vec::new(), Some(StatePosition::default()));
    while let Some(from) = next {
        let (changes, behind) =
            router.export_state("t1", &places.places, true, epoch, from).unwrap();
        assert!(changes.len() <= 600, "{} records in a part", changes.len());
        all.extend(changes);
        next = behind;
    }
    (places, all)
}

/// Gives the state of the compound `t1` to another router; returns the records.
fn hand_over(from: &mut Router, to: &mut Router) -> (StatePlaces, Vec<StateChange>) {
    let (places, changes) = export(from, epoch(from));
    let there = epoch(to);
    let failed = to.import_state("t1", &places.places, changes.clone(), there).unwrap();
    assert!(failed.is_empty(), "{failed:?}");
    to.resume_with_state("t1", &places.places).unwrap();
    (places, changes)
}

/// The number of the place of a field.
fn place(places: &StatePlaces, element: &str, field: &str) -> u32 {
    let is_it = |it: &_| {
        let castanet_runtime::worker::StatePlace { element: name, field: own, .. } = it;
        name == element && own == field
    };
    places.places.iter().position(is_it).unwrap() as u32
}

const COUNTERS: &str = "
    s :: InfiniteSource(LIMIT 5, BURST 5) -> UDPIPEncap(1.0.0.1, 5, 2.0.0.2, 6) -> [0]t1;
    t :: InfiniteSource(LIMIT 4, BURST 4) -> IPEncap(99, 1.0.0.1, 2.0.0.2, TTL 1) -> [1]t1;
    t1 :: {
        input -> c :: Counter -> ac :: AverageCounter -> bs :: BatchStats -> mc :: MultiCounter
              -> ab :: AverageBatchCounter -> ch :: CheckIPHeader -> cu :: CheckUDPHeader
              -> ttl0 :: DecIPTTL -> AggregateIP(ip dst) -> av :: AggregateCounterVector(255)
              -> fr :: IPFragmenter(1500) -> np :: NumberPacket(OFFSET 0) -> t :: Tee;
        t[0] -> d :: Discard; t[1] -> q :: Queue(3);
        input[1] -> bad :: CheckUDPHeader -> Discard;
        bad[1] -> ttl :: DecIPTTL -> q2 :: Queue -> ru :: RatedUnqueue(1000) -> Discard;
        ttl[1] -> q3 :: Queue -> bw :: BandwidthRatedUnqueue(1MBps) -> u :: Counter -> Discard;
    };
    DriverManager(wait 1s, stop);";

#[test]
fn counts_of_both_sides_add_up() {
    let (mut a, mut b) = (run(COUNTERS), build_simulated(COUNTERS, 1));
    let linear = [
        "c.count", "c.byte_count", "ac.count", "ac.byte_count", "mc.count", "mc.byte_count",
        "ab.count_packets_total", "ab.count_batches_total", "ch.count", "av.count", "np.count", "d.count",
        "bad.drops", "ttl.drops", "bw.count", "bw.byte_count", "u.count",
    ];
    hand_over(&mut a, &mut b);
    let before: Vec<u64> = linear.iter().map(|it| number(&mut a, &format!("t1/{it}"))).collect();
    for (handler, count) in linear.iter().zip(&before) {
        assert!(*count > 0, "{handler}");
        assert_eq!(number(&mut b, &format!("t1/{handler}")), *count, "{handler}");
    }
    assert_eq!(b.read("t1/bs.dump").unwrap(), a.read("t1/bs.dump").unwrap());
    assert_eq!(b.read("t1/ac.time").unwrap(), a.read("t1/ac.time").unwrap());
    assert_eq!([number(&mut b, "t1/q.drops"), number(&mut b, "t1/q.highwater_length")], [2, 3]);
    b.run(None);
    for (handler, count) in linear.iter().zip(&before) {
        assert_eq!(number(&mut b, &format!("t1/{handler}")), 2 * count, "{handler}");
    }
    assert_eq!(b.read("t1/bs.average").unwrap(), "5");
    // The queue was full with the packets that came.
    assert_eq!(["length", "drops", "highwater_length"].map(|it| number(&mut b, &format!("t1/q.{it}"))), [3, 7, 3]);
    clean(a);
    clean(b);
}
