//! Several workers: packets move between workers and none is lost.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_runtime::router::Router;
use castanet_runtime::worker::driver::DriverEvent;
use common::{build, clean, number, run_until_count};
use std::time::{Duration, Instant};

#[test]
fn a_pipeliner_passes_all_packets_to_its_own_worker() {
    let text = "a :: InfiniteSource(LIMIT 100000, BURST 32) -> p :: Pipeliner(BLOCKING true)
                    -> s :: CPUSwitch; s[0] -> zero :: Counter -> Discard;
                s[1] -> one :: Counter -> Discard; s[2] -> two :: Counter -> Discard;
                b :: InfiniteSource(LIMIT 100000, BURST 7) -> p;
                StaticThreadSched(a 0, b 2, p 1)";
    let mut router = build(text, 3);
    run_until_count(&mut router, "one.count", 200_000);
    assert_eq!(number(&mut router, "one.count"), 200_000);
    assert_eq!((number(&mut router, "zero.count"), number(&mut router, "two.count")), (0, 0));
    assert_eq!((number(&mut router, "p.count"), number(&mut router, "p.dropped")), (200_000, 0));
    clean(router);
}

#[test]
fn a_pipeliner_that_is_full_drops_and_counts() {
    let text = "a :: InfiniteSource(LIMIT 100000, BURST 1) -> p :: Pipeliner(4, VERBOSE false)
                    -> c :: Counter -> Discard; StaticThreadSched(a 0, p 1)";
    let mut router = build(text, 2);
    run_until_count(&mut router, "a.count", 100_000);
    let (passed, dropped) = (number(&mut router, "c.count"), number(&mut router, "p.dropped"));
    assert_eq!(dropped, number(&mut router, "p.drops.full"));
    assert_eq!(passed + dropped + number(&mut router, "p.length"), 100_000);
    clean(router);
}

#[test]
fn a_pipeliner_has_room_for_each_worker_that_pushes() {
    let sources: String = (0..7)
        .map(|n| format!("s{n} :: InfiniteSource(LIMIT 1) -> p; StaticThreadSched(s{n} {n});"))
        .collect();
    let text = format!(
        "p :: Pipeliner(CAPACITY 4, ACTIVE false) -> c :: Counter -> Discard; {sources}
         StaticThreadSched(p 7)"
    );
    let mut router = build(&text, 8);
    run_until_count(&mut router, "p.count", 7);
    assert_eq!((number(&mut router, "p.length"), number(&mut router, "p.dropped")), (7, 0));
    router.write("p.active", "true").expect("a handler");
    run_until_count(&mut router, "c.count", 7);
    clean(router);
}

#[test]
fn a_pipeliner_takes_from_its_rings_in_rotation() {
    let text = "a :: InfiniteSource(LIMIT 3) -> Paint(0)
                    -> p :: Pipeliner(CAPACITY 4, ACTIVE false) -> q :: SimpleQueue(4)
                    -> u :: Unqueue(ACTIVE false) -> s :: PaintSwitch;
                b :: InfiniteSource(LIMIT 3) -> Paint(1) -> p;
                s[0] -> zero :: Counter -> Discard; s[1] -> one :: Counter -> Discard;
                StaticThreadSched(a 0, b 1, p 2, u 2)";
    let mut router = build(text, 3);
    run_until_count(&mut router, "p.count", 6);
    router.write("p.active", "true").expect("a handler");
    run_until_count(&mut router, "q.drops", 2);
    router.write("u.active", "true").expect("a handler");
    run_until_count(&mut router, "zero.count", 2);
    run_until_count(&mut router, "one.count", 2);
    assert_eq!(number(&mut router, "p.dropped"), 0);
    clean(router);
}

#[test]
fn a_larger_capacity_wakes_the_source() {
    let text = "s :: InfiniteSource -> q :: Queue(50) -> Idle; StaticThreadSched(s 1)";
    for workers in [1, 2] {
        let mut router = build(text, workers);
        run_until_count(&mut router, "s.count", 50);
        router.write("q.capacity", "20").expect("a handler");
        assert_eq!((number(&mut router, "q.length"), number(&mut router, "q.drops")), (20, 0));
        router.write("q.capacity", "60").expect("a handler");
        run_until_count(&mut router, "s.count", 90);
        assert_eq!((number(&mut router, "q.length"), number(&mut router, "q.drops")), (60, 0));
        clean(router);
    }
}

