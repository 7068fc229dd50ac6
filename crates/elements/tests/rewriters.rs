//! Rewriters that several workers share, and whose mappings survive a change of the configuration.
#![allow(clippy::unwrap_used)] // a test

mod common;

use castanet_runtime::router::Router;
use common::{build, build_simulated, clean, number, replaceable, run_until};

/// Two workers send packets of many flows at the same time, and a third one sends the replies back.
/// No two flows get the same port, and each reply reaches the host that sent the request.
#[test]
fn workers_share_mappings() {
    let text = "
        rw :: IPRewriter(pattern 9.9.9.9 1024-65535 - - 0 1, drop);
        a :: FastUDPFlows(0, 20000, 60, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 300, 1000000)
            -> Strip(14) -> CheckIPHeader -> [0] rw;
        b :: FastUDPFlows(0, 20000, 60, 0:0:0:0:0:1, 1.0.0.2, 0:0:0:0:0:2, 2.0.0.2, 300, 1000000)
            -> Strip(14) -> CheckIPHeader -> [0] rw;
        rw[0] -> sent :: IPClassifier(src host 9.9.9.9, -)
            -> IPMirror -> q :: Queue(100000) -> u :: Unqueue -> [1] rw;
        sent[1] -> wrong :: Counter -> Discard;
        rw[1] -> CheckUDPHeader -> replies :: IPClassifier(dst host 1.0.0.1, dst host 1.0.0.2, -);
        replies[0] -> one :: Counter -> Discard; replies[1] -> two :: Counter -> Discard; replies[2] -> wrong;
        StaticThreadSched(a 0, b 1, u 2)";
    let mut router = build(text, 3);
    run_until(&mut router, |router| {
        number(router, "one.count") == 20_000 && number(router, "two.count") == 20_000
    });
    assert_eq!(number(&mut router, "wrong.count"), 0);
    assert_eq!(number(&mut router, "rw.mapping_failures"), 0);
    let table = router.read("rw.udp_table").unwrap();
    let outer = table.lines().filter(|line| line.contains("[*0 1]"));
    let mut ports: Vec<&str> = outer.map(|line| line.split(", ").nth(4).unwrap()).collect();
    let flows = ports.len();
    assert_eq!(number(&mut router, "rw.table_size"), flows as u64);
    ports.sort_unstable();
    ports.dedup();
    // All flows go to one port of one host, so the outer ports alone tell them apart.
    let servers: Vec<&str> =
        table.lines().map(|line| line.split(['(', ')']).nth(1).unwrap()).collect();
    let mut distinct = servers.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!((distinct.len(), servers.len()), (servers.len(), 2 * flows));
    assert!(flows > 500 && !ports.is_empty(), "{flows} flows");
    clean(router);
}

#[test]
fn mappings_survive_another_configuration() {
    let text = |arguments: &str, more: &str| {
        format!(
            "rw :: IPRewriter(pattern 9.9.9.9 1024-65535# - - 0 0, drop, {arguments});
             a :: FastUDPFlows(0, 2000, 60, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 20, 1000000)
                -> Strip(14) -> CheckIPHeader -> [0] rw;
             rw[0] -> c :: Counter -> Discard; Idle -> [1] rw; {more}"
        )
    };
    let mut router = replaceable(&text("UDP_TIMEOUT 100", ""));
    let mappings = |router: &mut Router| {
        let table = router.read("rw.udp_table").unwrap();
        let line = |line: &str| line.rsplit_once(" exp").unwrap().0.to_owned();
        let mut lines: Vec<String> = table.lines().map(line).collect();
        lines.sort();
        lines
    };
    let (mut before, mut stage) = (Vec::new(), 0);
    let texts = [
        // Other arguments, an additional element that shares the capacity, and one that refers to
        // both.
        text(
            "UDP_TIMEOUT 900",
            "t :: TCPRewriter(drop, CAPACITY rw) -> Discard; Idle -> t;
             Idle -> ICMPRewriter(rw t) -> Discard;",
        ),
        // The same arguments, and an unrelated change.
        text("UDP_TIMEOUT 900", "Idle -> Discard;"),
    ];
    run_until(&mut router, |router| match stage {
        0 if number(router, "c.count") == 2000 => {
            before = mappings(router);
            router.write("hotconfig", &texts[0]).unwrap();
            stage = 1;
            false
        }
        1 if router.read("rw.config").unwrap().ends_with("900") => {
            assert_eq!(mappings(router), before);
            assert_eq!(number(router, "t.size"), before.len() as u64 / 2);
            router.write("hotconfig", &texts[1]).unwrap();
            stage = 2;
            false
        }
        2 => router.read("t.size").is_err(),
        _ => false,
    });
    assert_eq!(before.len(), 40);
    assert_eq!(mappings(&mut router), before);
    assert_eq!(number(&mut router, "rw.table_size"), 20);
    // The rules are the new ones.
    router.write("rw.pattern0", "drop").unwrap();
    assert_eq!(number(&mut router, "rw.table_size"), 0);
    clean(router);
}

