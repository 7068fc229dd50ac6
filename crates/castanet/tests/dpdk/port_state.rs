//! Ports' packet annotations, link state and counters.

use super::{QUIET, capture, number, packets, pcap, require_dpdk, run, run_on, save};
use crate::offload::beside_a_tap;
use crate::program::{RunResult, castanet, folder};

#[test]
fn ports_tell_which_checksums_are_wrong_and_drop_nothing_for_it() {
    // The kernel's side of a tap sends what the port receives and checks.
    let frames = |n: usize| {
        let transport = if n.is_multiple_of(2) { "tcp" } else { "udp" };
        let wrong = match n % 10 {
            0..3 => "badsum",
            3..5 => "badcheck",
            _ => "",
        };
        let text = format!(
            "eth 2:0:0:0:0:1 > 2:0:0:0:0:2 10.0.0.1:7 > 10.0.0.2:80 {transport} len 90 {wrong}"
        );
        castanet_wire::sketch::build(&text).unwrap().bytes
    };
    let from = save("wrong-sums", &(0..100).map(frames).collect::<Vec<_>>());
    let config = |arguments: &str| {
        format!(
            "DPDKInfo(4096);
             f :: FromDPDKDevice(0{arguments}) -> ip :: Classifier(12/0800, -) -> c :: Counter
                 -> Discard;
             ip[1] -> Discard;
             d :: FromDump({}, STOP false, ACTIVE false)
                 -> ToDevice(dtap0, METHOD AF_PACKET);
             Script(wait 100ms, write d.active true,
                    label again, wait 10ms, goto again $(lt $(c.count) 100), stop)",
            from.display()
        )
    };
    let handlers = ["c.count", "f.bad_ip_checksums", "f.bad_transport_checksums"];
    let counts = |name, arguments| {
        let output = beside_a_tap(name, &config(arguments), &handlers);
        handlers.map(|handler| number(&output, handler))
    };
    assert_eq!(counts("said1", ", IPCO true, TCO true, UCO true"), [100, 30, 20]);
    assert_eq!(counts("said2", ""), [100, 0, 0]);
}

/// A port of which there are always packets.
#[test]
fn receiving_can_be_stopped_and_started() {
    let config = "DPDKInfo(2048); f :: FromDPDKDevice(0) -> c :: Counter -> Discard;
        Script(label first, wait 10ms, goto first $(eq $(c.count) 0),
            write f.active false, wait 50ms, set n $(c.count), wait 50ms,
            print $(f.active) $(eq $n $(c.count)), write f.active true,
            label again, wait 10ms, goto again $(eq $n $(c.count)), print $(f.active), stop)";
    let output = run("--vdev net_null0", config, &[]);
    assert_eq!(output, "false true\ntrue\n");
    let config = "f :: FromDPDKDevice(0, ACTIVE false) -> c :: Counter -> Discard;
        Script(wait 50ms, print $(f.active) $(c.count), stop)";
    assert_eq!(run("--vdev net_null0", config, &[]), "false 0\n");
}

#[test]
fn a_port_has_handlers_for_its_link_and_counters() {
    let (from, _) = capture("told", (0..300).map(|n| 60 + n % 900));
    let to = folder("dpdk").join("told-out.pcap");
    let handlers = [
        "f.hw_count",
        "t.hw_count",
        "f.hw_bytes",
        "t.hw_bytes",
        "t.hw_errors",
        "f.nombufs",
        "f.mtu",
        "f.nb_tx_queues",
        "f.nb_rx_desc",
        "f.duplex",
        "f.autoneg",
        "f.speed",
        "f.tx_count",
        "f.tx_bytes",
    ];
    let texts = ["f.driver", "f.xstats", "f.xstats rx_good_packets", "f.queue_count"];
    let output = run(
        &pcap(&from, &to),
        "DPDKInfo(4096); f :: FromDPDKDevice(0, NDESC 512, MTU 1400) -> t :: ToDPDKDevice(0);
         Script(label again, wait 10ms, goto again $(lt $(t.count) 300), stop)",
        &[&handlers[..], &texts].concat(),
    );
    let counts = handlers.map(|handler| number(&output, handler));
    assert_eq!(counts[..2], [300, 300], "{output}");
    assert_eq!(counts[2], counts[3]);
    assert_eq!(counts[4..9], [0, 0, 1400, 1, 512], "{output}");
    // The driver's link state without a link: ten gigabits, full duplex, fixed.
    assert_eq!(counts[9..12], [1, 0, 10_000], "{output}");
    assert!(output.contains("f.driver:\nnet_pcap\n"), "{output}");
    assert!(output.contains("tx_good_packets[1] = 300\n"), "{output}");
    assert_eq!(number(&output, "f.xstats rx_good_packets"), 300);
    assert!(output.contains("f.queue_count:\nQueue 0: -\n"), "{output}");
}

