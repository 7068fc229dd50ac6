//! The order of packets, tasks and scripts is Click's under the name `click`.

use crate::program::{RunResult, castanet, click, folder};

/// The output of a configuration, which is the same in real and in simulated time.
fn printed(config: &str) -> String {
    let both = [&[][..], &["--simtime"]].map(|options| {
        let words = [options, &["-e", config]].concat();
        let RunResult { status, out, err } = click(&words, b"");
        assert_eq!(status, Some(0), "{config}: {err}");
        out + &err
    });
    assert_eq!(both[0], both[1], "{config}");
    both[0].clone()
}

/// The first letters of the lines.
fn letters(text: &str) -> String {
    text.lines().filter_map(|line| line.chars().next()).collect()
}

#[test]
fn a_packet_goes_all_the_way_before_the_next_one_starts() {
    let file = folder("order").join("three.txt");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(
        &file,
        "!data ip_src ip_dst\n1.0.0.1 2.0.0.1\n1.0.0.2 2.0.0.2\n1.0.0.3 2.0.0.3\n",
    )
    .unwrap();
    let ways = "IPPrint(a) -> t :: Tee -> IPPrint(b) -> Discard; t[1] -> IPPrint(c) -> Discard;";
    let from_file = format!("FromIPSummaryDump({}, STOP true) -> {ways}", file.display());
    assert_eq!(letters(&printed(&from_file)), "abcabcabc");
    let queue =
        "InfiniteSource(LIMIT 3) -> Queue -> Unqueue -> Print(a, 0) -> Print(b, 0) -> Discard;
                 DriverManager(wait 0.05, stop)";
    assert_eq!(letters(&printed(queue)), "ababab");
    // Bursts that an argument asks for are divided where nothing is gained by them.
    let burst =
        "InfiniteSource(LIMIT 4, BURST 2, STOP true) -> Print(a, 0) -> Print(b, 0) -> Discard";
    let simulated = click(&["--simtime", "-e", burst], b"");
    assert_eq!(letters(&simulated.err), "abababab");
    let exact = castanet(&["run", "--exact", "--quiet", "-e", burst], b"");
    assert_eq!(letters(&exact.err), "abababab");
}

#[test]
fn ready_tasks_stand_in_a_queue() {
    let two = "InfiniteSource(LIMIT 3) -> Print(a, 0) -> Discard; InfiniteSource(LIMIT 3) -> Print(b, 0) -> Discard;
               DriverManager(wait 0.05, stop)";
    assert_eq!(letters(&printed(two)), "ababab");
    let woken = "a :: InfiniteSource(LIMIT 3, ACTIVE false) -> Print(a, 0) -> Discard;
                 b :: InfiniteSource(LIMIT 3, ACTIVE false) -> Print(b, 0) -> Discard;
                 Script(write b.active true, write a.active true, wait 0.05, stop)";
    assert_eq!(letters(&printed(woken)), "bababa");
}

#[test]
fn scripts_begin_after_the_turns_of_ready_tasks_and_drivers_before() {
    let source = "InfiniteSource(LIMIT 40) -> c :: Counter -> Discard;";
    assert_eq!(printed(&format!("{source} Script(print c.count, stop)")), "40\n");
    assert_eq!(printed(&format!("{source} DriverManager(print c.count, stop)")), "0\n");
    let asleep =
        "InfiniteSource(LIMIT 4) -> Queue -> d :: Discard; Script(print d.scheduled, stop)";
    assert_eq!(printed(asleep), "false\n");
}

#[test]
fn a_step_of_a_script_is_atomic() {
    // The source sends all the time; no packet passes between the two reads.
    let config = "InfiniteSource -> c :: Counter -> Discard;
                  Script(set n 0, label again, set a $(c.count), set b $(c.count), set c $(c.count),
                         print $(eq $a $b) $(eq $b $c), wait 0.002, set n $(add $n 1), goto again $(lt $n 20), stop)";
    let RunResult { status, out, err } = click(&["-e", config], b"");
    assert_eq!((status, out), (Some(0), "true true\n".repeat(20)), "{err}");
}

#[test]
fn handlers_that_elements_call_take_effect_at_once() {
    let counter = "c :: Counter(COUNT_CALL 7 sw.switch 1); InfiniteSource(LIMIT 10, STOP true) -> c -> sw :: Switch
                   -> Print(a, 0) -> Discard; sw[1] -> Print(b, 0) -> Discard";
    assert_eq!(letters(&printed(counter)), "aaaaaabbbb");
    let script = "InfiniteSource(LIMIT 2, STOP true) -> Script(TYPE PACKET, write sw.switch 1) -> sw :: Switch
                  -> Print(a, 0) -> Discard; sw[1] -> Print(b, 0) -> Discard";
    assert_eq!(letters(&printed(script)), "bb");
    let pulled_script = "InfiniteSource(LIMIT 4) -> Queue -> s :: Script(init n 0, set n $(add $n 1), return $(mod $n 3))
                  -> Unqueue -> Print(a, 0) -> Discard; s[1] -> Print(b, 0) -> Discard; Script(wait 0.05, stop)";
    assert_eq!(letters(&printed(pulled_script)), "bab");
    let pulled = "InfiniteSource(LIMIT 10) -> Queue -> ps :: PullSwitch; Idle -> [1] ps;
                  ps -> c :: Counter(COUNT_CALL 2 ps.switch 1) -> Discard; Script(wait 0.05, print c.count, stop)";
    assert_eq!(printed(pulled), "2\n");
}

#[test]
fn a_limited_source_ends_in_a_turn_of_its_own() {
    let config =
        "InfiniteSource(LIMIT 2, STOP true) -> Queue(1) -> Unqueue -> Print(a, 0) -> Discard";
    assert_eq!(letters(&printed(config)), "aa");
}

#[test]
fn a_capture_has_32_packets_in_a_turn() {
    let config = |burst: &str| {
        let source = format!("FromDump(conf/sample.pcap, STOP true{burst})");
        format!("{source} -> Print(a, 0) -> t :: Tee -> Print(b, 0) -> Discard; t[1] -> Print(c, 0) -> Discard;
                 InfiniteSource(LIMIT 2) -> Print(x, 0) -> Discard")
    };
    for (burst, packets) in [("", 32), (", BURST 3", 3), (", BURST 1", 1)] {
        let turn = "abc".repeat(packets) + "x";
        let printed = letters(&printed(&config(burst)));
        assert!(printed.starts_with(&turn.repeat(2)), "{burst}: {printed}");
    }
}

#[test]
fn a_call_holds_for_the_other_packets_of_the_turn() {
    let config =
        "FromDump(conf/sample.pcap, STOP true) -> Counter(COUNT_CALL 5 sw.switch 1) -> sw :: Switch
                      -> a :: Counter -> Discard; sw[1] -> b :: Counter -> Discard;
                  DriverManager(pause, print $(a.count) $(b.count))";
    let (first, rest) =
        printed(config).trim().split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert_eq!(first, "4");
    assert!(rest.parse::<u32>().unwrap() > 32, "{rest}");
}
