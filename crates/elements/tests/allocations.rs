//! In the steady state bursts allocate no memory: frames come from the pool, and arrays of
//! descriptors from the free list of the thread.
//! arrays of descriptors from the thread's list.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_runtime::router::{Router, TeardownReport};
use common::build;

/// An Ethernet frame with a UDP packet from 10.0.0.2 to 10.1.0.2.
const FRAME: &str = "DATA \\<020000000001 020000000002 0800
    4500002e 00000000 401166bb 0a000002 0a010002 00350035 001a0000
    0000000000000000 0000000000000000 0000>";

/// A router with all elements between two devices.
fn router_path() -> String {
    format!(
        "InfiniteSource({FRAME}, BURST 32) -> types :: Classifier(12/0806, 12/0800, -);
         types[0] -> Discard; types[2] -> Discard;
         types[1] -> Strip(14) -> CheckIPHeader
            -> routes :: StaticIPLookup(10.0.0.0/16 1, 10.1.0.0/16 0, 0.0.0.0/0 1);
         routes[1] -> Discard;
         routes[0] -> DropBroadcasts -> same :: PaintTee(2) -> options :: IPGWOptions(10.1.0.1)
            -> FixIPSrc(10.1.0.1) -> ttl :: DecIPTTL -> fragments :: IPFragmenter(1500)
            -> EtherEncap(0x0800, 02:00:00:00:01:02, 02:00:00:00:01:01) -> seen :: Counter
            -> Discard;
         same[1] -> Discard; options[1] -> Discard; ttl[1] -> Discard; fragments[1] -> Discard;"
    )
}

/// Runs until all lists have reached their lengths, then asserts that as many steps again allocate
/// no memory while packets reach the counter `seen`; then takes the router apart. No packet may be
/// dropped.
fn assert_no_allocation(text: &str) {
    let mut router = run_without_allocation(text);
    assert_eq!(router.read("drops").unwrap(), "");
    assert_eq!(router.dismantle(), TeardownReport { leaked_frames: 0, panics: 0, lost_workers: 0 });
}

/// Like [`assert_no_allocation`], but packets may be dropped and the router is returned.
fn run_without_allocation(text: &str) -> Router {
    let mut router = build(text, 1);
    let seen = |router: &mut Router| router.read("seen.count").unwrap().parse::<u64>().unwrap();
    router.settle(500);
    let before = seen(&mut router);
    let counted = allocation_counter::measure(|| _ = router.settle(500));
    let passed = seen(&mut router) - before;
    assert!(passed > 500, "{passed} packets:\n{text}");
    assert_eq!(counted.count_total, 0, "{counted:?} for {passed} packets:\n{text}");
    router
}

#[test]
fn router_path_allocates_nothing() {
    assert_no_allocation(&router_path());
}

/// One burst has frames of all kinds: valid ones, ARP, a bad checksum, TTL 1.
#[test]
fn early_exits_of_a_fused_node_allocate_nothing() {
    let bad = FRAME.replace("66bb", "66bc");
    let last = FRAME.replace("401166bb", "0111a5bb");
    let arp = FRAME.replace("0800\n", "0806\n");
    let sources = [FRAME, &bad, &last, &arp]
        .map(|frame| format!("InfiniteSource({frame}, BURST 8) -> all;"))
        .join("\n");
    let whole = router_path();
    let (_, path) = whole.split_once("-> types").unwrap();
    let text = format!("all :: Queue(1000); {sources} all -> Unqueue -> types {path}");
    let mut router = run_without_allocation(&text);
    assert!(router.read("ttl.drops").unwrap().parse::<u64>().unwrap() > 1000);
    assert!(router.read("drops").unwrap().contains("bad_checksum"));
    assert_eq!(router.dismantle(), TeardownReport { leaked_frames: 0, panics: 0, lost_workers: 0 });
}

#[test]
fn queues_allocate_nothing() {
    assert_no_allocation(
        "InfiniteSource(BURST 32) -> Queue(1000) -> Unqueue -> seen :: Counter -> Discard",
    );
}

#[test]
fn branches_and_merges_allocate_nothing() {
    assert_no_allocation(
        "InfiniteSource(BURST 32) -> s :: RoundRobinSwitch; seen :: Counter;
         s[0] -> seen; s[1] -> seen; s[2] -> seen; seen -> t :: Tee(2); t[0] -> Paint(1) -> Discard; t[1] -> Discard",
    );
}

#[test]
fn the_counter_detects_an_allocation() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(counted.count_total, 1);
}
