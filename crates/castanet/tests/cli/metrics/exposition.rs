//! The values of metrics, and their text.

use super::{Target, value};
use crate::control::PATIENCE;
use crate::ctl::{COUNTING, RuntimeFolder, hang_up};
use crate::http::get;
use crate::program::{run, wait_until};
use castanet_lab::{Lab, Router, require};
use std::process::Command;

/// Known numbers of packets: 1000 expire, 100 of 50 bytes are shaped, 30 are dropped by a rule and 20 are
/// translated. A packet has 28 bytes.
const KNOWN: &str = "
    define($P \\<4500001c00000000011100000a000001 0a0000020009000900080000>);
    elementclass Way { input -> MarkIPHeader -> c :: Counter -> output }
    e :: InfiniteSource($P, LIMIT 1000) -> way :: Way -> ttl :: DecIPTTL -> Discard;
    s :: InfiniteSource(LENGTH 50, LIMIT 100) -> q :: Queue(1000) -> sh :: BandwidthShaper(1GBps)
        -> Unqueue -> Discard;
    m :: InfiniteSource($P, LIMIT 30) -> MarkIPHeader -> box :: Middlebox(proto udp drop, ip-ttl 9 drop) -> Discard;
    n :: InfiniteSource($P, LIMIT 20) -> MarkIPHeader -> rw :: UDPRewriter(pattern 9.9.9.9 1024-65535 - - 0 0)
        -> Discard;
    Idle -> none :: Queue(7) -> Idle; CPUAccount(s, GUARANTEE 20%, LIMIT 90%);\n";

#[test]
fn values_are_exact_and_promtool_accepts_the_text() {
    require(&["promtool"]).unwrap();
    let target = Target::with("m-known", KNOWN, &["--metrics", "0", "-j", "2"]);
    target
        .wait_for("castanet_shaper_packets_total{element=\"sh\",class=\"BandwidthShaper\"}", 100.0);
    target.wait_for("castanet_nat_mappings{element=\"rw\",class=\"UDPRewriter\"}", 1.0);
    let rule = |id| format!("{{element=\"box\",class=\"Middlebox\",rule=\"{id}\"}}");
    target.wait_for(&format!("castanet_middlebox_rule_packets_total{}", rule("id1")), 30.0);
    let drops = "castanet_element_dropped_packets_total{element=\"ttl\",class=\"DecIPTTL\",reason=\"expired\"}";
    target.wait_for(drops, 1000.0);
    let text = target.metrics();
    let bytes = format!("castanet_middlebox_rule_bytes_total{}", rule("id1"));
    let unmatched = format!("castanet_middlebox_rule_packets_total{}", rule("id2"));
    for (series, wanted) in [
        ("castanet_element_packets_total{element=\"e\",class=\"InfiniteSource\"}", 1000.0),
        ("castanet_element_packets_total{element=\"ttl\",class=\"DecIPTTL\"}", 1000.0),
        ("castanet_counted_bytes_total{element=\"way/c\",class=\"Counter\"}", 28_000.0),
        ("castanet_shaper_bytes_total{element=\"sh\",class=\"BandwidthShaper\"}", 5000.0),
        (bytes.as_str(), 840.0),
        (unmatched.as_str(), 0.0),
        ("castanet_middlebox_rules{element=\"box\",class=\"Middlebox\"}", 2.0),
        (
            "castanet_nat_mapping_events_total{element=\"rw\",class=\"UDPRewriter\",event=\"added\"}",
            1.0,
        ),
        ("castanet_queue_packets{element=\"none\",class=\"Queue\"}", 0.0),
        ("castanet_queue_capacity_packets{element=\"none\",class=\"Queue\"}", 7.0),
        (
            "castanet_element_dropped_packets_total{element=\"none\",class=\"Queue\",reason=\"full\"}",
            0.0,
        ),
        ("castanet_account_guarantee_ratio{account=\"-\"}", 0.8),
        ("castanet_account_guarantee_ratio{account=\"s\"}", 0.2),
        ("castanet_account_device_cpu_seconds_total{account=\"s\"}", 0.0),
        ("castanet_account_overruns_total{account=\"s\"}", 0.0),
        ("castanet_metrics_series_limited", 0.0),
        ("castanet_last_reload_successful", 1.0),
    ] {
        assert_eq!(value(&text, series), Some(wanted), "{series} in {text}");
    }
    assert!(value(&text, "castanet_worker_cpu_seconds_total{worker=\"1\"}").is_some(), "{text}");
    for series in ["cpu", "limited"] {
        let series = format!("castanet_account_{series}_seconds_total{{account=\"s\"}}");
        assert!(value(&text, &series).is_some(), "{text}");
    }
    let checked = run(Command::new("promtool").args(["check", "metrics"]), text.as_bytes());
    assert_eq!((checked.status, checked.err.as_str()), (Some(0), ""), "{}", checked.out);
}

#[test]
fn the_control_socket_and_both_formats_have_the_same_metrics() {
    let target = Target::new("m-formats", COUNTING);
    let names = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line[..line.rfind(' ').unwrap()].to_owned()).collect::<Vec<_>>()
    };
    let plain = get(target.address, "/metrics", &[]);
    assert!(plain.head.contains("content-type: text/plain; version=0.0.4"), "{}", plain.head);
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let open = get(target.address, "/metrics", &[accept]);
    assert!(open.head.contains("content-type: application/openmetrics-text"), "{}", open.head);
    assert!(open.body.ends_with("\n# EOF\n") && !plain.body.contains("# EOF"), "{}", open.body);
    assert!(open.body.contains("# UNIT castanet_worker_cpu_seconds seconds\n"), "{}", open.body);
    let expected = names(&plain.body);
    assert!(expected.len() > 20 && names(&open.body) == expected, "{}", open.body);
    let it = &target.it;
    assert_eq!(names(&it.output(&["ctl", "one", "metrics"])), expected);
    assert_eq!(names(&it.output(&["ctl", "one", "metrics", "--openmetrics"])), expected);
    let json = it.json(&["ctl", "one", "metrics", "--json"]);
    assert_eq!(names(json["value"].as_str().unwrap()), expected);
    assert!(it.read("one", "handlers").lines().any(|line| line == "metrics\tr"));
    assert_eq!(get(target.address, "/", &[]).status, 200);
    assert_eq!(get(target.address, "/metrics/", &[]).status, 404);
}

