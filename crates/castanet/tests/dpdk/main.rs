//! DPDK from outside: whole configurations over its virtual devices. Each run
//! is a process of its own, as DPDK starts once a process.
#![allow(clippy::unwrap_used)]

#[path = "../cli/program.rs"]
#[allow(dead_code)]
mod program;

mod byte_handling;
mod direct_forwarding;
mod flow_rules;
mod hostile_memif;
mod huge_pages;
mod jumbo;
mod offload;
mod port_state;
mod refused_swap;
mod router;
mod soak;
mod virtual_devices;

use program::{RunResult, castanet, click, folder};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Without huge pages, hardware, or anything that two runs would share.
const QUIET: &str = "--no-huge -m 512 --no-pci --no-shconf --no-telemetry --log-level=4";

/// Fails where DPDK is missing: a suite that skips what it cannot check would
/// be green on an empty machine.
fn require_dpdk() {
    assert!(
        castanet_io::dpdk::is_built_in(),
        "these tests need DPDK: apt-get install dpdk-dev, and build again"
    );
}

/// Runs a configuration over virtual devices; returns the handlers' values.
fn run(devices: &str, config: &str, handlers: &[&str]) -> String {
    run_on("1", devices, config, handlers)
}

/// The same with so many workers.
fn run_on(workers: &str, devices: &str, config: &str, handlers: &[&str]) -> String {
    require_dpdk();
    let options = format!("{QUIET} {devices}");
    let mut words = vec!["run", "-j", workers, "--quiet", "--dpdk", &options, "-e", config];
    handlers.iter().for_each(|handler| words.extend(["--handler", handler]));
    let RunResult { status, out, err } = castanet(&words, b"");
    assert_eq!(status, Some(0), "{config}\n{err}");
    out
}

/// The number that `x.y:\nNUMBER\n` gives for a handler.
fn number(answer: &str, handler: &str) -> u64 {
    let after = answer.split(&format!("{handler}:\n")).nth(1).unwrap_or_else(|| panic!("{answer}"));
    after.lines().next().unwrap().parse().unwrap_or_else(|_| panic!("{answer}"))
}

/// A capture of packets of many lengths, none alike.
fn capture(name: &str, lengths: impl Iterator<Item = usize>) -> (PathBuf, Vec<Vec<u8>>) {
    let packet = |(n, len): (usize, usize)| {
        let mut packet = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
        packet.extend((14..len).map(|at| (at * 7 + n * 13) as u8));
        packet
    };
    let packets: Vec<_> = lengths.enumerate().map(packet).collect();
    (save(name, &packets), packets)
}

