//! Exit and restart of the program.

use castanet_lab::{NetworkOptions, Router, answered_pings};
use std::collections::BTreeSet;

use crate::testbed::{LATER, SOON, TestNetwork, conf, packet_config, program, until};
use crate::{builds, large};

#[test]
fn ctrl_c_ends_it_cleanly_and_it_starts_again() {
    let mut testbed = TestNetwork::castanet("interrupt", &NetworkOptions::default());
    for _ in 0..3 {
        testbed.reached();
        let mut process = testbed.process.take().unwrap();
        process.interrupt();
        let status = process.wait(SOON).unwrap();
        assert_eq!(status.code(), Some(0), "{status}: {}", process.stderr());
        assert!(!process.stderr().contains("panicked"), "{}", process.stderr());
        testbed.start();
    }
    testbed.reached();
}

#[test]
fn after_kill_9_it_starts_again() {
    let mut testbed = TestNetwork::castanet("kill", &NetworkOptions::default());
    for _ in 0..3 {
        let mut process = testbed.process.take().unwrap();
        process.kill();
        assert!(!process.wait(SOON).unwrap().success());
        testbed.start();
        testbed.reached();
    }
}

#[test]
fn a_second_one_on_the_same_devices_does_no_harm() {
    let mut testbed = TestNetwork::packet("twice", &NetworkOptions::default());
    testbed.reached();
    // With packet sockets each sees every packet: both forward a copy.
    let config = packet_config(&testbed.network);
    let mut second = testbed.network.castanet(program(), &config).spawn().unwrap();
    second.wait_for(Router::READY, SOON).unwrap();
    let [h1, h2, _] = testbed.hosts().clone();
    let answer = testbed.ping(&h1, &["-c", "3"], &h2.address);
    assert!(answer.contains("3 received") && answer.contains("DUP!"), "{answer}");
    // Duplicates are what TCP is made for.
    let file = testbed.network.lab().random_file("doubled", 1).unwrap();
    let at = format!("{}:9000", h1.address).parse().unwrap();
    let got = file.send(&h1.namespace, at, &h2.namespace, LATER).unwrap();
    assert_eq!(got.sha256, file.sha256);
    second.interrupt();
    assert_eq!(second.wait(SOON).unwrap().code(), Some(0), "{}", second.stderr());
    assert!(testbed.process.as_mut().unwrap().is_running());
    testbed.reached();
}

/// The next program runs before the last one ends: with packet sockets, packets of the time between come
/// twice, and none is lost.
#[test]
fn a_built_program_takes_over_and_hands_back() {
    const PINGS: usize = 1500;
    let mut testbed = TestNetwork::packet("takeover", &NetworkOptions::default());
    testbed.reached();
    let config = packet_config(&testbed.network);
    let built = builds::build("system-large", &large::text(), &[]);
    let [h1, h2, _] = testbed.hosts().clone();
    let ping = h1.command("ping").args(["-n", "-i", "0.002", &h2.address]);
    let ping = ping.timeout(LATER).spawn().unwrap();
    for program in [&built, program()] {
        let mut next = testbed.network.castanet(program, &config).spawn().unwrap();
        next.wait_for(Router::READY, SOON).unwrap();
        // It finds the hosts meanwhile.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let mut last = testbed.process.replace(next).unwrap();
        last.interrupt();
        assert_eq!(last.wait(SOON).unwrap().code(), Some(0), "{}", last.stderr());
    }
    let answered = || answered_pings(&ping.stdout()).into_iter().collect::<BTreeSet<_>>();
    let last = answered().last().map_or(PINGS, |last| PINGS.max(*last));
    until("no ping is answered any more", || answered().last().is_some_and(|it| *it > last + 100));
    assert!(answered().range(..=last).copied().eq(1..=last), "{}", ping.stdout());
    testbed.reached();
}

