//! Tests that labs build their networks, leave nothing behind, and do not touch the host.
#![allow(clippy::unwrap_used)] // In a test it is an assertion.

use std::fs;
use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use castanet_lab::{Error, Lab, Port, require};

fn namespaces() -> Vec<String> {
    let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

fn exists(name: &str) -> bool {
    namespaces().iter().any(|other| other == name)
}

#[test]
fn two_namespaces_reach_each_other_and_the_host_sees_no_device() {
    require(&["ip", "ping", "ethtool"]).unwrap();
    let lab = Lab::new("pair").unwrap();
    let (a, b) = (lab.namespace("a").unwrap(), lab.namespace("b").unwrap());
    lab.link(
        Port::new(&a, "labprobe0").mac("02:00:00:00:00:0a").address("10.9.0.1/24").mtu(9000),
        Port::new(&b, "labprobe1").address("10.9.0.2/24").mtu(9000).queues(2).offloads(false),
    )
    .unwrap();
    a.ping(&["-i", "0.05"], 2, "10.9.0.2").unwrap();
    let link = a.ip("link show labprobe0").unwrap();
    assert!(link.contains("02:00:00:00:00:0a") && link.contains("mtu 9000"), "{link}");
    let offloads = b.command("ethtool").args(["-k", "labprobe1"]).check().unwrap().stdout;
    assert!(offloads.contains("tcp-segmentation-offload: off"), "{offloads}");
    let (_, packets) = b.received("labprobe1").unwrap();
    assert!(packets >= 2);
    for device in ["labprobe0", "labprobe1"] {
        assert!(!fs::exists(format!("/sys/class/net/{device}")).unwrap());
    }
}

#[test]
fn a_switch_joins_its_ports() {
    require(&["ip", "ping"]).unwrap();
    let lab = Lab::new("switch").unwrap();
    let hosts = ["a", "b", "c"].map(|name| lab.namespace(name).unwrap());
    let ports = (1..)
        .zip(&hosts)
        .map(|(n, host)| Port::new(host, "eth0").address(&format!("10.9.0.{n}/24")));
    lab.switch("sw", ports.collect()).unwrap();
    for target in ["10.9.0.2", "10.9.0.3"] {
        hosts[0].command("ping").args(["-c", "1", "-W", "2", target]).check().unwrap();
    }
}

#[test]
fn a_file_arrives_intact_over_http_and_over_tcp() {
    require(&["ip", "curl", "python3"]).unwrap();
    let lab = Lab::new("file").unwrap();
    let (a, b) = (lab.namespace("a").unwrap(), lab.namespace("b").unwrap());
    lab.link(
        Port::new(&a, "eth0").address("10.9.0.1/24"),
        Port::new(&b, "eth0").address("10.9.0.2/24"),
    )
    .unwrap();
    let file = lab.random_file("file", 3).unwrap();
    let timeout = Duration::from_secs(10);
    let sent = file.send(&a, "10.9.0.1:9000".parse().unwrap(), &b, timeout).unwrap();
    assert_eq!((sent.bytes, &sent.sha256), (3 << 20, &file.sha256));
    let _server = a.serve("10.9.0.1", 8000).unwrap();
    let fetched = b.fetch("http://10.9.0.1:8000/file", timeout).unwrap();
    assert_eq!((fetched.bytes, &fetched.sha256), (3 << 20, &file.sha256));
    assert!(fetched.megabits_per_second() > 0.0);
    let missing = b.fetch("http://10.9.0.1:8000/no-such-file", timeout).unwrap_err();
    assert!(missing.to_string().contains("404"), "{missing}");
    let nobody = file.send(&a, "10.9.0.77:9000".parse().unwrap(), &b, timeout).unwrap_err();
    assert!(nobody.to_string().contains("listen on 10.9.0.77:9000"), "{nobody}");
}

#[test]
fn dropping_a_lab_removes_processes_files_and_namespaces() {
    require(&["ip"]).unwrap();
    let lab = Lab::new("drop").unwrap();
    let ns = lab.namespace("only").unwrap();
    let (name, directory) = (ns.name().to_owned(), lab.directory().to_owned());
    let file = lab.random_file("r", 1).unwrap();
    assert_eq!((file.bytes, file.sha256.len()), (1 << 20, 64));
    let mut process = ns.command("sh").args(["-c", "sleep 300 & echo $!; wait"]).spawn().unwrap();
    process.wait_for("\n", Duration::from_secs(5)).unwrap();
    let grandchild = process.stdout().trim().to_owned();
    assert!(exists(&name) && fs::exists(format!("/proc/{grandchild}")).unwrap());
    drop((process, lab));
    assert!(!exists(&name) && !directory.exists());
    assert!(gone(&grandchild), "the child of a dropped process lives on");
}

#[test]
fn a_panic_removes_everything() {
    require(&["ip"]).unwrap();
    let mut name = String::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let lab = Lab::new("panic").unwrap();
        let ns = lab.namespace("only").unwrap();
        ns.name().clone_into(&mut name);
        assert!(!exists(&name), "as meant");
    }));
    assert!(panicked.is_err());
    assert!(!name.is_empty() && !exists(&name));
}