#[test]
fn odd_names_are_escaped() {
    require(&["promtool"]).unwrap();
    let it = RuntimeFolder::new("m-odd");
    let name = "an \"odd\" na\\me.click";
    it.write(name, COUNTING);
    let process = it.run(&[name, "--metrics", "0", "--name", "odd"]);
    let text = get(super::address(&process), "/metrics", &[]).body;
    let escaped = "configuration=\"an \\\"odd\\\" na\\\\me.click\"}";
    assert!(text.contains(escaped), "{text}");
    let checked = run(Command::new("promtool").args(["check", "metrics"]), text.as_bytes());
    assert_eq!((checked.status, checked.err.as_str()), (Some(0), ""), "{}", checked.out);
}

#[test]
fn the_number_of_series_is_bounded() {
    let counters = (0..2100).map(|n| format!(" -> c{n} :: Counter"));
    let text =
        format!("i :: InfiniteSource(LIMIT 10){} -> d :: Discard;", counters.collect::<String>());
    let target = Target::new("m-many", &text);
    let others = "castanet_counted_packets_total{element=\"other\",class=\"other\"}";
    target.wait_for(others, 1000.0);
    let text = target.metrics();
    let series = text.lines().filter(|line| line.starts_with("castanet_counted_packets_total{"));
    assert_eq!(series.count(), 2001);
    // 100 counters in each of two metrics, and 102 elements.
    assert_eq!(value(&text, "castanet_metrics_series_limited"), Some(302.0));
    let last = "castanet_counted_packets_total{element=\"c1999\",class=\"Counter\"}";
    assert_eq!(value(&text, last), Some(10.0));
}

#[test]
fn reloads_are_counted_and_scrapes_take_no_samples() {
    let target = Target::new("m-reload", COUNTING);
    assert_eq!(target.value("castanet_reloads_total{result=\"failed\"}"), 0.0);
    target.it.write("one.click", "Idle -> Nonsense;");
    hang_up(&target.process);
    target.wait_for("castanet_reloads_total{result=\"failed\"}", 1.0);
    assert_eq!(target.value("castanet_last_reload_successful"), 0.0);
    target.it.write("one.click", "Idle -> new :: Counter -> Discard;");
    target.it.output(&["ctl", "one", "reload"]);
    target.wait_for("castanet_hot_swaps_total", 1.0);
    let text = target.metrics();
    assert_eq!(value(&text, "castanet_last_reload_successful"), Some(1.0));
    assert_eq!(value(&text, "castanet_reloads_total{result=\"succeeded\"}"), Some(1.0));
    let of_new = "castanet_counted_packets_total{element=\"new\",class=\"Counter\"}";
    assert_eq!(value(&text, of_new), Some(0.0));
    assert!(!text.contains("element=\"c\""), "{text}");
    // However often it is asked, no worker has taken a sample.
    let snapshot = target.it.json(&["ctl", "one", "read", "snapshot"]);
    let elements = snapshot["elements"].as_array().unwrap();
    assert!(elements.iter().all(|it| it["sample"].is_null()), "{snapshot}");
    assert_eq!(target.it.read("one", "count_cycles"), "false");
}

#[test]
fn devices_are_named_in_a_namespace() {
    require(&["curl", "ip", "ping"]).unwrap();
    let lab = Lab::new("metrics").unwrap();
    let namespace = lab.namespace("m").unwrap();
    namespace.ip("link set lo up").unwrap();
    let text = "f :: FromDevice(lo, SNIFFER true) -> Discard; Idle -> t :: ToDevice(lo);";
    let command = namespace.command(env!("CARGO_BIN_EXE_castanet"));
    let words = ["run", "--no-control", "--metrics", "9273", "-e", text];
    let mut router = command.args(words).spawn().unwrap();
    router.wait_for(Router::READY, PATIENCE).unwrap();
    namespace.command("ping").args(["-c", "5", "-i", "0.01", "127.0.0.1"]).check().unwrap();
    let labels = "{element=\"f\",class=\"FromDevice\",device=\"lo\"}";
    wait_until("no packet of the device is counted", || {
        let page = namespace.command("curl").args(["-s", "http://127.0.0.1:9273/metrics"]);
        let text = page.check().unwrap().stdout;
        let [packets, bytes] = ["packets", "bytes"]
            .map(|unit| value(&text, &format!("castanet_device_received_{unit}_total{labels}")));
        let lost = value(&text, &format!("castanet_device_kernel_dropped_packets_total{labels}"));
        let sent = labels.replace("\"f\"", "\"t\"").replace("From", "To");
        let sent = value(&text, &format!("castanet_device_sent_packets_total{sent}"));
        assert_eq!((lost.is_some(), sent), (true, Some(0.0)), "{text}");
        // The requests of `curl` are among the packets, too.
        packets >= Some(10.0) && bytes >= packets.map(|packets| 40.0 * packets)
    });
    router.interrupt();
    assert_eq!(router.wait(PATIENCE).unwrap().code(), Some(0), "{}", router.stderr());
}
