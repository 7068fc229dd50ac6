//! Nothing sleeps through its wake-up, and sleeps leave the machine idle.

use crate::bed::{balance, build, clean, number, run_until};
use std::time::{Duration, Instant};

#[test]
fn no_wake_up_is_lost_between_workers() {
    // Bursts with pauses around the length of a nap: the movers fall asleep
    // and are woken all the time, from other workers and their own.
    let text = "m :: Make(20000, 3000) -> k :: Keep -> Move -> k2 :: Keep -> Move -> k3 :: Keep -> e :: End;
        n :: Make(20000, 70000) -> k";
    for workers in [1, 2, 3] {
        let mut router = build(text, workers, false);
        run_until(&mut router, |r| {
            let lost: u64 =
                ["k", "k2", "k3"].iter().map(|k| number(r, &format!("{k}.drops.full"))).sum();
            number(r, "e.count") + lost == 40000
        });
        balance(&mut router);
        clean(router);
    }
}

#[test]
fn sources_wait_for_room_and_are_woken() {
    let text =
        "f :: Fill(30000) -> Count -> k :: Keep(7) -> Move -> l :: Keep(100) -> Move -> e :: End";
    for workers in [1, 2, 3] {
        let mut router = build(text, workers, false);
        run_until(&mut router, |r| number(r, "e.count") + number(r, "l.drops.full") == 30000);
        assert_eq!(number(&mut router, "k.drops.full"), 0);
        balance(&mut router);
        clean(router);
    }
}

#[test]
fn a_write_upstream_wakes_the_puller() {
    // The puller rests until the source it pulls from is changed.
    let mut router = build("m :: Make(0) -> Slow(0) -> Move -> e :: End", 3, true);
    router.settle(1000);
    router.write("m.limit", "3").unwrap();
    router.settle(1000);
    assert_eq!(number(&mut router, "e.count"), 3);
    clean(router);
}

#[test]
fn short_sleeps_are_kept_and_leave_the_machine_idle() {
    // 32 packets every 320 µs: a hundred thousand a second.
    let mut router = build("m :: Make(20000, 320000) -> e :: End", 1, false);
    let started = Instant::now();
    run_until(&mut router, |r| number(r, "e.count") == 20000);
    let time = started.elapsed();
    assert!(time >= Duration::from_millis(195), "{time:?}");
    clean(router);
}
