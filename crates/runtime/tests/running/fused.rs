//! Elements in a row that run as one pass: nobody can tell but by the time.

use crate::bed::{balance, build, build_fused, clean, number};
use castanet_runtime::router::Router;

/// Each element's counters, by name, and all read handlers that count.
fn counts(router: &mut Router) -> Vec<String> {
    let elements = router.graph().elements.len();
    let of = |router: &mut Router, it: usize| {
        let (name, counters) = (router.graph().elements[it].name.clone(), router.counters(it));
        let read = ["count", "wrong"]
            .map(|handler| router.read(&format!("{name}.{handler}")).unwrap_or_default());
        format!("{name} {counters:?} {read:?}")
    };
    (0..elements).map(|it| of(router, it)).collect()
}

/// Runs both ways; gives the fused one.
fn same(text: &str) -> Router {
    let (mut apart, mut fused) = (build(text, 1, true), build_fused(text, 1));
    for router in [&mut apart, &mut fused] {
        router.settle(2000);
        balance(router);
    }
    assert_eq!(counts(&mut apart), counts(&mut fused), "{text}");
    clean(apart);
    fused
}

#[test]
fn packets_leave_by_every_exit_as_if_each_element_were_visited() {
    let mut router = same(
        "Make(3200) -> Order(false) -> p :: Part(7) -> w :: Weigh(1000000) -> c :: Count
            -> d :: Deal -> e0 :: End; p[1] -> aside :: End; d[1] -> e1 :: End",
    );
    assert_eq!(number(&mut router, "p.count"), 3200);
    assert_eq!(number(&mut router, "aside.count"), 3200 / 7);
    assert_eq!(number(&mut router, "p.drops.unlucky"), 3200_u64.div_ceil(7));
    assert_eq!(number(&mut router, "w.batched"), 0, "they ran as one pass");
    assert_eq!(
        number(&mut router, "e0.count") + number(&mut router, "e1.count"),
        number(&mut router, "c.count")
    );
    clean(router);
}

#[test]
fn what_an_element_wants_in_a_batch_keeps_its_place() {
    for every in [1, 2, 3, 10, 31, 32, 33, 100] {
        let mut router = same(&format!(
            "Make(3200) -> Order(false) -> p :: Part(50) -> w :: Weigh({every}) -> c :: Count
                -> d :: Deal -> o :: Order(true) -> End; p[1] -> End; d[1] -> End"
        ));
        assert_eq!(number(&mut router, "o.wrong"), 0);
        assert!(number(&mut router, "w.batched") >= 3000 / every, "every {every}");
        assert!(every < 50 || number(&mut router, "w.batched") < 3000, "every {every}");
        clean(router);
    }
}

#[test]
fn any_output_may_lead_on_where_outputs_are_open() {
    let mut router = same("Make(100) -> d :: Deal -> End; d[1] -> c :: Count -> End");
    assert_eq!(number(&mut router, "c.count"), 50);
    clean(router);
}

#[test]
fn a_panic_in_a_pass_costs_its_burst_at_the_element_that_panicked() {
    let text = "Make(3200) -> p :: Part(100) -> t :: Trip(1000) -> c :: Count -> e :: End;
                p[1] -> End";
    let mut router = build_fused(text, 1);
    router.settle(2000);
    balance(&mut router);
    let lost = number(&mut router, "t.drops.panic");
    assert!((2 * 32..=3 * 32).contains(&lost), "{lost}");
    // The packets behind it in its burst have reached no element.
    assert!((3200 - lost..3200).contains(&number(&mut router, "p.count")));
    assert!(number(&mut router, "e.count") > 3200 - 32 - 32 - lost);
    let report = router.dismantle();
    assert_eq!((report.leaked_frames, report.panics), (0, 3));
}

#[test]
fn an_element_that_packets_come_to_from_two_sides_begins_a_row() {
    let text = "Make(96) -> p :: Part(10) -> c :: Count -> End; Make(64) -> c; p[1] -> End";
    let mut router = same(text);
    assert!(number(&mut router, "c.count") > 64);
    clean(router);
}

#[test]
fn every_worker_has_passes_of_its_own() {
    let text = "Make(3200) -> p :: Part(10) -> c :: Count -> e :: End; Make(3200) -> p;
                p[1] -> End";
    let mut router = build_fused(text, 2);
    router.settle(2000);
    balance(&mut router);
    assert_eq!(number(&mut router, "p.count"), 6400);
    clean(router);
}
