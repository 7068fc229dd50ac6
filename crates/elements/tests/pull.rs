//! Pull paths on several workers: they rest when there are no packets, and no wake-up is lost.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_runtime::router::Router;
use common::{Lines, build, build_with_console, clean, number, run_until, run_until_count};
use std::sync::Arc;

/// Three sources on two workers push to queues, and a third worker pulls from these through
/// switches and schedulers. The rates let the puller rest most of the time, so almost every burst
/// has to wake it. If a wake-up is lost, nothing else wakes it: reading a count does not.
fn run_scheduler(scheduler: &str, mut on_call: impl FnMut(&mut Router, u64)) {
    const EACH: u64 = 3000;
    let text = format!(
        "a :: RatedSource(RATE 20000, LIMIT {EACH}) -> qa :: Queue(10000) -> [0] s :: Suppressor;
         b :: RatedSource(RATE 17000, LIMIT {EACH}) -> qb :: Queue(10000) -> [1] s;
         c :: RatedSource(RATE 13000, LIMIT {EACH}) -> qc :: Queue(10000) -> [2] s;
         m :: {scheduler};
         s[0] -> w :: PullSwitch -> [0] m; Idle -> [1] w;
         s[1] -> Bypass -> [1] m;
         s[2] -> RED(9000, 10000, 0) -> [2] m;
         m -> u :: Unqueue -> n :: Counter -> Discard;
         StaticThreadSched(a 0, b 1, c 0, u 2)"
    );
    let mut router = build(&text, 3);
    let mut calls = 0;
    run_until(&mut router, |router| {
        calls += 1;
        on_call(router, calls);
        number(router, "n.count") >= 3 * EACH
    });
    for queue in ["qa.length", "qb.length", "qc.length"] {
        assert_eq!(number(&mut router, queue), 0, "{scheduler}: {queue}");
    }
    clean(router);
}

const SCHEDULERS: [&str; 4] = ["RoundRobinSched", "PrioSched", "DRRSched", "StrideSched(1, 2, 3)"];

#[test]
fn no_wake_up_is_lost_through_switches_and_schedulers() {
    SCHEDULERS.iter().for_each(|scheduler| run_scheduler(scheduler, |_, _| {}));
}

/// An element that found no packet because a port was closed pulls again when the port opens, also
/// after the last packet has come.
#[test]
fn a_port_that_opens_wakes_the_pulling_element() {
    const LAST_CALL: u64 = 400;
    let toggle_ports = |router: &mut Router, call: u64| {
        let open = call.is_multiple_of(2);
        match call {
            ..LAST_CALL => {
                router.write(&format!("s.active{}", call / 2 % 3), &open.to_string()).unwrap()
            }
            LAST_CALL => {
                router.write("w.switch", "-1").unwrap();
                router.write("s.reset", "").unwrap();
                router.write("w.switch", "0").unwrap();
            }
            _ => {}
        }
    };
    SCHEDULERS.iter().for_each(|scheduler| run_scheduler(scheduler, toggle_ports));
}

/// A source waits while all its queues are full, and continues when there is room. Neither side
/// polls, so each has to wake the other many times.
#[test]
fn no_wake_up_is_lost_where_queues_are_full() {
    const ALL: u64 = 60_000;
    let text = format!(
        "a :: InfiniteSource(LIMIT {ALL}, BURST 7) -> q :: Queue(3) -> u :: Unqueue2(2)
            -> r :: Queue(2) -> v :: Unqueue(BURST 1) -> n :: Counter -> Discard;
         StaticThreadSched(a 0, u 1, v 2)"
    );
    let mut router = build(&text, 3);
    run_until_count(&mut router, "n.count", ALL);
    assert_eq!(number(&mut router, "q.drops") + number(&mut router, "r.drops"), 0);
    clean(router);
}

/// Packets that the scheduler has pulled in advance are emitted even if the other input stays
/// empty.
#[test]
fn time_sorted_streams_come_out_whole_while_packets_arrive() {
    let text = "a :: RatedSource(RATE 9000, LIMIT 2000) -> SetTimestamp -> qa :: Queue -> [0] t :: TimeSortedSched;
                b :: RatedSource(RATE 4000, LIMIT 1000) -> SetTimestamp -> qb :: Queue -> [1] t;
                t -> u :: Unqueue -> n :: Counter -> Discard; StaticThreadSched(a 0, b 1, u 2)";
    let mut router = build(text, 3);
    run_until_count(&mut router, "n.count", 3000);
    clean(router);
}

/// The order holds for packets that are in the queues when the scheduler pulls, so the streams
/// are complete before it begins.
#[test]
fn time_sorted_streams_come_out_in_order_and_whole() {
    let text = "a :: RatedSource(RATE 9000, LIMIT 2000) -> SetTimestamp -> qa :: Queue(2000) -> [0] t :: TimeSortedSched;
                b :: RatedSource(RATE 4000, LIMIT 1000) -> SetTimestamp -> qb :: Queue(1000) -> [1] t;
                t -> u :: Unqueue(ACTIVE false) -> Print(TIMESTAMP true, CONTENTS NONE)
                  -> n :: Counter -> Discard; StaticThreadSched(a 0, b 1, u 2)";
    let lines = Arc::new(Lines::default());
    let mut router = build_with_console(text, 3, lines.clone());
    run_until(&mut router, |router| {
        number(router, "qa.length") == 2000 && number(router, "qb.length") == 1000
    });
    router.write("u.active", "true").unwrap();
    run_until_count(&mut router, "n.count", 3000);
    clean(router);
    let lines = lines.all();
    // `SECONDS.MICROSECONDS:    LENGTH`, all of the same number of digits.
    let times: Vec<&str> = lines.iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(times.len(), 3000);
    assert!(times.is_sorted(), "packets left in another order than that of their time stamps");
}

#[test]
fn a_time_sorted_merge_stops_the_router_when_its_inputs_are_empty() {
    let text = "a :: InfiniteSource(LIMIT 500) -> [0] t :: TimeSortedSched(STOP true);
                b :: InfiniteSource(LIMIT 300) -> [1] t; t -> Unqueue -> n :: Counter -> Discard";
    let mut router = build(text, 1);
    let outcome = router.run(None);
    assert_eq!((outcome.status, outcome.interrupted), (0, false));
    assert_eq!(number(&mut router, "n.count"), 800);
    clean(router);
}

#[test]
fn a_replay_stops_the_router_after_its_loops() {
    let text = "InfiniteSource(LIMIT 700) -> ReplayUnqueue(STOP 3) -> n :: Counter -> Discard";
    let mut router = build(text, 1);
    assert!(!router.run(None).interrupted);
    assert_eq!(number(&mut router, "n.count"), 2100);
    clean(router);
}
