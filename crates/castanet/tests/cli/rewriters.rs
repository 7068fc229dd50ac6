//! Rewriters and random numbers by the name `click`.

use crate::program::{RunResult, click};

/// Standard output of a simulated run that reads packets from standard input.
fn simulated(options: &[&str], config: &str, input: &str) -> String {
    let words = [&["--simtime"], options, &["-e", config]].concat();
    let RunResult { status, out, err } = click(&words, input.as_bytes());
    assert_eq!((status, err.as_str()), (Some(0), ""), "{config}");
    out
}

/// The lines of a summary dump that are no comments.
fn lines(dump: &str) -> Vec<&str> {
    dump.lines().filter(|line| !line.starts_with('!')).collect()
}

const FLOWS: &str = "!data ip_src sport ip_dst dport ip_proto\n";
const TIMED: &str = "!data timestamp ip_src sport ip_dst dport ip_proto tcp_flags\n";

#[test]
fn a_seed_makes_the_numbers_of_click() {
    let config = "RandomSeed(5) Script(print $(random), print $(random), print $(random), stop)";
    assert_eq!(simulated(&[], config, ""), "590011675\n99788765\n2131925610\n");
    let config = "RandomSeed(5) Script(print $(random 0 99), print $(random 100), print $(random 0 99), stop)";
    assert_eq!(simulated(&[], config, ""), "27\n4\n99\n");
    // Scripts and elements draw from one sequence: the samples take the first two numbers.
    let config = "RandomSeed(5) InfiniteSource(LIMIT 2) -> s :: RandomSample(0.5) -> Discard;
                  Script(print $(random 0 99), print s.drops, stop)";
    // Of 28 bits the first two numbers have 53140763 and 99788765, both below half.
    assert_eq!(simulated(&[], config, ""), "99\n0\n");
    // Bit 14 of a number chooses between two outputs; 0, 0, 0 and 1 of these.
    let config = "RandomSeed(5) InfiniteSource(LIMIT 40) -> s :: RandomSwitch -> a :: Counter -> Discard;
                  s[1] -> b :: Counter -> Discard; Script(print $(add $(a.count) $(b.count)), stop)";
    assert_eq!(simulated(&[], config, ""), "40\n");
}

#[test]
fn a_rewriter_tries_the_flow_s_own_port_and_then_draws() {
    let flows = format!(
        "{FLOWS}1.0.0.1 1050 2.0.0.2 80 U\n1.0.0.2 1050 2.0.0.2 80 U\n1.0.0.3 5 2.0.0.2 80 U\n"
    );
    let ports = |pattern: &str| {
        let config = format!(
            "RandomSeed(5) FromIPSummaryDump(-, STOP true) -> IPRewriter(pattern {pattern} 0 0)
             -> ToIPSummaryDump(-, FIELDS sport)"
        );
        lines(&simulated(&[], &config, &flows)).join(" ")
    };
    assert_eq!(ports("9.9.9.9 1024-1123 - -"), "1050 1051 1028");
    assert_eq!(ports("9.9.9.9 1024-1123? - -"), "1051 1028 1123");
    assert_eq!(ports("9.9.9.9 1024-1123# - -"), "1024 1025 1026");
    assert_eq!(ports("9.9.9.9 1050-1051 - -"), "1050 1051");
}