#[test]
fn workers_that_call_handlers_of_each_other_do_not_deadlock() {
    let path = |n: usize| {
        let other = (n + 1) % 3;
        format!(
            "i{n} :: InfiniteSource(LIMIT 300) -> Script(write p{other}.color {n}) -> p{n} :: Paint(9)
                -> Counter(COUNT_CALL 100 p{n}.color 7) -> c{n} :: Counter -> Discard;
             StaticThreadSched(i{n} {n});"
        )
    };
    let mut router = build(&(0..3).map(path).collect::<String>(), 3);
    for n in 0..3 {
        run_until_count(&mut router, &format!("c{n}.count"), 300);
        assert_eq!(number(&mut router, &format!("c{n}.count")), 300);
    }
    clean(router);
}

#[test]
fn workers_are_spread_evenly_over_outputs() {
    let text =
        "a :: InfiniteSource(LIMIT 100) -> s :: ExactCPUSwitch; s[0] -> x :: Counter -> Discard;
                s[1] -> y :: Counter -> Discard; b :: InfiniteSource(LIMIT 100) -> s;
                StaticThreadSched(a 0, b 2)";
    let mut router = build(text, 3);
    for counter in ["x.count", "y.count"] {
        run_until_count(&mut router, counter, 100);
    }
    assert_eq!((number(&mut router, "x.count"), number(&mut router, "y.count")), (100, 100));
    clean(router);
}

#[test]
fn each_worker_has_its_own_queue() {
    let text = "a :: InfiniteSource(LIMIT 100, BURST 10) -> b :: BatchStats -> q :: CPUQueue(70);
                c :: InfiniteSource(LIMIT 60, BURST 10) -> b;
                q -> u :: Unqueue(ACTIVE false) -> x :: Counter -> Discard;
                q[1] -> v :: Unqueue(ACTIVE false) -> x;
                StaticThreadSched(a 0, c 1, u 0, v 1)";
    let mut router = build(text, 2);
    run_until_count(&mut router, "q.length", 130);
    run_until_count(&mut router, "q.drops", 30);
    assert_eq!(router.read("b.dump").expect("a distribution"), "10: 16\n");
    for unqueue in ["u.active", "v.active"] {
        router.write(unqueue, "true").expect("an unqueuer");
    }
    run_until_count(&mut router, "x.count", 130);
    assert_eq!(number(&mut router, "q.length"), 0);
    clean(router);
}

#[test]
fn handlers_list_the_workers_of_an_element_and_full_push_paths() {
    let text = "a :: InfiniteSource -> n :: Null -> q :: Queue -> u :: Unqueue -> d :: Discard;
                b :: InfiniteSource -> n; StaticThreadSched(a 0, b 2, u 1)";
    let mut router = build(text, 3);
    let mut read = |handler: &str| router.read(handler).expect("a common handler");
    assert_eq!((read("n.workers"), read("n.full_push")), ("0 2".into(), "true".into()));
    assert_eq!((read("d.workers"), read("d.full_push")), ("1".into(), "false".into()));
    assert_eq!(read("q.full_push"), "false");
    clean(router);
}

/// An Ethernet frame with a UDP packet; the argument is its TTL, protocol and header checksum.
fn frame(ttl_protocol_checksum: &str) -> String {
    format!(
        "DATA \\<020000000001 020000000002 0800 4500002e 00000000 {ttl_protocol_checksum}
            0a000002 0a010002 00350035 001a0000 0000000000000000 0000000000000000 0000>"
    )
}

