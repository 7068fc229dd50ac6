//! `castanet bench io` and `castanet bench firewall`: their records have the documented form, and
//! no namespace, file or process is left behind.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use castanet_lab::{Command, Lab, Output, require};
use serde_json::Value;

use crate::program::{LATER, SOON, program};

/// `castanet bench io` with short runs, whose numbers mean nothing.
fn bench(words: &[&str]) -> Command {
    require(&["ip", "ethtool", "dpdk-testpmd"]).unwrap_or_else(|error| panic!("{error}"));
    let short = ["bench", "io", "--json", "--rounds", "1", "--milliseconds", "30"];
    Command::on_host(program()).args(short).args(words).timeout(LATER)
}

/// The records that it printed.
fn records(output: &Output) -> Vec<Value> {
    assert!(output.success(), "{}", output.printed());
    serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.printed()))
}

/// Insists on a record for a device and a case, with that reference.
fn found(records: &[Value], device: &str, case: &str, reference: &str) {
    let is = |it: &&Value| it["device"] == device && it["case"] == case;
    let record = records.iter().find(is).unwrap_or_else(|| panic!("{device} {case}: {records:?}"));
    assert_eq!(record["reference"], reference, "{record}");
    let number = |name: &str| record[name].as_f64().unwrap_or_else(|| panic!("{name}: {record}"));
    // Something came through, and no more than any machine could do.
    for rate in ["mpps", "reference_mpps"] {
        assert!((1e-4..2000.0).contains(&number(rate)), "{rate}: {record}");
    }
    let ratio = number("mpps") / number("reference_mpps");
    assert!((number("ratio") / ratio - 1.0).abs() < 1e-9, "{record}");
    assert!(number("undisturbed") <= number("rounds"), "{record}");
    assert_eq!(record["memory"].is_string(), device.starts_with("net_") || device == "vhost");
}

/// Network namespaces and directories that a process has left behind.
fn left_behind(id: u32) -> Vec<String> {
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|it| it.ok()?.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    let all = [Path::new("/run/netns"), &std::env::temp_dir()].map(names).concat();
    all.into_iter().filter(|name| name.starts_with(&format!("cst-{id}-"))).collect()
}

#[test]
fn veth_pairs_are_measured_and_removed() {
    let mut process = bench(&["--device", "kernel,af_packet,af_xdp"]).spawn().unwrap();
    let id = process.id();
    let status = process.wait(LATER).unwrap();
    let output = Output { status, stdout: process.stdout(), stderr: process.stderr() };
    let records = records(&output);
    assert_eq!(records.len(), 7, "{records:?}");
    found(&records, "kernel", "router", "XDP redirect in the kernel");
    found(&records, "af_packet", "forward", "kernel forwarding");
    found(&records, "af_packet", "router", "kernel forwarding");
    found(&records, "af_xdp", "forward", "minimal AF_XDP forwarder");
    found(&records, "af_xdp", "counter", "minimal AF_XDP forwarder");
    found(&records, "af_xdp", "router", "minimal AF_XDP forwarder");
    found(&records, "af_xdp", "clients", "castanet AF_XDP router");
    assert_eq!(left_behind(id), [""; 0]);
    // Standard error is no terminal: no progress messages.
    assert_eq!(output.stderr, "");
}

#[test]
fn dpdk_s_devices_are_measured_with_and_without_another_process() {
    let words = ["--no-huge", "--device", "net_pcap,vhost", "--case", "router"];
    let output = bench(&words).output().unwrap();
    let records = records(&output);
    assert_eq!(records.len(), 2, "{records:?}");
    found(&records, "net_pcap", "router", "dpdk-testpmd");
    found(&records, "vhost", "router", "dpdk-testpmd");
    assert!(records.iter().all(|it| it["memory"] == "no huge pages"), "{records:?}");
}

/// A compiler whose programs are castanet itself.
const CARGO: &str = r#"#!/bin/sh
case "$1" in
    -vV) echo "release: 1.95.0"; exit;;
    --version) echo none; exit;;
    --print) echo "    native"; exit;;
    -C) exit;;
esac
while [ "$1" != --target-dir ]; do shift; done
mkdir -p "$2/release"
printf '#!/bin/sh\nexec "$CASTANET" "$@"\n' > "$2/release/castanet-built"
chmod +x "$2/release/castanet-built"
"#;

#[test]
fn built_programs_have_rows_beside_those_of_this_one() {
    let lab = Lab::new("compiler").unwrap();
    let path = |name: &str| lab.directory().join(name);
    for name in ["cargo", "rustc"] {
        std::fs::write(path(name), CARGO).unwrap();
        std::fs::set_permissions(path(name), Permissions::from_mode(0o755)).unwrap();
    }
    let words = ["--no-huge", "--device", "net_pcap,af_xdp", "--case", "router", "--built"];
    let bench = bench(&words).env("CARGO", path("cargo")).env("CASTANET", program());
    let bench = bench.env("XDG_CACHE_HOME", path("cache")).env("CARGO_TARGET_DIR", path("target"));
    let output = bench.output().unwrap();
    let rows = records(&output);
    found(&rows, "net_pcap", "router", "dpdk-testpmd");
    found(&rows, "af_xdp", "router", "minimal AF_XDP forwarder");
    let names =
        |row: &Value| [&row["device"], &row["program"]].map(|it| it.as_str().unwrap().to_owned());
    let expected = ["net_pcap", "af_xdp"].map(|it| [[it, "plain"], [it, "built"]]).concat();
    assert_eq!(rows.iter().map(names).collect::<Vec<_>>(), expected, "{}", output.stderr);
    assert!(output.stderr.contains("castanet: af_xdp router: built in "), "{}", output.stderr);
}