/// A capture of these packets.
fn save(name: &str, packets: &[Vec<u8>]) -> PathBuf {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 1 << 17, 1] {
        file.extend(word.to_le_bytes());
    }
    for (n, packet) in packets.iter().enumerate() {
        for word in [1, n as u32, packet.len() as u32, packet.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    let path = folder("dpdk").join(format!("{name}.pcap"));
    std::fs::write(&path, file).unwrap();
    path
}

/// The packets of a capture.
fn packets(path: &std::path::Path) -> Vec<Vec<u8>> {
    let file = std::fs::read(path).unwrap();
    let (mut at, mut found) = (24, Vec::new());
    while at < file.len() {
        let len = u32::from_le_bytes(file[at + 8..at + 12].try_into().unwrap()) as usize;
        found.push(file[at + 16..at + 16 + len].to_vec());
        at += 16 + len;
    }
    found
}

/// The arguments of a device that reads one capture and writes another.
fn pcap(from: &std::path::Path, to: &std::path::Path) -> String {
    format!("--vdev net_pcap0,rx_pcap={},tx_pcap={}", from.display(), to.display())
}

#[test]
fn frames_of_any_length_are_sent() {
    // Through a ring device, which brings back what is sent.
    let answer = run(
        "--vdev net_ring0",
        r"DPDKInfo(NB_MBUF 2048);
          InfiniteSource(LIMIT 1, DATA \<01>) -> t :: ToDPDKDevice(0);
          InfiniteSource(LIMIT 2, DATA \<0102>) -> t;
          InfiniteSource(LIMIT 3, DATA \<0102030405060708090a0b0c0d>) -> t;
          f :: FromDPDKDevice(0) -> c :: Counter -> Discard;
          Script(label again, wait 10ms, goto again $(lt $(c.count) 6), stop)",
        &["t.count", "t.dropped", "c.byte_count"],
    );
    assert_eq!((number(&answer, "t.count"), number(&answer, "t.dropped")), (6, 0), "{answer}");
    assert_eq!(number(&answer, "c.byte_count"), 1 + 2 * 2 + 3 * 13, "{answer}");
}

#[test]
fn captures_pass_unchanged_byte_by_byte() {
    let (from, sent) = capture("plain", (0..3000).map(|n| 60 + n * 37 % 1455));
    let to = folder("dpdk").join("plain-out.pcap");
    let answer = run(
        &pcap(&from, &to),
        "f :: FromDPDKDevice(0) -> c :: Counter -> t :: ToDPDKDevice(0);
         i :: DPDKInfo(NB_MBUF 4096);
         Script(label again, wait 10ms, goto again $(lt $(t.count) 3000), stop)",
        &[
            "f.count",
            "f.byte_count",
            "c.count",
            "t.count",
            "t.byte_count",
            "t.dropped",
            "f.hw_count",
            "f.no_frame_drops",
        ],
    );
    let bytes = sent.iter().map(Vec::len).sum::<usize>() as u64;
    for handler in ["f.count", "c.count", "t.count", "f.hw_count"] {
        assert_eq!(number(&answer, handler), 3000, "{handler}");
    }
    assert_eq!((number(&answer, "f.byte_count"), number(&answer, "t.byte_count")), (bytes, bytes));
    assert_eq!((number(&answer, "t.dropped"), number(&answer, "f.no_frame_drops")), (0, 0));
    assert!(packets(&to) == sent, "what was written is not what was read");
}

#[test]
fn modified_grown_and_shared_packets_are_sent_correctly() {
    let (from, sent) = capture("changed", (0..500).map(|n| 60 + n % 900));
    let to = folder("dpdk").join("changed-out.pcap");
    // A header in front, into the mbuf's headroom; a second owner of the
    // bytes; packets that lie in no mbuf at all.
    run(
        &pcap(&from, &to),
        r"DPDKInfo(NB_MBUF 2048);
          FromDPDKDevice(0) -> tee :: Tee;
          tee[0] -> EtherEncap(0x88b6, 2:0:0:0:0:9, 2:0:0:0:0:8) -> t :: ToDPDKDevice(0);
          tee[1] -> t;
          InfiniteSource(LIMIT 3, DATA \<020000000007 020000000006 88b7 0102030405>) -> t;
          Script(label again, wait 10ms, goto again $(lt $(t.count) 1003), stop)",
        &[],
    );
    let mut expected = Vec::new();
    for packet in &sent {
        let header = vec![2, 0, 0, 0, 0, 8, 2, 0, 0, 0, 0, 9, 0x88, 0xb6];
        expected.push([header, packet.clone()].concat());
        expected.push(packet.clone());
    }
    let made = [&[2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 6, 0x88, 0xb7][..], &[1, 2, 3, 4, 5]].concat();
    expected.extend([made.clone(), made.clone(), made]);
    let mut got = packets(&to);
    got.sort();
    expected.sort();
    assert!(got == expected, "{} packets, not {}", got.len(), expected.len());
}

#[test]
fn packets_shared_in_frames_that_are_no_mbufs_are_copied_into_mbufs() {
    let to = folder("dpdk").join("shared-out.pcap");
    // All of a burst, from its first packet on, in the frames of the first pool there is.
    let answer = run(
        &format!("--vdev net_pcap0,tx_pcap={}", to.display()),
        r"DPDKInfo(NB_MBUF 2048);
          InfiniteSource(LIMIT 5000, DATA \<020000000007 020000000006 88b7 0102030405>)
            -> tee :: Tee;
          tee[0] -> t :: ToDPDKDevice(0);
          tee[1] -> same :: Classifier(0/02000000000702000000000688b70102030405, -)
            -> c :: Counter -> Discard;
          same[1] -> bad :: Counter -> Discard;
          Script(label again, wait 10ms, goto again $(lt $(t.count) 5000), stop)",
        &["t.count", "c.count", "bad.count"],
    );
    let counts = ["t.count", "c.count", "bad.count"].map(|handler| number(&answer, handler));
    assert_eq!(counts, [5000, 5000, 0]);
    let made = [&[2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 6, 0x88, 0xb7][..], &[1, 2, 3, 4, 5]].concat();
    assert!(packets(&to) == vec![made; 5000], "what was written is not what was made");
}

#[test]
fn no_mbuf_is_lost_however_packets_end() {
    // Far more packets than mbufs: dropped, kept in a queue, copied on
    // write, sent. An mbuf that is not freed would be missing in the end.
    let answer = run(
        "--vdev net_null0,size=64",
        "i :: DPDKInfo(1024, MBUF_CACHE_SIZE 32);
         f :: FromDPDKDevice(0) -> rr :: RoundRobinSwitch;
         rr[0] -> Discard; rr[1] -> t :: ToDPDKDevice(0);
         rr[2] -> Queue(64) -> Unqueue -> tee :: Tee; tee[0] -> Discard;
         tee[1] -> EtherRewrite(2:0:0:0:0:1, 2:0:0:0:0:2) -> t;
         Script(label again, wait 10ms, goto again $(lt $(t.count) 200000), stop)",
        &["f.count", "t.count", "f.no_frame_drops", "i.pools", "i.pool_count"],
    );
    assert!(number(&answer, "f.count") > 300_000, "{answer}");
    assert!(answer.contains("i.pools:\ncastanet_mbufs_0\n"), "{answer}");
    let free = answer.split("i.pool_count:\n0 ").nth(1).unwrap().lines().next().unwrap();
    // Handlers are read while packets still wait in batches and caches.
    let free: usize = free.parse().unwrap();
    assert!((512..=1024).contains(&free), "{answer}");
}

#[test]
fn rings_bring_back_the_mbufs_that_were_sent() {
    let answer = run(
        "--vdev net_ring0",
        "DPDKInfo(2048);
         InfiniteSource(LIMIT 5000, DATA \\<020000000007 020000000006 88b7 01 02 03>)
           -> t :: ToDPDKDevice(0);
         f :: FromDPDKDevice(0)
           -> same :: Classifier(0/02000000000702000000000688b7010203, -) -> c :: Counter -> Discard;
         same[1] -> bad :: Counter -> Discard;
         Script(label again, wait 10ms, goto again $(lt $(c.count) 5000), stop)",
        &["t.count", "f.count", "c.count", "bad.count"],
    );
    for handler in ["t.count", "f.count", "c.count"] {
        assert_eq!(number(&answer, handler), 5000, "{handler}");
    }
    assert_eq!(number(&answer, "bad.count"), 0);
}

#[test]
fn rings_of_the_elements_join_two_workers() {
    // From anywhere into mbufs, through a ring to another worker, some shared,
    // one too long for any mbuf; and through a ring that no port empties. All
    // may wait: the worker that empties the ring may be delayed for any time.
    let config = "DPDKInfo(8192);
         s :: InfiniteSource(LIMIT 5000, DATA \\<020000000007 020000000006 88b7 01 02 03>)
           -> e :: EnsureDPDKBuffer -> tee :: Tee;
         tee[0] -> t :: ToDPDKRing(1, near, far, NDESC 500, IQUEUE 5000);
         tee[1] -> full :: ToDPDKRing(FROM_PROC x, TO_PROC y, NDESC 100, IQUEUE 10);
         f :: FromDPDKRing(FROM_PROC far, TO_PROC near, FORCE_LOOKUP true)
           -> same :: Classifier(0/02000000000702000000000688b7010203, -) -> c :: Counter -> Discard;
         same[1] -> bad :: Counter -> Discard;
         InfiniteSource(LIMIT 1, LENGTH 4000) -> long :: EnsureDPDKBuffer -> bad;
         StaticThreadSched(f 1);
         Script(label again, wait 10ms, goto again $(lt $(c.count) 5000), stop)";
    let handlers = [
        "t.count",
        "f.count",
        "c.count",
        "bad.count",
        "full.n_sent",
        "full.n_dropped",
        "full.length",
        "long.dropped",
        "f.pkt_count",
        "f.how",
    ];
    require_dpdk();
    let mut words = vec!["run", "-j", "2", "--quiet", "--dpdk", QUIET, "-e", config];
    handlers.iter().for_each(|handler| words.extend(["--handler", handler]));
    let RunResult { status, out, err } = castanet(&words, b"");
    assert_eq!(status, Some(0), "{err}");
    let counts: Vec<u64> = handlers[..9].iter().map(|handler| number(&out, handler)).collect();
    assert_eq!(counts, [5000, 5000, 5000, 0, 100, 4890, 100, 1, 5000], "{out}");
    assert!(out.contains("near_2_far: DPDK ring, mbufs in place"), "{out}");
}

#[test]
fn packets_in_several_mbufs_are_joined() {
    let (from, sent) = capture("long", (0..200).map(|n| 60 + n * 41));
    let to = folder("dpdk").join("long-out.pcap");
    let dump = folder("dpdk").join("long-dump.pcap");
    let config = format!(
        "DPDKInfo(2048);
         f :: FromDPDKDevice(0) -> d :: ToDump({}, SNAPLEN 0) -> t :: ToDPDKDevice(0);
         Script(label again, wait 10ms, goto again $(lt $(f.count) 200), stop)",
        dump.display()
    );
    let answer = run(&pcap(&from, &to), &config, &["f.count", "t.count", "t.dropped"]);
    assert!(packets(&dump) == sent, "what was received is not what was in the capture");
    // Packets that fit in one mbuf are sent again. The others are refused, because they are longer
    // than the port's MTU of 1500.
    let short: Vec<_> = sent.iter().filter(|packet| packet.len() <= 2112).cloned().collect();
    assert!(packets(&to) == short, "{answer}");
    assert_eq!(number(&answer, "t.count") + number(&answer, "t.dropped"), 200);
}

#[test]
fn queues_workers_and_ports() {
    // Two workers, two queues, two ports found by number and by name.
    require_dpdk();
    let options = format!("{QUIET} --vdev net_null0 --vdev net_null1");
    let config = "a :: FromDPDKDevice(0, QUEUE 0) -> t :: ToDPDKDevice(net_null1);
                  b :: FromDPDKDevice(net_null1, 0, 1) -> t;
                  StaticThreadSched(a 0, b 1);
                  Script(label again, wait 10ms, goto again $(lt $(b.count) 10000),
                         goto again $(lt $(a.count) 10000), stop)";
    let handlers = [
        "a.device",
        "b.device",
        "a.nb_rx_queues",
        "a.how",
        "t.how",
        "a.carrier",
        "a.vendor",
        "a.type",
    ];
    let mut words = vec!["run", "-j", "2", "--quiet", "--dpdk", &options, "-e", config];
    handlers.iter().for_each(|handler| words.extend(["--handler", handler]));
    let RunResult { status, out, err } = castanet(&words, b"");
    assert_eq!(status, Some(0), "{err}");
    assert_eq!((number(&out, "a.device"), number(&out, "b.device")), (0, 1));
    assert_eq!((number(&out, "a.nb_rx_queues"), number(&out, "a.carrier")), (1, 1));
    assert!(out.contains("net_null0: DPDK port 0, driver net_null, "), "{out}");
    assert!(out.contains("a.vendor:\nUnknown\n") && out.contains("a.type:\nfiber\n"), "{out}");
}

#[test]
fn workers_receive_from_one_port_by_queues_of_their_own() {
    // Two queues each way, a file each.
    let (one, first) = capture("queue-0", (0..700).map(|n| 60 + n % 400));
    let (two, second) = capture("queue-1", (0..900).map(|n| 460 + n % 400));
    let outs = ["queue-0-out", "queue-1-out"].map(|name| folder("dpdk").join(name));
    let [to_one, to_two] = outs.each_ref().map(|path| format!("tx_pcap={}", path.display()));
    let (one, two) = (one.display(), two.display());
    let device = format!("--vdev net_pcap0,rx_pcap={one},rx_pcap={two},{to_one},{to_two}");
    let config = "f :: FromDPDKDevice(0) -> s :: CPUSwitch; t :: ToDPDKDevice(net_pcap0);
                  s[0] -> w0 :: Counter -> t; s[1] -> w1 :: Counter -> t;
                  Script(label again, wait 10ms, goto again $(lt $(t.count) 1600), stop)";
    require_dpdk();
    let options = format!("{QUIET} {device}");
    let mut words = vec!["run", "-j", "2", "--quiet", "--dpdk", &options, "-e", config];
    let counts = ["f.count", "t.count", "w0.count", "w1.count", "f.hw_count", "f.nb_rx_queues"];
    counts.iter().chain(&["f.how"]).for_each(|handler| words.extend(["--handler", handler]));
    let RunResult { status, out, err } = castanet(&words, b"");
    assert_eq!(status, Some(0), "{err}");
    let counts = counts.map(|handler| number(&out, handler));
    assert_eq!(counts, [1600, 1600, 700, 900, 1600, 2], "{out}");
    assert!(out.contains("; 2 workers receive"), "{out}");
    // Each worker sent what it had received to a queue of its own.
    assert!(packets(&outs[0]) == first && packets(&outs[1]) == second);
    // `explain` tells the queues of each worker before the port is opened.
    let words = ["explain", "-j", "2", "--dpdk", &options, "-e", config];
    let RunResult { status, out, err } = castanet(&words, b"");
    assert_eq!(status, Some(0), "{err}");
    for line in [
        "f :: FromDPDKDevice: net_pcap0: DPDK port 0, driver net_pcap",
        "up to 2 queues",
        "worker 1 receives from queue 1",
        "worker 1 sends to queue 1, alone: it never waits for a lock",
        "asks f :: FromDPDKDevice  (2 of 2 workers)",
    ] {
        assert!(out.contains(line), "{line} is not in\n{out}");
    }
}

/// Processor time that the threads of a process have used.
fn cpu_time(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_thread = |entry: std::fs::DirEntry| -> u64 {
        let text = std::fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
        text.split(' ').next().unwrap_or_default().parse().unwrap_or(0)
    };
    Duration::from_nanos(threads.map(|entry| of_thread(entry.unwrap())).sum())
}

/// Processor time of a thread that does nothing for this long but to sleep by the millisecond.
fn cost_of_sleeps(time: Duration) -> Duration {
    let sleeps = std::thread::spawn(move || {
        let spent = || {
            let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
            Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
        };
        let (before, began) = (spent(), Instant::now());
        while began.elapsed() < time {
            std::thread::sleep(Duration::from_millis(1));
        }
        spent() - before
    });
    sleeps.join().unwrap()
}

#[test]
fn an_idle_port_costs_little_and_loses_nothing_when_packets_come() {
    require_dpdk();
    // A million packets a second, for as long as the descriptors hold, after three seconds of
    // nothing; they come back by the ring.
    let config = "DPDKInfo(4096);
        s :: InfiniteSource(LIMIT 1000, BURST 32, ACTIVE false, DATA \\<020000000007 020000000006
            88b7 01 02 03>) -> t :: ToDPDKDevice(0);
        f :: FromDPDKDevice(0) -> c :: Counter -> Discard;
        Script(wait 3s, write s.active true, label again, wait 10ms,
               goto again $(lt $(c.count) 1000), stop)";
    let options = format!("{QUIET} --vdev net_ring0");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_castanet"));
    command.args(["run", "--quiet", "--dpdk", &options, "-e", config]);
    command.args(["--handler", "c.count", "--handler", "f.hw_dropped"]);
    let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    // The test is about processor time in a period without packets, so it sleeps.
    std::thread::sleep(Duration::from_millis(800));
    let before = cpu_time(child.id());
    let sleeps = cost_of_sleeps(Duration::from_secs(2));
    let used = cpu_time(child.id()) - before;
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let answer = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        (number(&answer, "c.count"), number(&answer, "f.hw_dropped")),
        (1000, 0),
        "{answer}"
    );
    // A worker that polled all the time would take two seconds. One that polls each millisecond takes little beside
    // the sleeps themselves, which cost 88 ms on a machine with slow timers.
    assert!(used < sleeps + Duration::from_millis(100), "{used:?}, of which sleeps {sleeps:?}");
}