/// The counters of all elements of a router after its sources have sent all packets.
fn counters_of_router(workers: usize) -> Vec<String> {
    let (good, last, bad) = (frame("401166bb"), frame("0111a5bb"), frame("401166bc"));
    let mut router = build(
        &format!(
            "a :: InfiniteSource({good}, LIMIT 60000, BURST 32) -> mix :: Null;
             b :: InfiniteSource({last}, LIMIT 30000, BURST 7) -> mix;
             c :: InfiniteSource({bad}, LIMIT 20000, BURST 3) -> mix;
             mix -> types :: Classifier(12/0800, -) -> Strip(14) -> check :: CheckIPHeader
                -> routes :: StaticIPLookup(10.1.0.0/16 0, 0.0.0.0/0 1)
                -> DropBroadcasts -> p :: PaintTee(2) -> o :: IPGWOptions(10.1.0.1)
                -> FixIPSrc(10.1.0.1) -> ttl :: DecIPTTL -> f :: IPFragmenter(1500)
                -> EtherEncap(0x0800, 2:0:0:0:1:2, 2:0:0:0:1:1) -> out :: Counter -> Discard;
             types[1] -> Discard; routes[1] -> Discard; p[1] -> Discard; o[1] -> Discard;
             ttl[1] -> Discard; f[1] -> Discard;"
        ),
        workers,
    );
    for (source, count) in [("a.count", 60_000), ("b.count", 30_000), ("c.count", 20_000)] {
        run_until_count(&mut router, source, count);
    }
    assert_eq!(number(&mut router, "out.count"), 60_000);
    assert_eq!(number(&mut router, "ttl.drops"), 30_000);
    assert_eq!(number(&mut router, "check.drops"), 20_000);
    let mut counts = Vec::new();
    for element in 0..router.graph().elements.len() {
        let counters = router.counters(element);
        counts.push(format!("{} {counters:?}", router.graph().elements[element].name));
    }
    clean(router);
    counts
}

#[test]
fn a_router_counts_the_same_on_any_number_of_workers() {
    let expected = counters_of_router(1);
    for workers in [2, 3] {
        assert_eq!(counters_of_router(workers), expected, "{workers} workers");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it is a thread that waits")]
fn a_blocked_worker_does_not_block_the_others() {
    const TIME: Duration = Duration::from_millis(200);
    let text = "a :: InfiniteSource(BURST 32) -> zero :: Counter -> Discard;
                b :: InfiniteSource(BURST 32) -> one :: Counter -> Discard;
                t :: BlockThread; StaticThreadSched(a 0, b 1, t 1)";
    let mut router = build(text, 2);
    let blocked = router.graph().find("t").unwrap();
    assert_eq!(router.assigned()[blocked].home, 1);
    let (line, mut result) = (router.line(), None);
    let mut block = |router: &mut Router| {
        if result.is_none() {
            let (start, before) = (Instant::now(), number(router, "zero.count"));
            router.write("t.block", &format!("{}ms", TIME.as_millis())).unwrap();
            result = Some((start.elapsed(), number(router, "zero.count") - before));
            line.send(DriverEvent::Interrupted).unwrap();
        }
    };
    router.run(Some((Duration::from_millis(5), &mut block)));
    let (took, passed) = result.unwrap();
    assert!(took >= TIME && passed > 0, "{passed} packets in {took:?}");
    clean(router);
}

#[test]
fn metrics_are_those_of_all_workers() {
    let text = "a :: InfiniteSource(LIMIT 700) -> c :: Counter -> d :: Discard;
                b :: InfiniteSource(LIMIT 300) -> c;
                x :: InfiniteSource(LIMIT 3) -> q :: Queue(5) -> Idle;
                StaticThreadSched(a 0, b 1, x 1)";
    let mut router = build(text, 2);
    run_until_count(&mut router, "d.count", 1000);
    run_until_count(&mut router, "x.count", 3);
    let values = router.metrics().unwrap();
    let of = |name: &str| {
        let named = values.iter().filter(|it| it.metric.name == name);
        named.map(|it| (it.element, it.value.to_string())).collect::<Vec<_>>()
    };
    let place = |name: &str| router.graph().find(name).unwrap();
    // Each worker has counted for itself; the queue is one for both.
    assert_eq!(of("counted_packets"), [(place("c"), "1000".to_owned())]);
    assert_eq!(of("queue_highwater_packets"), [(place("q"), "3".to_owned())]);
    assert_eq!(router.panics().unwrap(), [0, 0]);
    clean(router);
}
