//! A bug in an element costs a burst, and what is lost is counted.

use crate::bed::{balance, build, build_impatient, clean, number, run_until};
use castanet_runtime::router::Router;
use std::time::{Duration, Instant};

#[test]
fn a_panic_costs_one_burst() {
    for workers in [1, 3] {
        let mut router = build("m :: Make(3200) -> t :: Trip(1000) -> e :: End", workers, true);
        router.settle(1000);
        assert_eq!(number(&mut router, "e.count"), 3200 - 3 * 32);
        assert_eq!(number(&mut router, "t.drops.panic"), 3 * 32);
        balance(&mut router);
        let report = router.dismantle();
        assert_eq!((report.leaked_frames, report.panics), (0, 3));
    }
}

#[test]
fn a_panic_in_pull_context_costs_one_burst() {
    let text = "Make(3200) -> Keep(10000) -> t :: Trip(1000) -> Move -> e :: End";
    let mut router = build(text, 1, true);
    router.settle(10000);
    assert_eq!(number(&mut router, "e.count"), 3200 - 3 * 32);
    balance(&mut router);
    clean(router);
}

#[test]
fn a_source_that_panics_loses_what_it_held_and_goes_on() {
    let mut router = build("Make(40) -> k :: Keep -> f :: Fumble -> e :: End", 1, true);
    router.advance(Duration::from_millis(100));
    assert_eq!(number(&mut router, "e.count"), 5 * 4 + 5 * 2);
    assert_eq!(number(&mut router, "f.drops.panic"), 5 * 2);
    balance(&mut router);
    let report = router.dismantle();
    assert_eq!((report.leaked_frames, report.panics), (0, 5));
}

#[test]
fn what_a_handler_throws_away_is_counted() {
    let mut router = build("Make(40) -> k :: Keep(30) -> m :: Move(false) -> e :: End", 3, true);
    router.settle(1000);
    router.write("k.reset", "").unwrap();
    assert_eq!(number(&mut router, "k.drops.reset"), 30);
    assert_eq!(number(&mut router, "k.drops.full"), 10);
    balance(&mut router);
    clean(router);
}

#[test]
fn handlers_are_exact_while_workers_run() {
    let text = "Make(300000) -> c :: Count -> e :: End; Make(200000) -> c; Make(100000) -> c";
    let mut router = build(text, 3, false);
    let (mut last, mut reads) = (0, 0);
    run_until(&mut router, |r| {
        let now = number(r, "c.count");
        assert!(now >= last && now <= 600_000);
        (last, reads) = (now, reads + 1);
        now == 600_000
    });
    assert_eq!(number(&mut router, "e.count"), 600_000);
    assert!(reads > 0);
    balance(&mut router);
    clean(router);
}

#[test]
fn a_worker_that_does_not_answer_is_named_and_the_router_goes_on() {
    let text = "Make(100) -> w :: Watch -> e :: End; Make(100) -> c :: Count -> End; Home(c, 1)";
    let mut router = build_impatient(text, 2, Duration::from_millis(50));
    run_until(&mut router, |router| {
        let worker = router.assigned()[router.graph().find("w").unwrap()].home;
        let stuck = format!("worker {worker} has not answered for 0.05 s");
        let said = router.write("w.stall", "500").unwrap_err();
        assert_eq!(said.message(), stuck);
        for handler in ["c.count", "w.drops", "w.icounts", "drops"] {
            let said = router.read(handler).map_err(|error| error.message());
            assert_eq!(said, Err(stuck.clone()), "{handler}");
        }
        while router.read("e.count").is_err() {}
        true
    });
    assert_eq!([number(&mut router, "e.count"), number(&mut router, "c.count")], [100, 100]);
    balance(&mut router);
    clean(router);
}

#[test]
fn a_probe_waits_for_no_worker_and_one_that_hangs_leaves_it_open() {
    let text = "Make(100) -> w :: Watch -> e :: End; Make(100) -> c :: Count -> End; Home(c, 1)";
    let mut router = build_impatient(text, 2, Duration::from_millis(50));
    let answered = |router: &mut Router| {
        let asked = Instant::now();
        let mut probe = router.probe_liveness();
        assert!(asked.elapsed() < Duration::from_millis(40), "the probe waits");
        std::thread::sleep(Duration::from_millis(100));
        let is_answered = probe.is_answered();
        while !probe.is_answered() {}
        is_answered
    };
    run_until(&mut router, |router| {
        assert!(answered(router));
        router.write("w.stall", "500").unwrap_err();
        assert!(!answered(router));
        assert!(answered(router));
        true
    });
    // Workers that are not on threads have nothing to answer.
    assert!(router.probe_liveness().is_answered());
    balance(&mut router);
    clean(router);
}