#[test]
fn packets_without_room_wait_and_then_are_dropped_and_counted() {
    // A ring of 1024 that nobody empties.
    let config = |arguments: &str| {
        format!(
            "DPDKInfo(8192); s :: InfiniteSource(LIMIT 3000, BURST 32) -> t :: ToDPDKDevice(0{arguments});
             Script(label again, wait 10ms, goto again $(lt $(s.count) 3000), stop)"
        )
    };
    let handlers = ["t.count", "t.drops.full", "t.dropped"];
    let counts = |arguments| {
        let answer = run("--vdev net_ring0", &config(arguments), &handlers);
        handlers.map(|handler| number(&answer, handler))
    };
    let [sent, full, dropped] = counts(", BLOCKING false, IQUEUE 100");
    assert!((1000..=1024).contains(&sent), "{sent}");
    assert_eq!((full, dropped), (3000 - 100 - sent, full));
    let [sent, full, dropped] = counts(", BLOCKING false, IQUEUE 4000");
    assert_eq!((full, dropped), (0, 0), "all wait, but {sent} that were sent");
}

#[test]
fn explain_works_without_dpdk_running() {
    require_dpdk();
    let config = "FromDPDKDevice(0, MAXQUEUES 2) -> ToDPDKDevice(1, N_QUEUES 1)";
    let RunResult { status, out, err } = castanet(&["explain", "-j", "3", "-e", config], b"");
    assert_eq!(status, Some(0), "{err}");
    for line in [
        "port 0 of DPDK, which is not started; give its options with --dpdk to know more",
        "(2 of 3 workers; it has 2 queues to use)",
        "worker 0 sends to queue 0, locked for each burst: so does worker 1",
        "FromDPDKDevice@1 -> ToDPDKDevice@2, without a look at the packets",
    ] {
        assert!(out.contains(line), "{line} is not in\n{out}");
    }
}