/// A configuration whose initialization fails changes no table of the running one.
#[test]
fn a_rejected_configuration_keeps_mappings() {
    let text = |class: &str, arguments: &str, more: &str| {
        format!(
            "rw :: {class}(pattern 9.9.9.9 1024-65535# - - 0 0, drop{arguments});
             a :: FastUDPFlows(0, 2000, 60, 0:0:0:0:0:1, 1.0.0.1, 0:0:0:0:0:2, 2.0.0.2, 317, 1000000)
                -> Strip(14) -> CheckIPHeader -> [0] rw;
             rw[0] -> c :: Counter -> Discard; Idle -> [1] rw; {more}"
        )
    };
    let mut router = replaceable(&text("IPRewriter", "", ""));
    run_until(&mut router, |router| number(router, "c.count") == 2000);
    let size = number(&mut router, "rw.size");
    assert!(size > 100, "{size}");
    let wrong = "Idle -> IPPrint(x, OUTFILE /no/such/folder/file) -> Discard";
    for (class, arguments) in [
        ("UDPRewriter", ", MAPPING_CAPACITY 1"),
        ("TCPRewriter", ", CAPACITY 1"),
        ("IPRewriter", ", MAPPING_CAPACITY 1"),
    ] {
        let error = router.write("hotconfig", &text(class, arguments, wrong)).unwrap_err();
        assert!(error.message().contains("No such file"), "{}", error.message());
        assert_eq!(number(&mut router, "rw.size"), size, "{class}");
        assert_eq!(number(&mut router, "rw.table_size"), size, "{class}");
    }
    clean(router);
}

/// A rewriter with unchanged arguments sends new flows to the addresses of the new mapper, and
/// keeps the mappings of existing flows.
#[test]
fn new_flows_use_a_changed_mapper() {
    let text = |servers: &str, limit: u32| {
        format!(
            "m :: RoundRobinIPMapper({servers});
             rw :: IPRewriter(m);
             a :: InfiniteSource(LIMIT {limit}, STOP false) -> UDPIPEncap(1.0.0.1, {limit}, 2.0.0.2, 6)
                -> rw -> c :: Counter -> Discard;"
        )
    };
    let mut router = replaceable(&text("- - 3.0.0.1 - 0 0, - - 3.0.0.1 - 0 0", 5));
    let mut replaced = false;
    let new = text("- - 3.0.0.7 - 0 0, - - 3.0.0.7 - 0 0", 9);
    run_until(&mut router, |router| {
        if !replaced && number(router, "c.count") == 5 {
            router.write("hotconfig", &new).unwrap();
            replaced = true;
        }
        number(router, "c.count") == 9
    });
    let table = router.read("rw.udp_table").unwrap();
    assert!(table.contains("(1.0.0.1, 5, 2.0.0.2, 6) => (1.0.0.1, 5, 3.0.0.1, 6)"), "{table}");
    assert!(table.contains("(1.0.0.1, 9, 2.0.0.2, 6) => (1.0.0.1, 9, 3.0.0.7, 6)"), "{table}");
    clean(router);
}

