//! Packets that are kept in great number: none is lost that a file still has, none keeps others
//! from their frames, and sizes that cannot be are errors.

use crate::program::{RunResult, castanet, click, folder, named};

/// How many packets the capture has: more than there are frames for devices.
const PACKETS: usize = 30_000;

/// A capture of its own for the test called `name`.
fn capture(name: &str) -> String {
    let file = folder("frames").join(format!("{name}.pcap")).display().to_string();
    let config = format!(
        "InfiniteSource(LENGTH 60, LIMIT {PACKETS}, STOP true) -> ToDump({file}, ENCAP ETHER)"
    );
    let result = castanet(&["run", "-q", "-e", &config], b"");
    assert_eq!((result.status, &*result.err), (Some(0), ""));
    file
}

/// Runs a configuration in simulated time; returns the values of these handlers, a number each.
fn numbers(words: &[&str], config: &str, handlers: &[&str]) -> (Vec<usize>, RunResult) {
    let prints = handlers.iter().map(|handler| format!("print {handler}, "));
    let script = format!("DriverManager(wait 400s, {}stop)", prints.collect::<String>());
    let config = format!("{config}; {script}");
    let words = [&["run", "-q", "--simtime", "-e", &config], words].concat();
    let result = castanet(&words, b"");
    assert_eq!(result.status, Some(0), "{}{}", result.out, result.err);
    (result.out.lines().map(|line| line.trim().parse().unwrap()).collect(), result)
}

#[test]
fn a_file_waits_while_a_queue_keeps_all_its_packets() {
    let file = capture("waits");
    let config = format!(
        "FromDump({file}) -> q :: Queue(100000) -> RatedUnqueue(100) -> c :: Counter -> Discard"
    );
    for words in [&[][..], &["--frames", "256"], &["--frames", "256", "--memory", "1M"]] {
        let (counts, result) = numbers(words, &config, &["c.count", "q.drops"]);
        assert_eq!((counts, &*result.err), (vec![PACKETS, 0], ""), "{words:?}");
    }
}

#[test]
fn generators_wait_for_frames() {
    let sources = [
        "InfiniteSource(LIMIT 3000)",
        "RatedSource(RATE 100000, LIMIT 3000)",
        "RandomSource(60, LIMIT 3000)",
        "TimedSource(0.0001, LIMIT 3000)",
        "ICMPPingSource(1.0.0.1, 1.0.0.2, INTERVAL 0.0001, LIMIT 3000, VERBOSE false)",
        "FastUDPSource(0, 3000, 60, 0:0:0:0:0:1, 1.0.0.1, 1, 0:0:0:0:0:2, 1.0.0.2, 2)",
    ];
    for source in sources {
        let config = format!(
            "{source} -> q :: Queue(100000) -> RatedUnqueue(100) -> c :: Counter -> Discard"
        );
        let words = ["--frames", "256", "--memory", "256K"];
        let (counts, result) = numbers(&words, &config, &["c.count", "q.drops"]);
        assert_eq!((counts, &*result.err), (vec![3000, 0], ""), "{source}");
    }
}

/// Calls and stops at the end of a source come when what it made has gone through.
#[test]
fn the_end_of_a_source_is_told_behind_its_last_packet() {
    let file = folder("frames").join("ends.pcap").display().to_string();
    let summary = folder("frames").join("ends.dump").display().to_string();
    let config = format!(
        "InfiniteSource(DATA \\<45000014000000004000000001000001 02000002>, LIMIT 100, STOP true)
           -> MarkIPHeader -> t :: Tee -> ToDump({file}, ENCAP IP);
         t[1] -> ToIPSummaryDump({summary}, FIELDS ip_src ip_dst)"
    );
    let result = castanet(&["run", "-q", "-e", &config], b"");
    assert_eq!((result.status, &*result.err), (Some(0), ""));
    for (source, calls) in [
        ("InfiniteSource(LIMIT 100, BURST 32", true),
        ("RatedSource(RATE 100000, LIMIT 100", true),
        ("RandomSource(60, LIMIT 100", true),
        ("TimedSource(0.0001, LIMIT 100", false),
        (&format!("FromDump({file}"), true),
        (&format!("FromDump({file}, TIMING true"), true),
        (&format!("FromIPSummaryDump({summary}"), false),
    ] {
        let path =
            "-> Null -> t :: Tee -> c :: Counter -> Discard; t[1] -> d :: Counter -> Discard";
        let ends = "STOP true";
        let config = format!("{source}, {ends}) {path}");
        let handlers = ["--handler", "c.count", "--handler", "d.count"];
        let result = castanet(&[&["run", "-q", "-e", &config], &handlers[..]].concat(), b"");
        assert_eq!(result.out.matches("100").count(), 2, "{config}: {}{}", result.out, result.err);
        if calls {
            let script = "s :: Script(TYPE PASSIVE, print \"$(c.count) $(d.count)\", stop)";
            let config = format!("{source}, END_CALL s.run) {path}; {script}");
            let result = castanet(&["run", "-q", "-e", &config], b"");
            assert_eq!(result.out, "100 100\n", "{config}: {}", result.err);
        }
    }
}