#[test]
fn click_takes_dpdk_options_up_to_the_dashes() {
    require_dpdk();
    let mut words = vec!["--dpdk"];
    words.extend(QUIET.split(' '));
    words.extend(["--vdev", "net_null0", "--"]);
    words.extend(["-e", "f :: FromDPDKDevice(0) -> Discard; Script(wait 20ms, stop)"]);
    words.extend(["-h", "f.device"]);
    let RunResult { status, out, err } = click(&words, b"");
    assert_eq!((status, out.as_str()), (Some(0), "0\n"), "{err}");
}

#[test]
fn errors_name_the_valid_choices() {
    require_dpdk();
    let options = format!("{QUIET} --vdev net_null0");
    let wrong = |dpdk: Option<&str>, config: &str| {
        let mut words = vec!["run"];
        dpdk.iter().for_each(|options| words.extend(["--dpdk", *options]));
        words.extend(["-e", config]);
        let RunResult { status, err, .. } = castanet(&words, b"");
        assert_eq!(status, Some(1), "{err}");
        err
    };
    let err = wrong(None, "FromDPDKDevice(0) -> Discard");
    assert!(err.contains("DPDK has not been started; give its options with --dpdk"), "{err}");
    let err = wrong(Some(&options), "FromDPDKDevice(7) -> Discard");
    assert!(err.contains("there is no such port; there are 0 (net_null0)"), "{err}");
    let twice = "FromDPDKDevice(0, 0) -> Discard; FromDPDKDevice(0, 0) -> Discard";
    let err = wrong(Some(&options), twice);
    assert!(err.contains("queue 0 is in use by another element"), "{err}");
    let err = wrong(Some(&options), "DPDKInfo(4000000); FromDPDKDevice(0) -> Discard");
    assert!(err.contains("no memory for 4000000 mbufs"), "{err}");
    let err = wrong(Some(&options), "FromDPDKRing(1, a, b, FORCE_LOOKUP true) -> Discard");
    assert!(err.contains("cannot open DPDK ring b_2_a: no other process has made it"), "{err}");
    let err = wrong(None, "Idle -> EnsureDPDKBuffer -> Discard");
    assert!(err.contains("DPDK has not been started; give its options with --dpdk"), "{err}");
    let err = wrong(Some("--no-such-option"), "Idle -> Discard");
    assert!(err.contains("castanet: cannot start DPDK: "), "{err}");
    // A port that may be missing.
    let may = "FromDPDKDevice(7, ALLOW_NONEXISTENT true) -> Discard; Script(wait 10ms, stop)";
    let RunResult { status, err, .. } = castanet(&["run", "--dpdk", &options, "-e", may], b"");
    assert_eq!(status, Some(0), "{err}");
}