/// Flows that two workers open have the patterns of their workers; a third worker has the first one's.
#[test]
fn a_thread_mapper_chooses_by_worker() {
    let source = |n: u32| {
        format!(
            "s{n} :: InfiniteSource(LIMIT 1, STOP false)
                -> UDPIPEncap(1.0.0.{n}, 5, 2.0.0.2, 6) -> [0] rw;"
        )
    };
    let text = format!(
        "m :: ThreadIPMapper(9.9.9.9 100-199# - - 0 0, 9.9.9.9 200-299# - - 0 0);
         rw :: IPRewriter(m) -> c :: Counter -> Discard; {} {} {} StaticThreadSched(s1 0, s2 1, s3 2);",
        source(1),
        source(2),
        source(3)
    );
    let mut router = build(&text, 3);
    run_until(&mut router, |router| number(router, "c.count") == 3);
    let table = router.read("rw.udp_table").unwrap();
    assert!(table.contains("(1.0.0.2, 5, 2.0.0.2, 6) => (9.9.9.9, 200, 2.0.0.2, 6)"), "{table}");
    for port in [100, 101] {
        assert!(table.contains(&format!("=> (9.9.9.9, {port}, 2.0.0.2, 6)")), "{table}");
    }
    clean(router);
}

/// The table of a rewriter with unchanged arguments moves because another rewriter changes. The
/// next packet comes to a worker other than the one that answers handlers.
#[test]
fn a_table_that_moves_is_found_by_every_worker() {
    let source = |n: u32| {
        format!(
            "s{n} :: InfiniteSource(LIMIT 1, STOP false, ACTIVE false)
                -> UDPIPEncap(1.0.0.{n}, 5, 2.0.0.2, 6) -> [0] b;"
        )
    };
    let text = |capacity: &str, more: &str| {
        format!(
            "{more} Idle -> a :: IPRewriter(drop, {capacity}) -> Discard;
             b :: IPRewriter(pattern 9.9.9.9 1024-65535# - - 0 0, drop, CAPACITY a);
             {} {} b[0] -> c :: Counter -> Discard; Idle -> [1] b;
             StaticThreadSched(s1 0, s2 1);",
            source(1),
            source(2)
        )
    };
    let mut router = replaceable(&text("CAPACITY 100", ""));
    let new = text("CAPACITY first", "Idle -> first :: UDPRewriter(drop, CAPACITY 7) -> Discard;");
    let mut stage = 0;
    run_until(&mut router, |router| match stage {
        0 => {
            router.write("hotconfig", &new).unwrap();
            stage = 1;
            false
        }
        1 if router.read("first.capacity").is_ok_and(|it| it == "7") => {
            router.write("s2.active", "true").unwrap();
            stage = 2;
            false
        }
        2 => number(router, "c.count") == 1,
        _ => false,
    });
    let table = router.read("b.udp_table").unwrap();
    assert!(table.contains("(1.0.0.2, 5, 2.0.0.2, 6) => (9.9.9.9, 1024, 2.0.0.2, 6)"), "{table}");
    assert_eq!(router.read("b.capacity").unwrap(), "7");
    clean(router);
}

/// Under simulated time a router stops when no event is left, so it stops once all mappings have
/// expired: expiry does not depend on packets.
#[test]
fn mappings_end_while_no_packets_come() {
    let mut router = build_simulated(
        "InfiniteSource(LIMIT 5, STOP false) -> UDPIPEncap(1.0.0.1, 5, 2.0.0.2, 6)
            -> rw :: IPRewriter(keep 0 0, UDP_TIMEOUT 100, REAP_INTERVAL 7) -> Discard",
        2,
    );
    assert_eq!(router.run(None).status, 0);
    assert_eq!(number(&mut router, "rw.size"), 0);
    clean(router);
}