#[test]
fn the_table_names_both_sides() {
    require(&["ip", "ethtool"]).unwrap();
    let words = ["bench", "io", "--rounds", "1", "--seconds", "0.03", "--device", "kernel"];
    let output = Command::on_host(program()).args(words).check().unwrap();
    let lines: Vec<&str> = output.stdout.lines().collect();
    let head = "device     case               program     Mpps  reference";
    assert!(lines[0].starts_with(head), "{lines:?}");
    assert!(lines[1].starts_with("kernel     router             plain"), "{lines:?}");
    assert!(lines[1].contains("XDP redirect in the kernel"), "{lines:?}");
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    require(&["ip", "ethtool"]).unwrap();
    let words = ["bench", "io", "--device", "af_xdp", "--seconds", "9"];
    let mut process = Command::on_host(program()).args(words).spawn().unwrap();
    let id = process.id();
    let namespace = format!("/run/netns/cst-{id}-bench0-sink");
    let began = std::time::Instant::now();
    while !Path::new(&namespace).exists() {
        assert!(began.elapsed() < SOON, "{}", process.stderr());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // Time is tested here: the signal is to come in the middle of a run.
    std::thread::sleep(std::time::Duration::from_millis(700));
    process.interrupt();
    assert!(!process.wait(SOON).unwrap().success());
    assert!(process.stderr().contains("every test network is removed"), "{}", process.stderr());
    assert_eq!(left_behind(id), [""; 0]);
}

#[test]
fn missing_measurements_are_named_and_no_result_is_a_failure() {
    // Confined to one core, nobody can feed another.
    let words = ["-c", "0", program().to_str().unwrap()];
    let taskset = Command::on_host("taskset").args(words);
    let run = taskset.args(["bench", "io", "--json", "--device", "af_xdp,vhost"]);
    let output = run.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", output.printed());
    assert_eq!(output.stdout, "[]\n");
    for rows in [
        "vhost forward, vhost counter, vhost router",
        "af_xdp forward, af_xdp counter, af_xdp router, af_xdp clients",
    ] {
        let line = format!("castanet: without {rows}: it takes two cores");
        assert!(output.stderr.contains(&line), "{}", output.stderr);
    }
}

#[test]
fn rules_are_measured_beside_those_of_linux() {
    let tools =
        ["ethtool", "ip", "iperf3", "nft", "iptables-nft-restore", "iptables-legacy-restore"];
    require(&tools).unwrap_or_else(|error| panic!("{error}"));
    let words = ["bench", "firewall", "--json", "--rules", "10,100", "--rounds", "1"];
    let short = ["--milliseconds", "30", "--seconds", "1"];
    let command = Command::on_host(program()).args(words).args(short).timeout(LATER * 3);
    let mut process = command.spawn().unwrap();
    let status = process.wait(LATER * 3).unwrap();
    let records = records(&Output { status, stdout: process.stdout(), stderr: process.stderr() });
    let peers = ["castanet", "nft-set", "nft", "iptables-nft", "iptables-legacy", "forwarding"];
    for (peer, rules) in peers.iter().flat_map(|peer| [(peer, 10), (peer, 100)]) {
        let record = records.iter().find(|it| it["peer"] == **peer && it["rules"] == rules);
        let Some(record) = record else {
            // Without rules their number means nothing.
            assert_eq!((*peer, rules), ("forwarding", 100));
            continue;
        };
        assert!(record["missing"].is_null(), "{record}");
        assert!((1e-5..1000.0).contains(&record["mpps"].as_f64().unwrap()), "{record}");
        assert!((1e-4..1000.0).contains(&record["gbits"].as_f64().unwrap()), "{record}");
        assert_eq!(record["load_seconds"].is_number(), *peer != "forwarding", "{record}");
    }
    assert_eq!(left_behind(process.id()), [""; 0]);
}

#[test]
fn the_table_of_rules_is_markdown_with_reasons_for_gaps() {
    require(&["ethtool", "ip", "iperf3", "nft"]).unwrap();
    let words = ["bench", "firewall", "--rules", "20000", "--rounds", "1", "--milliseconds", "30"];
    let peers = ["--peer", "nft,forwarding", "--seconds", "0", "--patience", "1"];
    let answer =
        Command::on_host(program()).args(words).args(peers).timeout(LATER).check().unwrap().stdout;
    let lines: Vec<&str> = answer.lines().collect();
    assert_eq!(lines[..2], ["| Mpps | 20000 rules |", "|---|---:|"], "{answer}");
    assert!(
        lines[2].starts_with("| nft | ") && lines[3].starts_with("| forwarding | "),
        "{answer}"
    );
    let loaded = lines.iter().any(|it| it.starts_with("| load, s |"));
    let missing = answer.contains("* nft with 20000 rules: not loaded in 1 s");
    assert!(loaded != missing && !answer.contains("Gbit/s"), "{answer}");
}
