//! Chains of elements that see IPv4, with packets that are marked so, or not yet, or are none: nobody can
//! tell them from elements one by one.

mod common;

use castanet_elements::library;
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{Options, Router};
use common::{clean, number};
use std::sync::Arc;

/// 400 packets without a mark, 400 with one, 400 that are too long for the link, and 400 that are not IPv4,
/// mixed in bursts.
const SOURCE: &str = r"
    InfiniteSource(LENGTH 20, LIMIT 400, BURST 4) -> UDPIPEncap(1.0.0.1, 7, 2.0.0.2, 7)
        -> Strip(1) -> Unstrip(1) -> MarkIPHeader -> q :: Queue(2000);
    InfiniteSource(LENGTH 20, LIMIT 400, BURST 2) -> UDPIPEncap(1.0.0.1, 7, 2.0.0.2, 7) -> q;
    InfiniteSource(LENGTH 900, LIMIT 400, BURST 1) -> UDPIPEncap(1.0.0.1, 7, 2.0.0.2, 7) -> q;
    InfiniteSource(LENGTH 20, LIMIT 400, BURST 3) -> q;
    q -> Unqueue(BURST 32) -> first :: DropBroadcasts -> ";

/// The counters of each element behind the queue, and all drops.
fn counts(config: &str, fuse: bool) -> (Router, Vec<String>) {
    let mut options = Options::new(Arc::new(SilentConsole));
    (options.simulated, options.fuse) = (true, fuse);
    let text = format!("{SOURCE}{config}");
    let mut router =
        Router::from_text(&text, &library(), &options).unwrap_or_else(|wrong| panic!("{wrong}"));
    router.settle(20_000);
    let elements = router.graph().elements.len();
    let count = |it| {
        let counters = router.counters(it);
        format!("{} {counters:?}", router.graph().elements[it].name)
    };
    let mut counts: Vec<String> = (0..elements).map(count).collect();
    counts.push(router.read("drops").unwrap_or_default());
    (router, counts)
}

/// Asserts that a configuration behaves the same in a chain and one by one. Returns the former.
fn same(config: &str) -> Router {
    let (apart, expected) = counts(config, false);
    clean(apart);
    let (router, found) = counts(config, true);
    assert_eq!(found, expected, "{config}");
    router
}

#[test]
fn packets_that_are_not_ipv4_leave_a_chain_where_they_would_one_by_one() {
    let mut router = same(
        "IPGWOptions(10.0.0.1) -> FixIPSrc(10.0.0.1) -> ttl :: DecIPTTL
            -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> end :: Counter -> Discard",
    );
    assert_eq!(number(&mut router, "end.count"), 1200);
    clean(router);
}

#[test]
fn packets_that_have_to_go_in_a_batch_keep_those_behind_them() {
    let mut router = same(
        "tee :: PaintTee(2) -> options :: IPGWOptions(10.0.0.1) -> FixIPSrc(10.0.0.1)
            -> ttl :: DecIPTTL -> fragments :: IPFragmenter(600)
            -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> end :: Counter -> Discard;
         tee[1] -> Discard; options[1] -> Discard; ttl[1] -> Discard; fragments[1] -> Discard",
    );
    assert_eq!(number(&mut router, "end.count"), 1600);
    clean(router);
}