#[test]
fn a_missing_device_is_named() {
    let testbed = TestNetwork::castanet("missing", &NetworkOptions::default());
    let wrong = testbed.network.router.command(program()).arg("run").arg(conf("router.click"));
    let answer = wrong.args(["dev0=lan1", "dev1=no-such0", "dev2=lan3"]).output().unwrap();
    assert!(answer.status.code().is_some_and(|code| code != 0), "{}", answer.printed());
    assert!(answer.stderr.contains("no-such0"), "{}", answer.stderr);
    testbed.reached();
}

#[test]
fn a_missing_right_is_named() {
    let testbed = TestNetwork::kernel("right", &NetworkOptions::default());
    let router = &testbed.network.router;
    router.ip("address flush dev lan1").unwrap();
    let without = |text: &str| {
        let command = router.command("setpriv").arg("--bounding-set=-net_raw").arg(program());
        command.args(["run", "-e", text]).output().unwrap()
    };
    for (arguments, what) in [
        ("lan1", "a packet socket"),
        ("lan1, METHOD AF_PACKET", "a packet socket"),
        ("lan1, METHOD AF_XDP", "an AF_XDP socket"),
    ] {
        let text = format!("f :: FromDevice({arguments}) -> t :: ToDevice({arguments})");
        let answer = without(&text);
        assert_eq!(answer.status.code(), Some(1), "{}", answer.printed());
        // Both are named, though the first alone would be in the way.
        for element in ["f :: FromDevice", "t :: ToDevice"] {
            let line = format!(
                "error: {element}: cannot open {what} on lan1: not permitted; run as root or \
                 with CAP_NET_RAW\n"
            );
            assert!(answer.stderr.contains(&line), "{}", answer.stderr);
        }
    }
}

#[test]
fn the_demo_finds_no_fault() {
    castanet_lab::require(&["ip", "ping", "traceroute"]).unwrap();
    let seen = castanet_lab::demo(program()).unwrap();
    assert!(!seen.replayed && seen.all_passed(), "{seen:#?}");
}

#[test]
fn it_reports_the_receive_method_unless_quiet() {
    let mut testbed = TestNetwork::castanet("how", &NetworkOptions::default());
    let answer = testbed.process.as_ref().unwrap().stderr();
    let lines: Vec<&str> = answer.lines().collect();
    assert_eq!(lines.len(), 4, "{answer}");
    for (lan, line) in ["lan1", "lan2", "lan3"].iter().zip(&lines) {
        let begins = format!("castanet: {lan}: AF_XDP in copy mode (without copies the driver ");
        assert!(line.starts_with(&begins) && line.contains("program in the driver"), "{answer}");
    }
    assert_eq!(lines[3], Router::READY);
    let mut process = testbed.process.take().unwrap();
    process.interrupt();
    process.wait(SOON).unwrap();
    let config = packet_config(&testbed.network);
    let sockets = testbed.network.start(Router::Castanet { program: program(), config: &config });
    let answer = sockets.unwrap().unwrap().stderr();
    for (lan, line) in ["lan1", "lan2", "lan3"].iter().zip(answer.lines()) {
        let begins = format!("castanet: {lan}: packet socket, works with any driver; receives ");
        assert!(line.starts_with(&begins) && line.contains("TPACKET_V3"), "{answer}");
        assert!(line.ends_with("; not AF_XDP: METHOD says so"), "{answer}");
    }
    let text = "FromDevice(lan1) -> Discard; DriverManager(stop)";
    let click = testbed.network.lab().directory().join("click");
    std::os::unix::fs::symlink(program(), &click).unwrap();
    let words: [&[&str]; 2] = [&["run", "--quiet", "-e", text], &["-e", text]];
    for (program, words) in [program(), click.as_path()].into_iter().zip(words) {
        let output = testbed.network.router.command(program).args(words).output().unwrap();
        assert!(output.success(), "{}", output.printed());
        assert_eq!(output.printed(), "");
    }
}