#[test]
fn slow_commands_are_killed_and_failing_commands_report_their_output() {
    require(&["ip"]).unwrap();
    let lab = Lab::new("slow").unwrap();
    let ns = lab.namespace("only").unwrap();
    let started = Instant::now();
    let timeout = Duration::from_millis(200);
    let slow = ns.command("sh").args(["-c", "echo early; sleep 60"]).timeout(timeout).output();
    assert!(started.elapsed() < Duration::from_secs(5));
    let Err(Error::TimedOut { command, printed, .. }) = slow else { panic!("{slow:?}") };
    assert_eq!((command.as_str(), printed.as_str()), ("sh -c echo early; sleep 60", "early\n"));

    let failed = ns.command("sh").args(["-c", "echo why >&2; exit 3"]).check().unwrap_err();
    assert_eq!(failed.to_string(), "`sh -c echo why >&2; exit 3` ended with exit status: 3\nwhy");

    let mut mute = ns.command("true").spawn().unwrap();
    let error = mute.wait_for("ready", Duration::from_secs(5)).unwrap_err();
    assert!(matches!(error, Error::Ended { .. }), "{error}");
}

#[test]
fn an_interrupt_removes_the_lab_and_ends_the_process_by_the_signal() {
    use std::os::unix::process::ExitStatusExt;
    require(&["ip"]).unwrap();
    for (signal, number) in [("-INT", 2), ("-TERM", 15)] {
        let (mut child, name, sleeper) = holder();
        assert!(exists(&name));
        kill(signal, &child);
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        assert!(!exists(&name) && gone(&sleeper));
    }
}

#[test]
fn the_next_lab_removes_leftovers_after_kill_9() {
    require(&["ip"]).unwrap();
    let (mut killed, left, sleeper) = holder();
    assert!(exists(&left));
    kill("-KILL", &killed);
    killed.wait().unwrap();
    let (mut next, name, _) = holder();
    assert!(!exists(&left) && gone(&sleeper) && exists(&name));
    assert!(!std::env::temp_dir().join(left.trim_end_matches("-only")).exists());
    kill("-INT", &next);
    next.wait().unwrap();
}

/// Starts a process that holds a lab with one namespace and a sleeping process in it; returns the
/// process, the namespace's name and the sleeper's process ID.
fn holder() -> (Child, String, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hold_a_lab", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let held = lines.map_while(Result::ok).find_map(|line| {
        let words: Vec<&str> = line.split("holding ").nth(1)?.split_whitespace().collect();
        Some((words[0].to_owned(), words[1].to_owned()))
    });
    let (name, sleeper) = held.expect("the holder names what it holds");
    (child, name, sleeper)
}

#[test]
#[ignore = "the other end of the tests with signals"]
fn hold_a_lab() {
    let lab = Lab::new("held").unwrap();
    let ns = lab.namespace("only").unwrap();
    let mut sleeper = ns.command("sh").args(["-c", "echo $$; exec sleep 300"]).spawn().unwrap();
    sleeper.wait_for("\n", Duration::from_secs(5)).unwrap();
    println!("holding {} {}", ns.name(), sleeper.stdout().trim());
    // The process lives until the test that has started it sends a signal.
    std::thread::sleep(Duration::from_secs(60));
}

fn kill(signal: &str, child: &Child) {
    let id = child.id().to_string();
    assert!(
        Command::new("sh")
            .args(["-c", "kill \"$1\" \"$2\"", "sh", signal, &id])
            .status()
            .unwrap()
            .success()
    );
}

/// Whether a process has ended, or does so within two seconds.
fn gone(pid: &str) -> bool {
    let ended = || {
        fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
    };
    let deadline = Instant::now() + Duration::from_secs(2);
    while !ended() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    ended()
}