#[test]
fn a_full_side_branch_starves_no_element_and_warns_once() {
    let file = capture("branches");
    for branch in ["", "Queue(1000) -> Unqueue -> "] {
        let config = format!(
            "FromDump({file}) -> t :: Tee -> q :: Queue(100000) -> Unqueue(ACTIVE false) -> Discard;
             t[1] -> {branch} c :: Counter -> Discard;
             InfiniteSource(LIMIT 100000) -> n :: Counter -> Discard"
        );
        let words = ["--frames", "256", "--memory", "256K"];
        let handlers = ["c.count", "n.count", "q.length", "q.drops.no_frame"];
        let (counts, result) = numbers(&words, &config, &handlers);
        assert_eq!(counts[..2], [PACKETS, 100_000], "{counts:?}");
        assert!(counts[3] > 20_000, "{counts:?}");
        assert_eq!(counts[2] + counts[3], PACKETS);
        let output = "q :: Queue: its share of the memory for kept packets is full (";
        assert!(
            result.err.starts_with(output) && result.err.lines().count() == 1,
            "{}",
            result.err
        );
    }
}

#[test]
fn fragments_that_wait_leave_frames_to_others() {
    // Later fragments of datagrams whose first never comes, each of another pair of hosts.
    let config = "
        RandomSource(20, LIMIT 20000) -> StoreData(0, \\<450000140001001040110000>)
            -> MarkIPHeader -> a :: AggregateIPFlows -> Discard;
        r :: RatedSource(RATE 100, LIMIT 30000) -> c :: Counter -> Discard";
    let (counts, _) = numbers(&["--frames", "1024"], config, &["c.count", "r.count"]);
    assert_eq!(counts, [30_000, 30_000]);
}

#[test]
fn packets_that_are_longer_than_frames_count_against_the_memory_too() {
    // 1.2 GB of them, and short ones beside.
    let config = "InfiniteSource(LENGTH 60000, LIMIT 20000) -> q :: Queue(100000)
            -> u :: Unqueue(ACTIVE false) -> n :: Counter -> Discard;
        RatedSource(LENGTH 60, RATE 1000, LIMIT 5000) -> p :: Queue(10000)
            -> v :: Unqueue(ACTIVE false) -> m :: Counter -> Discard;
        DriverManager(wait 10s, print $(q.length), print $(q.drops.no_frame), print $(p.length),
            print $(cat /proc/self/status), write u.active true, write v.active true, wait 1s,
            print $(n.count), print $(m.count), stop)";
    let words = ["--simtime", "--memory", "64M", "--frames", "1024", "-e", config];
    let result = click(&words, b"");
    assert_eq!(result.status, Some(0), "{}{}", result.out, result.err);
    let lines: Vec<&str> = result.out.lines().collect();
    let number = |line: &str| line.trim().parse::<usize>().unwrap();
    let [long, lost, short] = [0, 1, 2].map(|at| number(lines[at]));
    // Half of the memory; each takes a little more than its bytes.
    assert!((500..=560).contains(&long), "{long}");
    assert_eq!((long + lost, short), (20_000, 5000));
    let peak = lines.iter().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak = number(peak.trim_end_matches("kB"));
    assert!(peak < 100_000, "{peak} kB");
    let [n, m] = [2, 1].map(|from_end| number(lines[lines.len() - from_end]));
    assert_eq!((n, m), (long, 5000));
    let output = "q :: Queue: its share of the memory for kept packets is full (64.0 MiB in all";
    assert!(result.err.starts_with(output) && result.err.lines().count() == 1, "{}", result.err);
    // A short queue has room for what is on its way, however little memory there is.
    let config = "InfiniteSource(LENGTH 60000, LIMIT 2000) -> q :: Queue(2) -> Unqueue
        -> c :: Counter -> Discard";
    let (counts, result) = numbers(&["--memory", "256K"], config, &["c.count", "q.drops"]);
    assert_eq!((counts, &*result.err), (vec![2000, 0], ""));
}