#[test]
fn a_port_takes_more_addresses_and_other_bursts() {
    let output = run(
        "--vdev net_tap0",
        "DPDKInfo(4096); f :: FromDPDKDevice(0, BURST 16) -> Discard; Idle -> ToDPDKDevice(0);
         Script(print $(f.burst), write f.add_mac 02:00:00:00:00:09, write f.burst 8,
                write f.remove_mac 02:00:00:00:00:09, write f.reset_counts, write f.reset_count,
                print $(f.count), stop)",
        &["f.burst"],
    );
    // The host may send packets of its own later.
    assert!(output.lines().take(3).eq(["16", "0", "8"]), "{output}");
}

#[test]
fn a_port_is_asked_for_two_bursts_where_no_account_bounds_runs() {
    let account = "t :: { Idle -> Discard }; CPUAccount(t, GUARANTEE 10%);";
    for (arguments, more, burst) in [("", "", 128), (", BURST 16", "", 16), ("", account, 64)] {
        // The driver has as many packets as it is asked for.
        let config = format!(
            "DPDKInfo(4096); f :: FromDPDKDevice(0{arguments}) -> b :: AverageBatchCounter
                 -> c :: Counter -> Discard; Idle -> ToDPDKDevice(0); {more}
             Script(label l, wait 10ms, goto l $(lt $(c.count) 10000), stop)"
        );
        let output = run("--vdev net_null0", &config, &["b.average_total", "c.count"]);
        assert_eq!(number(&output, "b.average_total"), burst, "{config}");
    }
}

