//! Elements in a row that run as one pass: nobody can tell but by the time.

use crate::bed::{balance, build, build_fused, clean, number};
use castanet_element::node::fused::MAX_BRANCHES;
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
fn few_packets_that_come_back_do_not_end_a_row() {
    for back in ["p[1] -> Few -> w", "p[1] -> Few -> Count -> w"] {
        let mut router = same(&format!(
            "Make(3200) -> Order(false) -> p :: Part(7) -> w :: Weigh(1000000) -> c :: Count -> d :: Deal -> End;
             d[1] -> End; {back}"
        ));
        let unlucky = number(&mut router, "p.drops.unlucky");
        // Those that came back were visited by each element, and the others were not.
        assert_eq!(number(&mut router, "w.batched"), 3200 / 7, "{back}");
        assert_eq!(number(&mut router, "c.count"), 3200 - unlucky, "{back}");
        clean(router);
    }
    // To the element that divides, and into a branch: before packets of other branches or behind them.
    for place in ["s", "w1", "c1"] {
        let text = branching(3, 3, |_| 1_000_000).replace("p0[1] -> End;", "");
        let text = format!("{text} p0[1] -> Few -> {place}");
        let mut router = build_fused(&text, 1);
        router.settle(2000);
        balance(&mut router);
        assert_eq!(total(&mut router, "w", "batched", 3) > 0, place != "c1", "{place}");
        assert!(total(&mut router, "c", "count", 3) > 2500, "{place}");
        clean(router);
    }
    // Where others come back, too, each element is visited by itself behind them.
    let mut router = same(
        "Make(3200) -> Order(false) -> p :: Part(7) -> w :: Weigh(1000000) -> c :: Count -> d :: Deal -> End;
         d[1] -> End; p[1] -> Count -> w",
    );
    assert_eq!(number(&mut router, "w.batched"), 3200 - number(&mut router, "p.drops.unlucky"));
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

/// A chain that divides into so many branches, which lead to so many ends in turn; its elements are as those
/// of `FUSIONS`.
fn branching(branches: usize, ends: usize, weigh: impl Fn(usize) -> u64) -> String {
    let mut text =
        "Make(3200) -> Order(false) -> p :: Part(50) -> s :: Spread; p[1] -> End;\n".to_owned();
    text += &(0..ends).map(|n| format!("e{n} :: Order(true) -> End;\n")).collect::<String>();
    for n in 0..branches {
        let (weigh, part, end) = (weigh(n), 20 + n, n % ends);
        text += &format!(
            "s[{n}] -> w{n} :: Weigh({weigh}) -> p{n} :: Part({part}) -> c{n} :: Count -> e{end};
             p{n}[1] -> End;\n"
        );
    }
    text
}

/// The sum of a count of elements with these numbers behind their names.
fn total(router: &mut Router, name: &str, handler: &str, count: usize) -> u64 {
    (0..count).map(|n| number(router, &format!("{name}{n}.{handler}"))).sum()
}

#[test]
fn packets_go_on_in_branches_as_if_each_element_were_visited() {
    for (branches, ends) in [(1, 1), (2, 2), (3, 3), (16, 16), (20, 20)] {
        let mut router = same(&branching(branches, ends, |_| 1_000_000));
        assert_eq!(total(&mut router, "e", "wrong", ends), 0, "{branches} branches");
        let fused = branches.min(MAX_BRANCHES);
        assert_eq!(total(&mut router, "w", "batched", fused), 0, "they ran as one pass");
        assert!(total(&mut router, "c", "count", branches) > 2500, "{branches} branches");
        clean(router);
    }
}

#[test]
fn branches_that_end_at_one_input_keep_the_order_of_a_burst() {
    for (branches, ends) in [(4, 1), (5, 2), (20, 3)] {
        let mut router = build_fused(&branching(branches, ends, |_| 1_000_000), 1);
        router.settle(2000);
        balance(&mut router);
        // The packets of branches beyond the most that a chain can have come behind the others.
        assert!(
            branches > 16 || total(&mut router, "e", "wrong", ends) == 0,
            "{branches} branches"
        );
        let mut apart = build(&branching(branches, ends, |_| 1_000_000), 1, true);
        apart.settle(2000);
        for count in ["c", "w", "p"] {
            let of = |router: &mut Router| total(router, count, "count", branches);
            assert_eq!(of(&mut apart), of(&mut router), "{branches} branches");
        }
        clean(apart);
        clean(router);
    }
}

#[test]
fn what_an_element_of_a_branch_wants_in_a_batch_keeps_its_place() {
    for every in [1, 2, 3, 7, 31, 33] {
        let mut router = same(&branching(4, 4, |n| every + n as u64));
        assert_eq!(total(&mut router, "e", "wrong", 4), 0, "every {every}");
        assert!(total(&mut router, "w", "batched", 4) > 3000 / 40, "every {every}");
        clean(router);
    }
}

#[test]
fn outputs_without_a_branch_are_outputs_of_the_element_that_divides() {
    let text = "Make(3200) -> Order(false) -> p :: Part(50) -> s :: Spread; p[1] -> End;
        s[0] -> w0 :: Weigh(1000000) -> a :: Part(20) -> Count -> e :: End; a[1] -> End;
        s[1] -> c1 :: Count -> e; s[2] -> e;
        s[3] -> w3 :: Weigh(1000000) -> q :: Part(20) -> Count -> End; q[1] -> End";
    let mut router = same(text);
    assert!(number(&mut router, "c1.count") > 500);
    assert_eq!(number(&mut router, "w3.batched"), 0);
    clean(router);
}

#[test]
fn a_panic_in_a_branch_costs_its_burst_at_the_element_that_panicked() {
    let text = "Make(3200) -> o :: Order(false) -> a :: Part(5000) -> s :: Spread; a[1] -> End;
        s[0] -> Weigh(1000000) -> t :: Trip(500) -> c0 :: Count -> e :: End;
        s[1] -> Weigh(1000000) -> Trip(100000) -> c1 :: Count -> e";
    let mut router = build_fused(text, 1);
    router.settle(2000);
    balance(&mut router);
    let lost = number(&mut router, "t.drops.panic");
    assert!(lost >= 32 && lost.is_multiple_of(32), "{lost}");
    assert!(number(&mut router, "e.count") > 3200 - 5 * 32 - 1);
    assert_eq!(router.dismantle().leaked_frames, 0);
}

#[test]
fn code_for_certain_arguments_runs_only_while_the_element_has_them() {
    for (argument, native) in [("7", true), ("8", false)] {
        let text = format!("Make(3200) -> k :: CodeProbe({argument}) -> Order(false) -> End");
        let mut router = build_fused(&text, 1);
        router.settle(5);
        let before = number(&mut router, "k.native") + number(&mut router, "k.own");
        assert_eq!(number(&mut router, if native { "k.own" } else { "k.native" }), 0);
        router.write("k.number", if native { "8" } else { "7" }).expect("a live argument");
        router.settle(2000);
        balance(&mut router);
        let (first, second) = if native { ("k.native", "k.own") } else { ("k.own", "k.native") };
        assert!(before > 0 && before < 3200);
        assert_eq!(number(&mut router, first), before);
        assert_eq!(number(&mut router, second), 3200 - before);
        clean(router);
    }
}

#[test]
fn a_chain_may_begin_where_it_divides() {
    let mut router = same(
        "Make(320) -> d :: Deal; d[0] -> a :: CodeProbe(1) -> Order(false) -> e :: End;
         d[1] -> b :: CodeProbe(2) -> Order(false) -> e",
    );
    assert_eq!(number(&mut router, "a.own"), 160);
    assert_eq!(number(&mut router, "b.own"), 160);
    clean(router);
}

/// Packets that three probes have looked at.
fn seen(router: &mut Router, name: &str) -> u64 {
    (1..=3).map(|n| number(router, &format!("{name}{n}.seen"))).sum()
}

#[test]
fn elements_that_pass_a_burst_see_no_packet_of_it() {
    let probes = |name: &str| {
        format!("{name}1 :: PaintProbe(1) -> {name}2 :: PaintProbe(2) -> {name}3 :: PaintProbe(3)")
    };
    let text = format!("Make(3200) -> {} -> Order(false) -> e :: End", probes("p"));
    let mut router = build_fused(&text, 1);
    router.settle(5);
    let before = number(&mut router, "e.count");
    assert!(before > 0 && before < 3200);
    assert_eq!(seen(&mut router, "p"), 0);
    // All packets are of the colour that one of them waits for now.
    router.write("p2.color", "0").expect("a live argument");
    router.settle(2000);
    balance(&mut router);
    assert_eq!(number(&mut router, "p2.count"), 3200 - before);
    assert_eq!(number(&mut router, "e.count"), 3200);
    clean(router);

    let text = format!(
        "Make(3200) -> s :: Spread; s[0] -> {} -> e :: End; s[1] -> Repaint(2) -> {} -> e",
        probes("a"),
        probes("b")
    );
    let mut router = same(&text);
    assert_eq!(seen(&mut router, "a"), 0);
    let painted = number(&mut router, "b2.count");
    assert!(painted > 2000, "{painted}");
    assert_eq!(seen(&mut router, "b"), 3 * painted);
    clean(router);
}

#[test]
fn what_changes_packets_ends_what_is_known_of_their_burst() {
    let mut router = same(
        "Make(3200) -> Repaint(2) -> PaintProbe(1) -> p :: PaintProbe(2) -> PaintProbe(3)
            -> Order(false) -> End",
    );
    assert_eq!(number(&mut router, "p.count"), 3200);
    clean(router);
}

#[test]
fn packets_that_have_left_a_chain_do_not_count_in_its_bursts() {
    let probes = |name: &str| {
        format!("{name}1 :: HeaderProbe -> {name}2 :: HeaderProbe -> {name}3 :: HeaderProbe")
    };
    // None has options, one in twenty has, and those leave before the branches.
    let text = |every: u64| {
        format!("Make(3200) -> HeaderMaker({every}) -> {} -> Order(false) -> End", probes("p"))
    };
    let mut router = same(&text(0));
    assert_eq!(seen(&mut router, "p"), 0);
    clean(router);
    let mut router = same(&text(20));
    assert_eq!(number(&mut router, "p1.count"), 160);
    assert!(seen(&mut router, "p") > 3 * 3000);
    clean(router);
    let text = format!(
        "Make(3200) -> HeaderMaker(20) -> f :: HeaderFilter -> s :: Spread; f[1] -> aside :: End;
         s[0] -> {} -> e :: End; s[1] -> {} -> e",
        probes("a"),
        probes("b")
    );
    let mut router = same(&text);
    assert_eq!((seen(&mut router, "a"), seen(&mut router, "b")), (0, 0));
    assert_eq!(number(&mut router, "aside.count"), 160);
    assert_eq!(number(&mut router, "e.count"), 3040);
    clean(router);
}
