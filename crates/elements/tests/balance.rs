//! `BalancedThreadSched` moves tasks to workers with less load.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_runtime::router::Router;
use common::{build, build_simulated, clean, number, run_until};
use std::time::Duration;

fn home_threads(router: &mut Router, elements: &[&str]) -> Vec<u64> {
    elements.iter().map(|it| number(router, &format!("{it}.home_thread"))).collect()
}

#[test]
fn tasks_move_away_from_a_busy_worker() {
    // Tasks are assigned to workers in turn: `a` and `c` share a worker and use all of its time.
    let text = "sched :: BalancedThreadSched(20);
                a :: InfiniteSource -> x :: Counter -> Discard;
                b :: RatedSource(RATE 100) -> y :: Counter -> Discard;
                c :: InfiniteSource -> z :: Counter -> Discard;
                d :: RatedSource(RATE 100) -> w :: Counter -> Discard";
    let mut router = build(text, 2);
    assert_eq!(home_threads(&mut router, &["a", "b", "c", "d"]), [0, 1, 0, 1]);
    run_until(&mut router, |router| number(router, "sched.moves") > 0);
    let now = home_threads(&mut router, &["a", "c"]);
    assert_ne!(now[0], now[1]);
    for (source, counter) in [("a", "x"), ("b", "y"), ("c", "z"), ("d", "w")] {
        let (sent, received) = (format!("{source}.count"), format!("{counter}.count"));
        assert_eq!(number(&mut router, &sent), number(&mut router, &received), "{source}");
    }
    clean(router);
}

#[test]
fn sources_and_unqueuers_move_with_their_elements() {
    let text = "sched :: BalancedThreadSched(20);
                StaticThreadSched(e 1);
                a :: InfiniteSource(LIMIT 3000000) -> p :: Queue(500) -> u :: Unqueue
                    -> x :: Counter -> all :: Counter -> Discard;
                c :: InfiniteSource(LIMIT 3000000) -> q :: Queue(500) -> v :: Unqueue
                    -> y :: Counter -> all;
                e :: RatedSource(RATE 1000, LIMIT 100) -> all";
    let mut router = build(text, 2);
    let is_done = |router: &mut Router| {
        let lost = number(router, "p.drops") + number(router, "q.drops");
        number(router, "all.count") + lost == 6_000_100
    };
    run_until(&mut router, is_done);
    for (queue, counter) in [("p", "x"), ("q", "y")] {
        let through = number(&mut router, &format!("{counter}.count"));
        assert_eq!(through + number(&mut router, &format!("{queue}.drops")), 3_000_000);
    }
    assert_eq!(number(&mut router, "e.home_thread"), 1);
    clean(router);
}

#[test]
fn tasks_that_a_user_assigned_stay() {
    let text = "sched :: BalancedThreadSched(10); StaticThreadSched(a 0, c 0);
                a :: InfiniteSource -> x :: Counter -> Discard;
                c :: InfiniteSource -> Discard";
    let mut router = build(text, 2);
    let mut calls = 0;
    run_until(&mut router, |_| {
        calls += 1;
        calls == 40
    });
    assert_eq!(home_threads(&mut router, &["a", "c"]), [0, 0]);
    assert_eq!(number(&mut router, "sched.moves"), 0);
    let error = router.write("a.home_thread", "1").unwrap_err();
    assert!(error.message().contains("StaticThreadSched says so"), "{}", error.message());
    clean(router);
}

/// Runs sources of these rates on two workers for ten intervals. Returns the worker of each source
/// and the number of moves.
fn balanced(increasing: bool, rates: &[u32]) -> (Vec<u64>, u64) {
    let source = |(n, rate): (usize, &u32)| {
        format!("s{n} :: RatedSource(RATE {rate}) -> c{n} :: Counter -> Discard;")
    };
    let sources: String = rates.iter().enumerate().map(source).collect();
    let mut router =
        build_simulated(&format!("sched :: BalancedThreadSched(100, {increasing}); {sources}"), 2);
    router.advance(Duration::from_secs(1));
    let names: Vec<String> = (0..rates.len()).map(|n| format!("s{n}")).collect();
    let moves = number(&mut router, "sched.moves");
    let threads = home_threads(&mut router, &names.iter().map(String::as_str).collect::<Vec<_>>());
    for name in &names {
        let received = format!("{}.count", name.replace('s', "c"));
        let sent = number(&mut router, &format!("{name}.count"));
        assert_eq!(number(&mut router, &received), sent);
    }
    clean(router);
    (threads, moves)
}

#[test]
fn equal_loads_stay() {
    assert_eq!(balanced(true, &[3000, 3000, 3000, 3000]), (vec![0, 1, 0, 1], 0));
    assert_eq!(balanced(true, &[3000]), (vec![0], 0));
}

#[test]
fn unequal_loads_move_once() {
    assert_eq!(balanced(true, &[3000, 10, 3000, 10]), (vec![1, 1, 0, 1], 1));
    // Worker 0 begins with 5000, 1000 and 3000.
    assert_eq!(balanced(true, &[5000, 1000, 1000, 1000, 3000, 1000]).1, 3);
    assert_eq!(balanced(false, &[5000, 1000, 1000, 1000, 3000, 1000]).1, 1);
}