#[test]
fn a_replay_that_waits_in_a_queue_takes_no_memory_beside_its_trace() {
    // The trace takes more than a mebibyte of the heap, which is low then.
    let config = "FastUDPSource(0, 1500, 1000, 2:0:0:0:0:1, 1.0.0.1, 1, 2:0:0:0:0:2, 1.0.0.2, 2)
        -> Queue(2000) -> ReplayUnqueue(STOP 3)
        -> q :: Queue(100000) -> RatedUnqueue(1) -> Discard;
        DriverManager(wait_stop, print q.length, print frames, stop)";
    let result = castanet(&["run", "-q", "--simtime", "-e", config], b"");
    let loaded = "Loading ReplayUnqueue@3 with 1 inputs.\n\
                  ReplayUnqueue@3 : Successfully loaded 1500 packets. Input 0 dried out.\n";
    assert_eq!((result.status, &*result.err), (Some(0), loaded));
    let used = |row: &str| row.split('\t').nth(2).unwrap().to_owned();
    let rows: Vec<_> = result.out.lines().filter(|line| line.contains('\t')).map(used).collect();
    assert_eq!((result.out.lines().next(), &*rows.concat()), (Some("4499"), "in_use00"));
}

#[test]
fn explain_shows_the_pools() {
    let words = ["explain", "--frames", "4096", "--memory", "64M", "-e", "Idle -> Discard"];
    let result = castanet(&words, b"");
    assert_eq!(result.status, Some(0), "{}", result.err);
    for line in [
        "devices: 4096 frames of 2240 bytes, 8.8 MiB (--frames); packets that are kept move to \
         storage while fewer than 1024 are free",
        "storage: up to 29959 frames, 64.0 MiB (--memory), for packets that are kept",
    ] {
        assert!(result.out.contains(line), "{}", result.out);
    }
    let result = castanet(&[&words[..], &["--json"]].concat(), b"");
    let shown: serde_json::Value = serde_json::from_str(&result.out).unwrap();
    let frames = serde_json::json!(
        {"devices": 4096, "reserve": 1024, "storage": 29959, "bytes": 2240}
    );
    assert_eq!(shown["frames"], frames);
    let result = castanet(&["explain", "--frames", "4000000000", "-e", "Idle -> Discard"], b"");
    assert_eq!(result.status, Some(1));
    assert!(result.err.contains(" frames fit"), "{}", result.err);
}

#[test]
fn frames_that_no_memory_can_hold_are_an_error() {
    let config = "Idle -> Discard";
    let run: &[&str] = &["run", "-e", config];
    for (command, status) in [(run, 1), (&["bench", "router", "--rounds", "1"], 1)] {
        for frames in ["4000000000", "18446744073709551615"] {
            let result = castanet(&[command, &["--frames", frames]].concat(), b"");
            assert_eq!(result.status, Some(status), "{command:?} {frames}: {}", result.err);
            assert!(result.err.contains(" frames fit"), "{command:?} {frames}: {}", result.err);
        }
    }
    let result = click(&["-e", config, "--frames", "4000000000"], b"");
    assert_eq!(result.status, Some(1));
    assert!(
        result.err.contains("4000000000 frames") && result.err.contains(" frames fit"),
        "{}",
        result.err
    );
    let result = castanet(&["run", "-e", config, "--memory", "4000000T"], b"");
    assert!(result.err.contains("for packets that are kept"), "{}", result.err);
    for size in ["many", "12X", "", "101%", "99999999999999T"] {
        let result = castanet(&["run", "-e", config, "--memory", size], b"");
        assert_eq!(result.status, Some(2), "{size}: {}", result.err);
    }
    let result = named("click", &["-q", "-e", config, "--frames", "64", "--memory", "10%"], b"");
    assert_eq!((result.status, &*result.err), (Some(0), ""));
}
