//! Examples of dropped packets in whole routers.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_elements::library;
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{DropRecord, Options, Router};
use common::build_simulated;
use std::sync::Arc;
use std::time::Duration;

/// The record of one element and reason.
fn record(router: &mut Router, name: &str, reason: &str) -> DropRecord {
    let records = router.drop_report(false).unwrap();
    let mut its = records.iter().filter(|it| (&*it.name, &*it.reason) == (name, reason));
    let found = its.next().unwrap_or_else(|| panic!("{name} {reason} in {records:#?}")).clone();
    assert!(its.next().is_none());
    found
}

fn example(router: &mut Router, name: &str, reason: &str) -> String {
    record(router, name, reason).example.unwrap().image.text()
}

/// An Ethernet frame with a UDP packet from 10.0.0.2 to 10.1.0.2.
const FRAME: &str = "DATA \\<020000000001 020000000002 0800
    4500002e 00000000 401166bb 0a000002 0a010002 00350035 001a0000
    0000000000000000 0000000000000000 0000>";

#[test]
fn a_router_shows_a_packet_for_each_reason() {
    for workers in [1, 3] {
        let bad = FRAME.replace("66bb", "66bc");
        let expired = FRAME.replace("401166bb", "0111a5bb");
        let text = format!(
            "InfiniteSource({FRAME}, LIMIT 3) -> all :: Null; InfiniteSource({bad}, LIMIT 3) -> all;
             InfiniteSource({expired}, LIMIT 3) -> all;
             all -> Strip(14) -> check :: CheckIPHeader -> filter :: IPClassifier(ttl 64, -)
                -> routes :: StaticIPLookup(9.0.0.0/8 0) -> Discard;
             filter[1] -> ttl :: DecIPTTL -> q :: Queue(1) -> Idle"
        );
        let mut router = build_simulated(&text, workers);
        router.settle(1000);
        let packet = "10.0.0.2:53 > 10.1.0.2:53 udp";
        let cases = [
            ("check", "bad_checksum", format!("{packet} ttl 64 len 46 badsum nocheck")),
            ("routes", "unmatched", format!("{packet} ttl 64 len 46 nocheck")),
            ("ttl", "expired", format!("{packet} ttl 1 len 46 nocheck")),
        ];
        for (name, reason, wanted) in cases {
            assert_eq!(example(&mut router, name, reason), wanted);
            let DropRecord { count, doc, .. } = record(&mut router, name, reason);
            assert_eq!(count, 3);
            assert!(doc.starts_with("Packets ") && doc.ends_with('.'), "{doc}");
            assert!(!doc.contains('\n'), "{doc}");
        }
    }
}

#[test]
fn packets_without_an_answer_to_arp_have_an_example() {
    let source = "InfiniteSource(DATA \\<4500001c 00000000 401166cd 0a000002 0a010002 00350035
        00080000>, LIMIT 4) -> CheckIPHeader";
    let limits = "ENTRY_PACKET_CAPACITY 2, PACKET_TIMEOUT 1s";
    let wanted = "10.0.0.2:53 > 10.1.0.2:53 udp ttl 64 len 28 nocheck";
    let own = format!(
        "{source} -> a :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1, {limits}) -> Discard; Idle -> [1] a;"
    );
    let shared = format!(
        "t :: ARPTable({limits}); {source} -> a :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1, TABLE t)
            -> Discard; Idle -> [1] a;"
    );
    for (text, name) in [(own, "a"), (shared, "t")] {
        let mut router = build_simulated(&text, 1);
        router.settle(1000);
        // Two wait, and two find no room.
        router.advance(Duration::from_secs(5));
        assert_eq!(example(&mut router, name, "unanswered"), wanted);
        assert_eq!(record(&mut router, name, "unanswered").count, 4);
    }
}

#[test]
fn packets_that_cannot_be_kept_have_an_example() {
    let text = "InfiniteSource(LENGTH 60000, LIMIT 200) -> Null -> q :: Queue(1000) -> Idle";
    let mut options = Options::new(Arc::new(SilentConsole));
    (options.simulated, options.frames, options.memory) = (true, Some(1024), Some(1 << 22));
    let mut router = Router::from_text(text, &library(), &options).unwrap();
    router.settle(1000);
    let DropRecord { count, example, .. } = record(&mut router, "q", "no_frame");
    assert!(count > 100, "{count}");
    assert_eq!(example.unwrap().image.length, 60_000);
}
