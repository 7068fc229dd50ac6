//! The order in which tasks run: turns in proportion, timers in order, time that jumps, an end.

use crate::bed::{balance, build, clean, number};
use std::time::{Duration, Instant};

#[test]
fn tasks_take_turns_in_proportion() {
    let text = "a :: Make(1000000) -> End; b :: Make(1000000) -> End; c :: Make(1000000) -> End";
    let mut router = build(text, 1, true);
    router.settle(3000);
    let counts = ["a", "b", "c"].map(|s| number(&mut router, &format!("{s}.count")));
    assert_eq!(counts.iter().sum::<u64>(), 3000 * 32);
    assert!(counts.iter().all(|&n| n.abs_diff(1000 * 32) <= 32), "{counts:?}");
    clean(router);
}

#[test]
fn who_comes_back_from_sleep_does_not_catch_up_on_turns() {
    let text = "a :: Make(1000000) -> End; b :: Make(0) -> End";
    let mut router = build(text, 1, true);
    router.settle(1000);
    router.write("b.limit", "1000000").unwrap();
    router.settle(200);
    let b = number(&mut router, "b.count");
    assert!(b.abs_diff(100 * 32) <= 64, "{b}");
    clean(router);
}

#[test]
fn timers_ring_in_order_and_never_block_a_turn() {
    let mut router = build("a :: Alarm", 1, true);
    router.advance(Duration::from_millis(45));
    assert_eq!(router.read("a.rings").unwrap().trim(), "20 20 30 30 40 40");
    clean(router);
}

#[test]
fn simulated_time_jumps_from_wish_to_wish() {
    let mut router = build("Make(5) -> Keep -> Slow(1000000000) -> Move -> e :: End", 1, true);
    let started = Instant::now();
    router.advance(Duration::from_millis(2500));
    assert_eq!(number(&mut router, "e.count"), 3);
    router.advance(Duration::from_secs(3600));
    assert_eq!(number(&mut router, "e.count"), 5);
    assert!(started.elapsed() < Duration::from_secs(5));
    clean(router);
}

#[test]
fn two_workers_that_pull_through_one_limit_share_it() {
    let text = "Make(1000) -> k :: Keep -> s :: Slow(1000000000); s -> Move -> a :: End; s -> Move -> b :: End";
    let mut router = build(text, 3, true);
    router.advance(Duration::from_millis(4500));
    assert_eq!(number(&mut router, "a.count") + number(&mut router, "b.count"), 5);
    balance(&mut router);
    clean(router);
}

#[test]
fn a_stop_request_ends_a_run() {
    for simulated in [true, false] {
        let mut router = build("Make(1000, STOP true) -> e :: End", 2, simulated);
        let outcome = router.run(None);
        assert_eq!((outcome.status, outcome.interrupted), (0, false));
        assert_eq!(number(&mut router, "e.count"), 1000);
        clean(router);
    }
}

#[test]
fn packets_of_outputs_that_lead_to_the_same_input_keep_their_order() {
    let text = "Make(3200) -> Order(false) -> s :: Spread;
        a :: Order(true) -> ca :: Count -> End; b :: Order(true) -> cb :: Count -> End;
        s[0] -> a; s[1] -> b; s[2] -> a; s[3] -> b; s[4] -> a; s[5] -> cc :: Count -> End; s[6] -> a";
    let mut router = build(text, 1, true);
    router.settle(2000);
    balance(&mut router);
    let counts = ["ca.count", "cb.count", "cc.count"].map(|handler| number(&mut router, handler));
    assert!(counts.iter().all(|&count| count > 300), "{counts:?}");
    assert_eq!(counts.iter().sum::<u64>(), 3200);
    assert_eq!([number(&mut router, "a.wrong"), number(&mut router, "b.wrong")], [0, 0]);
    clean(router);
}