#[test]
fn a_port_takes_another_address_and_fewer_queues_for_its_hash() {
    let output = run(
        "--vdev net_null0",
        "DPDKInfo(4096);
         f :: FromDPDKDevice(0, N_QUEUES 4, MAX_RSS 2, MAC 2:0:0:0:0:9, CLEAR true, PAUSE unset)
             -> Discard;
         Script(wait 10ms, write f.max_rss 3, print \"three\", write f.max_rss 5, stop)",
        &["f.mac", "f.nb_rx_queues"],
    );
    assert!(output.starts_with("three\n"), "{output}");
    assert!(output.contains("f.mac:\n02-00-00-00-00-09\n"), "{output}");
    assert_eq!(number(&output, "f.nb_rx_queues"), 4, "{output}");
}

/// The entries of each of two queues in a redirection table.
fn entries(table: &str) -> [usize; 2] {
    ["0", "1"].map(|queue| table.split_whitespace().filter(|it| *it == queue).count())
}

#[test]
fn a_balancer_changes_the_redirection_table_of_a_port() {
    let output = run_on(
        "2",
        "--vdev net_null0",
        "DPDKInfo(4096);
         fd0 :: FromDPDKDevice(0, MODE rss, RSS_AGGREGATE 1, ACTIVE false, MAXTHREADS 2) -> Discard;
         src :: FastUDPFlows(5000, -1, 64, 0:0:0:0:0:1, 10.0.0.1, 0:0:0:0:0:2, 10.0.0.2, 1000, 100)
             -> MarkIPHeader(14) -> AggregateIP(udp sport)
             -> WorkPackage(S 0, N 0, R 0, PAYLOAD false, W 5000)
             -> agg :: AggregateCounterVector(MASK 511) -> Discard;
         balancer :: DeviceBalancer(DEV fd0, METHOD rsspp, VERBOSE 0, TIMER 50, CPUS 2, TARGET load,
             STARTCPU -1, LOAD 0.90, RSSCOUNTER agg, AUTOSCALE 0, CYCLES cycles, RETA_SIZE 512,
             IMBALANCE_THRESHOLD 0.02, DANCER 0, ACTIVE true, NUMA 0, MARK true, GROUP true);
         StaticThreadSched(balancer -2);
         Script(wait 20ms, print \"start: $(fd0.rss_reta)\", label more, wait 50ms,
                goto more $(lt $(balancer.moves) 10), write balancer.active false,
                print \"end: $(fd0.rss_reta)\", stop)",
        &["fd0.rss_reta_size", "fd0.queue_workers", "balancer.active", "balancer.autoscale"],
    );
    let table = |label: &str| {
        let text = output.split(label).nth(1).and_then(|it| it.lines().next());
        entries(text.unwrap_or_default())
    };
    assert_eq!(table("start: "), [64, 64], "{output}");
    // All load is that of worker 0, whose entries go to the other.
    let end = table("end: ");
    assert!(end[0] <= 54 && end[0] + end[1] == 128, "{output}");
    assert_eq!(number(&output, "fd0.rss_reta_size"), 128, "{output}");
    assert!(output.contains("fd0.queue_workers:\n0 0\n1 1\n"), "{output}");
    assert!(output.contains("balancer.active:\nfalse\n"), "{output}");
}

#[test]
fn a_balancer_moves_entries_to_the_next_queue_or_leaves_them() {
    let config = |method: &str, moves: u64| {
        format!(
            "DPDKInfo(4096); fd0 :: FromDPDKDevice(0, MODE rss, MAXTHREADS 2, ACTIVE false) -> Discard;
             db :: DeviceBalancer({method}, DEV fd0, TIMER 20, TARGET balance, ACTIVE false);
             Script(write fd0.max_rss 1, print \"start: $(fd0.rss_reta)\", write db.active true,
                    write db.autoscale true, label more, wait 200ms,
                    goto more $(lt $(db.moves) {moves}), write db.active false,
                    print \"end: $(fd0.rss_reta)\", stop)"
        )
    };
    for (method, moves) in [("rss", 0), ("rssrr", 128), ("pianorss, RSSCOUNTER c", 0)] {
        let counter = "; c :: AggregateCounterVector(127); Idle -> c -> Discard";
        let handlers = ["db.moves", "db.run_stats", "db.run_stats_time_first"];
        let handlers = [&handlers[..], &["db.run_stats_imbalance_first", "db.autoscale"]].concat();
        let output = run_on("2", "--vdev net_null0", &(config(method, moves) + counter), &handlers);
        let line =
            |label: &str| output.split(label).nth(1).unwrap().lines().next().unwrap().to_owned();
        assert_eq!(entries(&line("start: ")), [128, 0], "{output}");
        assert_eq!(entries(&line("end: ")), [64, 64], "{output}");
        assert!(number(&output, "db.moves") >= moves, "{output}");
        assert!(output.contains("db.autoscale:\ntrue\n"), "{output}");
        assert_eq!(output.contains("0 0 nan nan\n1 0 nan nan\n"), moves == 0, "{output}");
    }
}

#[test]
fn unsupported_driver_features_are_errors() {
    require_dpdk();
    let (from, _) = capture("cannot", 60..61);
    let pcap = format!("--vdev net_pcap0,rx_pcap={}", from.display());
    for (device, argument, what) in [
        (&*pcap, "MAC 2:0:0:0:0:9", "its driver net_pcap takes no other Ethernet address: "),
        (&pcap, "MAX_RSS 1", "its driver does not choose among queues by hash: "),
        ("--vdev net_null0", "PAUSE rx", "its driver net_null does not do that with pause frames"),
        ("--vdev net_null0", "RX_INTR 0", "its driver cannot wake who sleeps (RX_INTR): "),
        ("--vdev net_memif0", "RX_INTR 0", "(RX_INTR): it has to be looked after"),
        ("--vdev net_null0", "MODE none, MAX_RSS 2", "MAX_RSS is about a hash, and MODE none"),
        ("--vdev net_null0", "PAUSE now", "PAUSE: `now` is not full, rx, tx, none or unset"),
    ] {
        let config = format!("DPDKInfo(1024); FromDPDKDevice(0, {argument}) -> Discard");
        let options = format!("{QUIET} {device}");
        let RunResult { status, err, .. } =
            castanet(&["run", "--dpdk", &options, "-e", &config], b"");
        assert_eq!(status, Some(1), "{argument}");
        assert!(err.contains(what), "{err}");
        assert!(!err.contains("without hardware"), "{err}");
    }
}

#[test]
fn a_port_goes_on_as_it_was_when_it_cannot_be_set_up_as_others_want_it() {
    require_dpdk();
    // The other one wants a second queue, and what the driver does not do.
    let config = "DPDKInfo(2048); c :: Counter; f :: FromDPDKDevice(0) -> c -> Discard;
        Script(wait 20ms, print $(f.mac),
               writeq hotconfig \"FromDPDKDevice(0, QUEUE 1, MAC 2:0:0:0:0:9, PAUSE rx)
                   -> c :: Counter -> Discard\",
               set count $(c.count), wait 50ms, print $(gt $(c.count) $count) $(f.mac), stop)";
    let options = format!("{QUIET} --vdev net_null0");
    let words = ["run", "-R", "--quiet", "--dpdk", &options, "-e", config];
    let RunResult { status, out, err } = castanet(&words, b"");
    assert!(err.contains("its driver net_null does not do that with pause frames"), "{err}");
    let mac = out.lines().next().unwrap_or_default();
    assert_eq!((status, &*out), (Some(0), &*format!("{mac}\ntrue {mac}\n")), "{err}");
}

#[test]
fn another_configuration_goes_on_with_the_queues_it_would_open() {
    require_dpdk();
    let (from, _) = capture("swapped", 60..160);
    let config = |receive: &str, send: &str| {
        format!(
            "DPDKInfo(2048); f :: FromDPDKDevice(0{receive}) -> t :: ToDPDKDevice(0{send});
             Script(label more, wait 10ms, goto more $(lt $(t.count) 100),
                    print $(gt $(f.count) 99) $(f.count) $(t.count) $(f.burst), stop)"
        )
    };
    let swapped = |receive: &str, send: &str| {
        let next = config(receive, send).replace('$', "\\$");
        let config =
            config("", "").replace("stop)", &format!("writeq hotconfig \"{next}\", stop)"));
        let device = format!("--vdev net_pcap0,rx_pcap={}", from.display());
        let options = format!("{QUIET} {device}");
        castanet(&["run", "-R", "--quiet", "--dpdk", &options, "-e", &config], b"")
    };
    let RunResult { status, out, err } = swapped(", BURST 16", ", IQUEUE 10, BLOCKING false");
    assert_eq!((status, &*out), (Some(0), "true 100 100 0\ntrue 100 100 16\n"), "{err}");
    // Another element takes the queue of one that ends.
    let RunResult { status, out, err } = swapped(", NDESC 512", "");
    assert_eq!((status, &*err), (Some(0), ""), "{out}");
    assert_eq!(out.lines().count(), 2, "{out}");
    // A queue cannot be two elements'.
    let twice = "); FromDPDKDevice(0, QUEUE 0) -> Discard; Idle -> ToDPDKDevice(0";
    let RunResult { status, out, err } = swapped("", twice);
    assert!(err.contains("f :: FromDPDKDevice: cannot open DPDK port 0: "), "{err}");
    assert_eq!((status, &*out), (Some(0), "true 100 100 0\n"));
}

#[test]
fn another_worker_opens_its_own_queue_under_another_configuration() {
    require_dpdk();
    let config = |more: &str, then: &str| {
        format!(
            "DPDKInfo(2048); s :: InfiniteSource -> t :: ToDPDKDevice(0); {more}
             Script(wait 50ms, print $(gt $(t.count) 0) $(t.dropped), {then} stop)"
        )
    };
    let next = config("", "").replace('$', "\\$");
    let config =
        config("StaticThreadSched(s 1);", &format!("writeq hotconfig \"{next}\", print no,"));
    let options = format!("{QUIET} --vdev net_null0");
    let words = ["run", "-R", "-j", "2", "--quiet", "--dpdk", &options, "-e", &config];
    let RunResult { status, out, err } = castanet(&words, b"");
    assert_eq!((status, &*out), (Some(0), "true 0\ntrue 0\n"), "{err}");
}

#[test]
fn elements_agree_about_settings_of_their_port() {
    require_dpdk();
    let options = format!("{QUIET} --vdev net_null0");
    let config = "DPDKInfo(2048); FromDPDKDevice(0, MAC 2:0:0:0:0:1) -> Discard;
                  FromDPDKDevice(0, MAC 2:0:0:0:0:2) -> Discard";
    let RunResult { status, err, .. } = castanet(&["run", "--dpdk", &options, "-e", config], b"");
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains("another element gives it another Ethernet address (MAC)"), "{err}");
}

#[test]
fn packets_have_the_time_at_which_the_port_received_them() {
    // Captured at 1 s, one microsecond apart.
    let (from, sent) = capture("stamped", 60..160);
    let dump = folder("dpdk").join("stamped-dump.pcap");
    let config = format!(
        "DPDKInfo(2048);
         f :: FromDPDKDevice(0, TIMESTAMP true) -> ToDump({}, NANO false) -> Discard;
         Script(label again, wait 10ms, goto again $(lt $(f.count) 100), stop)",
        dump.display()
    );
    run(&format!("--vdev net_pcap0,rx_pcap={}", from.display()), &config, &[]);
    assert!(std::fs::read(&dump).unwrap()[24..] == std::fs::read(&from).unwrap()[24..]);
    assert!(packets(&dump) == sent);
}

#[test]
fn packets_tell_the_queue_and_the_hash_that_brought_them() {
    let (one, _) = capture("paint-0", (0..100).map(|n| 60 + n));
    let (two, _) = capture("paint-1", (0..200).map(|n| 60 + n));
    let device = format!("--vdev net_pcap0,rx_pcap={},rx_pcap={}", one.display(), two.display());
    // net_pcap has no hash: the annotation is zero, whatever it was.
    let output = run(
        &device,
        "DPDKInfo(4096);
         f :: FromDPDKDevice(0, N_QUEUES 2, PAINT_QUEUE true, RSS_AGGREGATE true, MODE rss)
             -> p :: PaintSwitch; p[0] -> zero :: Counter -> Discard;
         p[1] -> one :: Counter -> Discard;
         Script(label again, wait 10ms, goto again $(lt $(f.count) 300), stop)",
        &["zero.count", "one.count"],
    );
    assert_eq!(
        (number(&output, "zero.count"), number(&output, "one.count")),
        (100, 200),
        "{output}"
    );
}

#[test]
fn modes_that_do_not_exist_here_are_errors() {
    require_dpdk();
    let options = format!("{QUIET} --vdev net_null0");
    for (mode, what) in [
        ("dcb", "MODE: `dcb` is not supported; what is: rss, none, vmdq or vmdq_rss"),
        ("fast", "MODE: `fast` is not rss, none, vmdq or vmdq_rss"),
    ] {
        let config = format!("FromDPDKDevice(0, MODE {mode}) -> Discard");
        let RunResult { status, err, .. } =
            castanet(&["run", "--dpdk", &options, "-e", &config], b"");
        assert_eq!(status, Some(1));
        assert!(err.contains(what), "{err}");
    }
    let config = "f :: FromDPDKDevice(0, MODE none) -> Discard; Script(wait 10ms, stop)";
    let RunResult { status, err, .. } = castanet(&["run", "--dpdk", &options, "-e", config], b"");
    assert_eq!(status, Some(0), "{err}");
}
