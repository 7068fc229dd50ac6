//! Packets that elements keep while another configuration replaces theirs.

use super::{replaced, run};
use crate::program::click;

#[test]
fn a_smaller_queue_drops_the_excess_at_once() {
    for class in ["Queue", "SimpleQueue", "FrontDropQueue", "MixedQueue"] {
        let more = if class == "MixedQueue" { "Idle -> [1] q" } else { "" };
        let text = |capacity| {
            format!(
                "InfiniteSource(LIMIT 100) -> q :: {class}({capacity}) -> u :: Unqueue(ACTIVE false)
                 -> c :: Counter -> Discard; {more}"
            )
        };
        let mut it = run("shrinks", &["-j", "2"], &text("1000"));
        it.client.wait_for("q.length", "100");
        it.swap(&text("10")).unwrap();
        assert_eq!(it.client.read("q.length"), "10", "{class}");
        // A larger one drops no more.
        it.swap(&text("500")).unwrap();
        it.client.write("u.active", "true");
        it.client.wait_for("c.count", "10");
        assert_eq!(it.client.read("q.drops.reset"), "90", "{class}");
        it.end();
    }
}

#[test]
fn nothing_is_lost_in_hundreds_of_swaps() {
    const PACKETS: u64 = 400_000;
    // Elements come and go, tasks change their workers, queues their sizes, counters their rows.
    let config = |n: usize| {
        let home = ["s 0, u 1", "s 1, u 0", "s 0, u 0", "s 1, u 1"][n % 4];
        let more = ["", "-> Null", "-> CheckLength(100) -> Null -> Paint(3)"][n % 3];
        let (capacity, again) =
            (20_000 + n % 5, if n.is_multiple_of(2) { "-> t" } else { "-> Null -> t" });
        format!(
            "StaticThreadSched({home});
             s :: InfiniteSource(LIMIT {PACKETS}, BURST 8) -> a :: Counter {more}
               -> q :: ThreadSafeQueue({capacity}) -> u :: Unqueue {again} :: Tee;
             t[0] -> b :: Counter -> d :: Discard; t[1] -> c :: Counter -> Discard"
        )
    };
    let mut it = run("hundreds", &["-j", "2"], &config(0));
    let mut swaps = 0;
    while it.client.read("s.count") != PACKETS.to_string() || swaps < 200 {
        swaps += 1;
        it.swap(&config(swaps)).unwrap();
    }
    it.client.wait_for("q.length", "0");
    let all = PACKETS.to_string();
    // A queue that gets smaller while it is full drops the excess.
    let mut number = |handler: &str| it.client.read(handler).parse::<u64>().unwrap();
    let dropped = number("q.drops") + number("q.drops.reset");
    let came = number("b.count");
    assert_eq!(it.client.read("a.count"), all);
    assert_eq!(dropped + came, PACKETS, "after {swaps} swaps");
    assert_eq!(it.client.read("c.count"), came.to_string());
    assert_eq!(it.client.read("d.count"), came.to_string());
    it.end();
}

#[test]
fn an_arp_table_and_its_waiting_packets_stay_shared() {
    let config = |table: &str, with: &str| {
        format!(
            "{table} s :: InfiniteSource(LIMIT 3) -> SetIPAddress(1.0.0.2)
               -> x :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1{with}) -> c :: Counter -> Discard;
             x[1] -> Discard; Idle -> [1] x"
        )
    };
    let mut it = run("arp-table", &[], &config("", ""));
    it.client.wait_for("x.length", "3");
    // Packets that waited in the element's own table wait in the shared table.
    it.swap(&config("t :: ARPTable;", ", TABLE t")).unwrap();
    it.client.wait_for("t.length", "3");
    assert_eq!((it.client.read("x.length"), it.client.read("x.count")), ("3".into(), "1".into()));
    let output = it.swap(&config("t :: ClickyInfo;", ", TABLE t")).unwrap_err();
    assert!(output.contains("TABLE: `t` is no ARPTable"), "{output}");
    it.swap(&config("t :: ARPTable(CAPACITY 100);", ", TABLE t, POLL_TIMEOUT 0")).unwrap();
    assert_eq!((it.client.read("t.length"), it.client.read("c.count")), ("3".into(), "0".into()));
    it.client.write("t.insert", "1.0.0.2 0:0:0:0:0:2");
    it.client.wait_for("c.count", "3");
    assert!(it.client.read("x.table").starts_with("1.0.0.2 1 00-00-00-00-00-02 "));
    // One of its own again.
    it.swap(&config("", "")).unwrap();
    assert_eq!((it.client.read("x.length"), it.client.read("c.count")), ("0".into(), "3".into()));
    it.end();
}

