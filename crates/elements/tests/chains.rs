//! Chains of elements that see IPv4, with packets that are marked so, or not yet, or are none: the same counts
//! and the same packets in the same order as with elements one by one.

mod common;

use castanet_elements::library;
use castanet_runtime::cores::Cores;
use castanet_runtime::graph::explain;
use castanet_runtime::router::{ErrorStyle, Options, Router, plan};
use common::{Lines, clean, number};
use std::sync::Arc;

/// 400 packets without a mark, 400 with one, 400 that are too long for the link, and 400 that are not IPv4,
/// mixed in bursts, each with a number.
const SOURCE: &str = r"
    InfiniteSource(LENGTH 20, LIMIT 400, BURST 4) -> UDPIPEncap(1.0.0.1, 7, 2.0.0.2, 7)
        -> Strip(1) -> Unstrip(1) -> MarkIPHeader -> q :: Queue(2000);
    InfiniteSource(LENGTH 20, LIMIT 400, BURST 2) -> UDPIPEncap(1.0.0.1, 7, 2.0.0.2, 7) -> q;
    InfiniteSource(LENGTH 900, LIMIT 400, BURST 1) -> UDPIPEncap(1.0.0.1, 7, 2.0.0.2, 7) -> q;
    InfiniteSource(LENGTH 48, LIMIT 400, BURST 3) -> q;
    q -> Unqueue(BURST 32) -> NumberPacket(OFFSET 28) -> first :: DropBroadcasts -> ";

/// The chains of a configuration, a line each.
fn chains(text: &str) -> String {
    let library = library();
    let (flat, mut diagnostics, _) = library.flatten("test", text);
    let cores = Cores::here(1, &[]);
    let planned = plan(&flat, &library, &cores, ErrorStyle::Castanet, &mut diagnostics);
    explain::passes(&planned.graph, &planned.fused)
}

/// The router after a run, and: the counters of each element, all drops, and the packets at the end.
fn run(text: &str, fuse: bool) -> (Router, Vec<String>) {
    let lines = Arc::new(Lines::default());
    let mut options = Options::new(lines.clone());
    (options.simulated, options.fuse) = (true, fuse);
    let mut router =
        Router::from_text(text, &library(), &options).unwrap_or_else(|wrong| panic!("{wrong}"));
    router.settle(20_000);
    let elements = router.graph().elements.len();
    let count = |it| {
        let counters = router.counters(it);
        format!("{} {counters:?}", router.graph().elements[it].name)
    };
    let mut found: Vec<String> = (0..elements).map(count).collect();
    found.push(router.read("drops").expect("every router has it"));
    found.extend(lines.all());
    (router, found)
}

/// Asserts that these elements are a chain, which does what they do one by one. Returns the router with
/// the chain.
fn same(config: &str, chain: &str) -> Router {
    let text = format!("{SOURCE}{config}");
    let found = chains(&text);
    assert!(found.lines().any(|line| line.trim() == chain), "{found}");
    let (apart, expected) = run(&text, false);
    clean(apart);
    let (router, found) = run(&text, true);
    assert!(expected.len() > 800, "{expected:?}");
    assert_eq!(found, expected, "{config}");
    router
}

/// The packets that an element has dropped.
fn lost(router: &mut Router, name: &str) -> u64 {
    let it = router.graph().elements.iter().position(|it| it.name == name);
    router.counters(it.expect("an element of this name")).lost()
}

#[test]
fn packets_that_are_not_ipv4_leave_a_chain_where_they_would_one_by_one() {
    let mut router = same(
        "options :: IPGWOptions(10.0.0.1) -> fix :: FixIPSrc(10.0.0.1) -> ttl :: DecIPTTL
            -> ether :: EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)
            -> end :: Counter -> Print(x, MAXLENGTH 60) -> Discard",
        "first -> options -> fix -> ttl -> ether",
    );
    assert_eq!(number(&mut router, "end.count"), 1200);
    assert_eq!(lost(&mut router, "options"), 400);
    clean(router);
}

#[test]
fn packets_that_are_not_ipv4_pass_the_place_of_an_element_that_is_absent() {
    let mut router = same(
        "ttl :: DecIPTTL -> ether :: EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)
            -> end :: Counter -> Print(x, MAXLENGTH 60) -> Discard",
        "first -> ttl -> ether",
    );
    assert_eq!(number(&mut router, "end.count"), 1200);
    assert_eq!(lost(&mut router, "ttl"), 400);
    clean(router);
}

#[test]
fn packets_that_have_to_go_in_a_batch_keep_those_behind_them() {
    let mut router = same(
        "tee :: PaintTee(2) -> options :: IPGWOptions(10.0.0.1) -> fix :: FixIPSrc(10.0.0.1)
            -> ttl :: DecIPTTL -> fragments :: IPFragmenter(600)
            -> ether :: EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)
            -> end :: Counter -> Print(x, MAXLENGTH 60) -> Discard;
         tee[1] -> Discard; options[1] -> Discard; ttl[1] -> Discard; fragments[1] -> Discard",
        "first -> tee -> options -> fix -> ttl -> fragments -> ether",
    );
    assert_eq!(number(&mut router, "end.count"), 1600);
    clean(router);
}