#[test]
fn guarantees_and_capacity_are_kept_to_the_millisecond() {
    let packets = format!(
        "{TIMED}1 1.0.0.1 1 2.0.0.2 80 U -\n1.04 1.0.0.2 2 2.0.0.2 80 U -\n2.99 1.0.0.3 3 2.0.0.2 80 U -\n3.01 1.0.0.4 4 2.0.0.2 80 U -\n"
    );
    let config = "FromIPSummaryDump(-, STOP true, TIMING true)
                  -> rw :: UDPRewriter(pattern 9.9.9.9 1024-1123# - - 0 0, MAPPING_CAPACITY 2, GUARANTEE 2)
                  -> ToIPSummaryDump(-, FIELDS ip_dst sport);
                  DriverManager(pause, print rw.mapping_failures, print rw.table)";
    let out = simulated(&[], config, &packets);
    // The refused flow has used up port 1026.
    let (sent, printed): (Vec<&str>, Vec<&str>) =
        lines(&out).into_iter().partition(|line| line.starts_with("2.0.0.2"));
    assert_eq!(
        (&sent[..], printed[0]),
        (&["2.0.0.2 1024", "2.0.0.2 1025", "2.0.0.2 1027"][..], "1")
    );
    let table: Vec<&str> = printed[1..].iter().filter_map(|line| line.split(", ").next()).collect();
    assert_eq!(table, ["(1.0.0.4", "(2.0.0.2", "(1.0.0.2", "(2.0.0.2"], "{out}");
}

#[test]
fn without_a_guarantee_the_mapping_that_ends_first_goes() {
    let run = |packets: &str| {
        let config = "FromIPSummaryDump(-, STOP true, TIMING true) -> ps :: PaintSwitch
                      -> rw :: TCPRewriter(pattern 9.9.9.9 1-99# - - 0 1, drop, MAPPING_CAPACITY 2, GUARANTEE 0)
                      -> Discard; ps[1] -> [1] rw; rw[1] -> Discard;
                      DriverManager(pause, print rw.mapping_failures, print rw.table)";
        let packets = format!(
            "!data timestamp ip_src sport ip_dst dport ip_proto tcp_flags payload paint\n{packets}"
        );
        let out = simulated(&[], config, &packets);
        let flows = out.lines().skip(1).filter(|line| line.contains("[*0"));
        let mut sources: Vec<&str> =
            flows.filter_map(|line| line.strip_prefix('(')?.split(',').next()).collect();
        sources.sort_unstable();
        (out.lines().next().unwrap_or_default().to_owned(), sources.join(" "))
    };
    let data = |n: u8, at: f64| {
        format!(
            "{at} 1.0.0.{n} 5 2.0.0.2 80 T A \"data\" 0\n{at} 2.0.0.2 80 9.9.9.9 {n} T A \"data\" 1\n"
        )
    };
    // Flows that saw data both ways live a day, a new one 300 s.
    let full = format!("{}{}", data(1, 1.0), data(2, 2.0));
    assert_eq!(
        run(&format!("{full}3 1.0.0.3 5 2.0.0.2 80 T S \"\" 0\n")),
        ("1".into(), "1.0.0.1 1.0.0.2".into())
    );
    // One that was reset lives 240 s, and goes before an older one that is idle.
    let reset = "1 1.0.0.1 5 2.0.0.2 80 T S \"\" 0\n2 1.0.0.2 5 2.0.0.2 80 T S \"\" 0\n3 1.0.0.2 5 2.0.0.2 80 T R \"\" 0\n4 1.0.0.3 5 2.0.0.2 80 T S \"\" 0\n";
    assert_eq!(run(reset), ("0".into(), "1.0.0.1 1.0.0.3".into()));
    // So does one that both sides have finished.
    let finished = "1 1.0.0.1 5 2.0.0.2 80 T S \"\" 0\n2 1.0.0.2 5 2.0.0.2 80 T S \"\" 0\n3 1.0.0.2 5 2.0.0.2 80 T FA \"\" 0\n3 2.0.0.2 80 9.9.9.9 2 T FA \"\" 1\n4 1.0.0.3 5 2.0.0.2 80 T S \"\" 0\n";
    assert_eq!(run(finished), ("0".into(), "1.0.0.1 1.0.0.3".into()));
}

#[test]
fn a_flow_that_is_its_own_reply_leaves_forward_once() {
    let packet = "203.0.113.7 4000 203.0.113.7 4000 U";
    let config = "FromIPSummaryDump(-, STOP true) -> ps :: PaintSwitch
                  -> rw :: UDPRewriter(pattern 203.0.113.7 4000 203.0.113.7 4000 0 1, drop)
                  -> Paint(1) -> dump :: ToIPSummaryDump(-, FIELDS paint); ps[1] -> [1] rw; rw[1] -> Paint(2) -> dump";
    let packets = format!(
        "!data ip_src sport ip_dst dport ip_proto paint\n{packet} 0\n{packet} 0\n{packet} 1\n{packet} 0\n"
    );
    assert_eq!(lines(&simulated(&[], config, &packets)), ["1", "2", "2", "2"]);
}

#[test]
fn mappings_are_numbered_over_all_rewriters() {
    let config = "FromIPSummaryDump(-, STOP true) -> ps :: PaintSwitch
                  -> rw :: IPRewriter(pattern 9.9.9.9 1024-1123# - - 0 0, drop, SET_AGGREGATE true, USE_CACHE true, HANDLE_MIGRATION false)
                  -> dump :: ToIPSummaryDump(-, FIELDS aggregate);
                  ps[1] -> [1] rw; ps[2] -> IPAddrRewriter(pattern 8.8.8.8 - 0 0, SET_AGGREGATE true) -> dump";
    let packets = "!data ip_src sport ip_dst dport ip_proto paint\n1.0.0.1 1 2.0.0.2 80 U 0\n1.0.0.2 1 2.0.0.2 80 U 2\n1.0.0.2 1 2.0.0.2 80 T 0\n2.0.0.2 80 9.9.9.9 1024 U 1\n1.0.0.2 9 2.0.0.2 80 U 2\n2.0.0.2 80 9.9.9.9 1025 T 1\n1.0.0.3 9 2.0.0.2 80 U 2\n1.0.0.1 1 2.0.0.2 80 U 0\n";
    let numbers = ["0", "1", "2", "0", "1", "2", "3", "0"];
    assert_eq!(lines(&simulated(&[], config, packets)), numbers);
}

#[test]
fn each_thread_has_mappings_of_its_own() {
    let sources = "a :: InfiniteSource(LIMIT 2) -> UDPIPEncap(1.0.0.1, 5, 2.0.0.2, 80) -> rw;
                   b :: InfiniteSource(LIMIT 2) -> UDPIPEncap(1.0.0.1, 5, 2.0.0.2, 80) -> rw
                   -> ToIPSummaryDump(-, FIELDS ip_src sport); StaticThreadSched(a 0, b 1);";
    // A pattern's next port is common.
    let config = format!(
        "rw :: UDPRewriter(pattern 9.9.9.9 1024-1123# - - 0 0, MAPPING_CAPACITY 1); {sources}
         DriverManager(wait 1, print rw.size, print rw.mapping_count, print rw.patterns, print rw.table, stop)"
    );
    let out = simulated(&["-j", "2"], &config, "");
    let all = lines(&out);
    let mut sent = all[..4].to_vec();
    sent.sort_unstable();
    assert_eq!(sent, ["9.9.9.9 1024", "9.9.9.9 1024", "9.9.9.9 1025", "9.9.9.9 1025"]);
    assert_eq!(all[4..7], ["2", "2", "9.9.9.9 1024-1123 - - [2]"]);
    let flow = "(1.0.0.1, 5, 2.0.0.2, 80) =>";
    assert_eq!(all[7..].iter().filter(|line| line.starts_with(flow)).count(), 2, "{out}");
    // Without Click's order there is one mapping for both.
    let words = ["run", "--simtime", "-j", "2", "--quiet", "-e", &config];
    let RunResult { out, err, .. } = crate::program::castanet(&words, b"");
    assert_eq!(lines(&out)[4], "1", "{err}");
    // A thread has the pattern of its number.
    let config = format!(
        "m :: ThreadIPMapper(- - - 99 0 0, 7.7.7.7 7 - - 0 0); rw :: UDPRewriter(m); {sources} Script(wait 1, stop)"
    );
    let out = simulated(&["-j", "2"], &config, "");
    let mut sent = lines(&out);
    sent.sort_unstable();
    assert_eq!(sent, ["1.0.0.1 5", "1.0.0.1 5", "7.7.7.7 7", "7.7.7.7 7"]);
    let one = click(&["-e", "ThreadIPMapper(1.0.0.1 5 - - 0 0); Script(stop)"], b"");
    assert!(one.err.contains("warning: only one pattern given"), "{}", one.err);
}

#[test]
fn a_reply_of_zeros_has_the_checksum_ffff() {
    let config = "InfiniteSource(DATA \\<4500001c 00000000 ff01b7df 01000001 02000002 0800f7ff 00000000>, LIMIT 1, STOP true)
                  -> MarkIPHeader -> SetIPChecksum -> t :: Tee -> rw :: ICMPPingRewriter(pattern 9.9.9.9 7 - - 0 1, drop)
                  -> ICMPPingResponder -> [1] rw; rw[1] -> c :: CheckICMPHeader -> Print(a, 28) -> Discard;
                  t[1] -> ICMPPingResponder -> c";
    let RunResult { status, err, .. } = click(&["--simtime", "-e", config], b"");
    let line = "a:   28 | 4500001c 00000000 ff01b8de 02000002 01000001 0000ffff 00000000\n";
    assert_eq!((status, err), (Some(0), line.repeat(2)));
}