#[test]
fn packets_that_wait_in_a_table_go_over_or_are_freed() {
    let querier = |table: &str, with: &str| {
        format!(
            "{table} InfiniteSource(LIMIT 3) -> SetIPAddress(1.0.0.2)
               -> x :: ARPQuerier(1.0.0.1, 0:0:0:0:0:1{with}) -> Discard; x[1] -> Discard;
             Idle -> [1] x;"
        )
    };
    let table = "t :: ARPTable;";
    let (own, shared) = (querier("", ""), querier(table, ", TABLE t"));
    let renamed = querier("u :: ARPTable;", ", TABLE u");
    let driver = |length: &str| format!("DriverManager(wait 1.5s, print $({length}), stop)");
    for (first, second, length, left) in [
        (&own, own.clone(), "x.length", "3\n"),
        (&own, querier("", ", CAPACITY 77"), "x.length", "3\n"),
        (&own, shared.clone(), "t.length", "3\n"),
        (&own, "x :: Null; Idle -> x -> Discard;".into(), "x.name", "x\n"),
        (&shared, shared.clone(), "t.length", "3\n"),
        (&shared, querier("t :: ARPTable(CAPACITY 10);", ", TABLE t"), "t.length", "3\n"),
        (&shared, table.into(), "t.length", "3\n"),
        (&shared, own.clone(), "x.length", "0\n"),
        (&shared, renamed, "u.length", "0\n"),
        (&shared, "Idle -> t :: Null -> Discard;".into(), "t.name", "t\n"),
    ] {
        let first = format!("{first} DriverManager(wait 0.1s, write hotconfig SECOND)");
        let second = second + &driver(length);
        let result = replaced("waiting.click", &["--simtime"], &first, &second);
        assert_eq!(
            (result.status, result.out.as_str()),
            (Some(0), left),
            "{second}: {}",
            result.err
        );
    }
    let result = click(&["--simtime", "-e", &format!("{shared} {}", driver("t.length"))], b"");
    assert_eq!((result.status, result.out.as_str()), (Some(0), "3\n"), "{}", result.err);
}

/// Later fragments that wait for the first one of their packet go on with it in the next
/// configuration, or are dropped under a name; none leaks, or the program would end otherwise.
#[test]
fn fragments_that_wait_go_over_or_are_dropped() {
    let packet = |name: &str, data: &str| {
        format!(
            "{name} :: InfiniteSource(DATA \\<{data}>, LIMIT 1) -> MarkIPHeader -> x;
             x -> c :: Counter -> Discard"
        )
    };
    let later = packet("later", "4500001800010002401100000100000102000002 6c617465");
    let first = packet(
        "first",
        "4500002400012000401100000100000102000002 000900500014000061207061636b6574",
    );
    let end = |read: &str| format!("DriverManager(wait 0.1s, print \"{read}\", stop)");
    let counts = "$(x.waiting_fragments) $(c.count)";
    let [middlebox, rewriter] = [
        "x :: Middlebox(udp-dport 5000 drop",
        "x :: UDPRewriter(pattern 9.9.9.9 1024-65535 - - 0 0, FRAGMENTS true",
    ];
    let null = "x :: Null";
    for (before, after, read, output) in [
        (middlebox, format!("{middlebox});"), counts, "0 2\n"),
        (middlebox, format!("{middlebox}, tcp-syn drop, MTU 99);"), counts, "0 2\n"),
        (middlebox, "x :: Middlebox(ip-saddr 9.9.9.9 drop);".into(), counts, "1 1\n"),
        (middlebox, format!("{null};"), "$(c.count)", "1\n"),
        (rewriter, format!("{rewriter});"), "$(c.count)", "2\n"),
        (rewriter, format!("{rewriter}, MAPPING_CAPACITY 7);"), "$(c.count)", "2\n"),
        (rewriter, "x :: UDPRewriter(pass 0);".into(), "$(c.count)", "1\n"),
        (rewriter, format!("{null};"), "$(c.count)", "1\n"),
    ] {
        let old = format!("{before}); {later}; DriverManager(wait 0.1s, write hotconfig SECOND)");
        let new = format!("{after} {first}; {}", end(read));
        let result = replaced("fragments.click", &["--simtime"], &old, &new);
        assert_eq!(
            (result.status, result.out.as_str()),
            (Some(0), output),
            "{new}: {}",
            result.err
        );
    }
}
