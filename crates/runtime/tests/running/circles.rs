//! Graphs with circles come to an end.

use crate::bed::{balance, build, clean, number};

#[test]
fn packets_in_a_circle_are_dropped_as_such() {
    let mut router = build("Make(64) -> j :: Count -> Count -> j", 1, true);
    router.settle(1000);
    let looped: u64 = router
        .read("drops")
        .unwrap()
        .lines()
        .filter_map(|l| l.split_once(" loop "))
        .map(|(_, n)| n.parse::<u64>().unwrap())
        .sum();
    assert_eq!(looped, 64);
    balance(&mut router);
    clean(router);
}

#[test]
fn packets_that_multiply_in_a_circle_come_to_an_end() {
    let mut router = build("Make(1) -> j :: Count -> t :: Copy(2) -> j; t[1] -> j", 1, true);
    router.settle(10);
    balance(&mut router);
    assert!(router.read("drops").unwrap().contains(" loop "));
    clean(router);
}

#[test]
fn pulls_in_a_circle_find_nothing() {
    let text = "a :: Count -> b :: Count -> a; a -> m :: Move -> End;
        k :: Keep -> f :: First -> Move -> e :: End; f -> Count -> [1] f; Make(5) -> k";
    let mut router = build(text, 1, true);
    router.settle(1000);
    assert_eq!(number(&mut router, "e.count"), 5);
    balance(&mut router);
    clean(router);
}
