//! `MemoryAccount`: limits of kept packets and of the heap.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_element::packet::AccountAllocator;
use castanet_runtime::router::Router;
use common::{build, build_simulated, clean, number, replaceable, run_until, run_until_count};

#[global_allocator]
static ALLOCATOR: AccountAllocator = AccountAllocator;

/// A tenant that makes an entry for each flow, and a generator of many flows.
const FLOWS: &str = "
    elementclass Tenant { input -> q :: Queue -> u :: Unqueue
        -> f :: AggregateIPFlows(CAPACITY 1000000) -> c :: Counter -> Discard }
    s :: FastUDPFlows(20000, -1, 60, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 1000000, 1)
        -> Strip(14) -> MarkIPHeader -> sw :: RoundRobinSwitch;
    sw[0] -> a :: Tenant; sw[1] -> b :: Tenant;";

#[test]
fn queues_of_an_account_share_its_packets() {
    let text = "a :: { s :: InfiniteSource(LIMIT 1000) -> sw :: RoundRobinSwitch;
                       sw[0] -> q0 :: Queue(300) -> u0 :: Unqueue(ACTIVE false) -> Discard;
                       sw[1] -> q1 :: Queue(300) -> u1 :: Unqueue(ACTIVE false) -> Discard };
                b :: { s :: InfiniteSource(LIMIT 1000) -> q :: Queue(600) -> Unqueue(ACTIVE false) -> Discard };
                x :: MemoryAccount(a, PACKETS 400); y :: MemoryAccount(b);
                DriverManager(wait 1s, stop);";
    let mut router = build_simulated(text, 1);
    router.run(None);
    let kept = ["x.packets", "a/q0.length", "a/q1.length", "y.packets", "b/q.length"];
    let kept = kept.map(|handler| number(&mut router, handler));
    assert_eq!((kept[0], kept[1] + kept[2]), (400, 400), "{kept:?}");
    assert_eq!((kept[3], kept[4]), (600, 600), "{kept:?}");
    assert_eq!(router.read("y.packet_limit").unwrap(), "none");
    let table = router.read("accounts").unwrap();
    assert!(table.lines().any(|row| row.starts_with("a\t") && row.ends_with("\t400")), "{table}");
    clean(router);
}

#[test]
fn room_comes_back_with_the_packets_that_leave() {
    let text = "a :: { q :: Queue -> u :: Unqueue(ACTIVE false) -> c :: Counter -> Discard };
                s :: RatedSource(RATE 1000, LIMIT 500) -> a/q; x :: MemoryAccount(a, PACKETS 100);
                DriverManager(wait 1s, write a/u.active true, wait 10ms, stop);";
    let text = text.replace("-> a/q;", "-> a;").replace("{ q ::", "{ input -> q ::");
    let mut router = build_simulated(&text, 1);
    router.run(None);
    assert_eq!(number(&mut router, "a/q.drops.no_memory"), 400);
    assert_eq!((number(&mut router, "a/c.count"), number(&mut router, "x.packets")), (100, 0));
    clean(router);
}

#[test]
fn a_full_heap_stops_packets_before_the_tables_grow() {
    let text = format!(
        "{FLOWS} x :: MemoryAccount(a, HEAP 1M); y :: MemoryAccount(b);
         DriverManager(wait 10s, stop);"
    );
    let mut router = build_simulated(&text, 1);
    router.run(None);
    let heaps = ["x.heap", "y.heap"].map(|handler| number(&mut router, handler));
    assert!(heaps[0] >= 1 << 20, "{heaps:?}");
    // The last growth of a table doubles it.
    assert!(heaps[0] < 3 << 20 && heaps[1] > 2 * heaps[0], "{heaps:?}");
    let counts = ["a/c.count", "b/c.count"].map(|handler| number(&mut router, handler));
    assert!(counts[0] > 1000 && counts[1] > 4 * counts[0], "{counts:?}");
    assert!(number(&mut router, "a/q.drops.no_memory") > 1000);
    assert_eq!(number(&mut router, "b/q.drops.no_memory"), 0);
    clean(router);
}

#[test]
fn the_heap_is_counted_exactly_through_swaps() {
    let text = |passes: &str, more: &str| {
        format!(
            "a :: {{ s :: FastUDPFlows(1000, -1, 60, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 10, 1000000)
                     -> Strip(14) -> MarkIPHeader
                     -> f :: AggregateIPFlows {passes} -> c :: Counter -> Discard;
                    l :: RadixIPLookup(1.0.0.0/8 0); Idle -> l -> Discard {more} }};
             x :: MemoryAccount(a, HEAP 100M)"
        )
    };
    let mut router = replaceable(&text("", ""));
    run_until_count(&mut router, "a/c.count", 100);
    let before = number(&mut router, "x.heap");
    assert!(before > 0, "elements are on the heap when they are built");
    for n in 0..20 {
        let (passes, more) = match n % 2 {
            0 => ("-> Null", "; Idle -> q :: Queue -> Unqueue -> Discard"),
            _ => ("", ""),
        };
        // Other arguments tell when the swap has happened.
        let limit = format!("HEAP {}M", 101 + n);
        router.write("hotconfig", &text(passes, more).replace("HEAP 100M", &limit)).unwrap();
        let bytes = ((101 + n) << 20).to_string();
        run_until(&mut router, |router| router.read("x.heap_limit").unwrap() == bytes);
    }
    let after = number(&mut router, "x.heap");
    assert!(after.abs_diff(before) < 4096, "{before} {after}");
    clean(router);
}

#[test]
fn routes_that_handlers_add_are_charged() {
    let text = "a :: { s :: RatedSource(RATE 10) -> l :: RadixIPLookup(0.0.0.0/0 0) -> Discard };
                x :: MemoryAccount(a)";
    let mut router = build(text, 1);
    let before = number(&mut router, "x.heap");
    for n in 0..100 {
        (0..100).for_each(|m| router.write("a/l.add", &format!("10.{n}.{m}.0/24 0")).unwrap());
    }
    let full = number(&mut router, "x.heap");
    assert!(full > before + 100_000, "{before} {full}");
    clean(router);
}

#[test]
fn wrong_limits_are_errors() {
    let options = castanet_runtime::router::Options::new(std::sync::Arc::new(
        castanet_runtime::console::SilentConsole,
    ));
    for (text, why) in [
        ("Idle -> a :: Discard; MemoryAccount(b)", "no element named 'b'"),
        (
            "Idle -> a :: Discard; MemoryAccount(a); MemoryAccount(a)",
            "'a' has limits of memory already",
        ),
        ("Idle -> a :: Discard; MemoryAccount(a, HEAP x)", "a size such as 64M"),
        ("Idle -> a :: Discard; MemoryAccount(a, PACKETS -1)", "PACKETS"),
    ] {
        let built = Router::from_text(text, &castanet_elements::library(), &options);
        let error = built.err().map(|wrong| wrong.to_string()).unwrap_or_default();
        assert!(error.contains(why), "{text}: {error}");
    }
}
