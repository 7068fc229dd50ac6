//! Handlers of a tenant's own process, which the operator and the tenant call from outside; and a process that
//! does not answer.

use crate::tenants::{BLUE, GREEN, RED, TenantsNetwork, system_text};
use crate::testbed::{LATER, finish_pings, program, until};
use castanet_lab::{Command, Output};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time within which each client has an answer, on a busy machine, too.
const SOON: Duration = Duration::from_secs(10);

/// Answers in the place of the process, which it takes as an argument.
const HOSTILE_PROCESS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/system/tenants_hostile_process.py");

/// The network with a box on which `red` has a process of its own and a control socket.
fn network(name: &str) -> TenantsNetwork {
    network_with(name, "")
}

/// The same, with these keys of `red`.
fn network_with(name: &str, keys: &str) -> TenantsNetwork {
    let own = "[tenant.red]\nisolation = \"process\"\ncontrol = { socket = \"red.sock\" }\n";
    let own = format!("{own}{keys}\n");
    let text = system_text(&[RED, BLUE, GREEN]).replace("[tenant.red]\n", &own);
    TenantsNetwork::of_system(name, &text)
}

impl TenantsNetwork {
    /// The output of `castanet ctl` at the instance's socket.
    fn operator(&self, words: &[&str]) -> Output {
        let command = self.wan.command(program()).arg("ctl").args(words).timeout(LATER);
        command.env("RUNTIME_DIRECTORY", self.lab.directory()).output().unwrap()
    }

    /// The same at the socket of `red`.
    fn red(&self, words: &[&str]) -> Output {
        let socket = self.lab.directory().join("red.sock");
        self.wan.command(program()).arg("ctl").arg(socket).args(words).output().unwrap()
    }
}

/// The text that a command prints.
fn said(output: &Output) -> &str {
    assert!(output.success(), "{}", output.printed());
    output.stdout.trim()
}

/// Asserts that a command is refused for a reason.
fn refused(output: &Output, wanted: &str) {
    assert!(!output.success() && output.stderr.contains(wanted), "{wanted}: {}", output.printed());
}

/// A text about all elements, once it has those of the process of `red`. A busy process may report too late.
fn reported(read: &dyn Fn() -> String) -> String {
    let mut text = String::new();
    until("the process does not report", || {
        text = read();
        text.contains("red/pings")
    });
    text
}

fn signal(name: &str, pid: &str) {
    Command::on_host("kill").args([name, pid]).check().unwrap();
}

#[test]
fn handlers_of_a_process_are_read_and_written_under_traffic() {
    let it = network("tenants-handlers");
    it.running(1);
    let traffic = it.hosts[0].command("ping").args(["-n", "-i", "0.01", "192.168.7.1"]);
    let mut traffic = traffic.timeout(LATER).spawn().unwrap();
    until("the counter counts", || it.read("red/pings.count") >= 10);
    let before = it.read("red/pings.count");
    until("the counter goes on", || it.read("red/pings.count") > before + 10);
    let sent = finish_pings(&mut traffic, 300) as u64;
    until("not every ping is counted", || it.read("red/pings.count") >= sent);
    assert_eq!(it.read("red/pings.count"), sent);
    assert_eq!(it.client(&["ctl", "read", "red/pings.class"]), "Counter");
    it.client(&["ctl", "write", "red/pings.reset"]);
    assert_eq!(it.read("red/pings.count"), 0);
    // Handlers of the router of the process.
    let list = it.client(&["ctl", "read", "red/list"]);
    assert!(list.lines().any(|line| line == "pings"), "{list}");
    let handlers = it.client(&["ctl", "handlers", "red/pings"]);
    assert!(handlers.lines().any(|line| line.starts_with("byte_count")), "{handlers}");
    let drops = it.client(&["ctl", "read", "red/drops"]);
    assert!(drops.lines().all(|line| !line.contains("wan")), "{drops}");
    refused(&it.operator(&["read", "red/pings.nothing"]), "No handler named 'pings.nothing'");
    refused(&it.operator(&["read", "red/nothing.count"]), "No element named 'nothing'");
    refused(&it.operator(&["write", "red/pings.count", "7"]), "read-only");
    refused(&it.operator(&["write", "red/own.config", "-"]), "need 2 arguments");
    refused(&it.operator(&["read", "red/nothing"]), "red/nothing");
    refused(&it.operator(&["write", "red/0.stop"]), "answers no such command");
    // The coordinator's own elements.
    assert_eq!(it.client(&["ctl", "read", "red/process.state"]), "running");
    it.read("red/eth1/to_process.count");
    it.stop();
}

#[test]
fn a_tenant_with_a_process_calls_its_own_handlers() {
    let it = network("tenants-own-handlers");
    it.running(1);
    it.ping(0, "192.168.7.1", 10);
    assert_eq!(said(&it.red(&["read", "pings.count"])), "10");
    said(&it.red(&["write", "pings.reset"]));
    assert_eq!(said(&it.red(&["read", "pings.count"])), "0");
    assert_eq!(said(&it.red(&["read", "pings.name"])), "pings");
    refused(&it.red(&["read", "pings.nothing"]), "No handler named 'pings.nothing'");
    // Nothing of the coordinator, and nothing of other tenants.
    for handler in ["process.pid", "blue/pings.count", "red/pings.count", "eth1/received.count"] {
        refused(&it.red(&["read", handler]), "No element named");
    }
    // Nor by a name that the process would read as that of another handler.
    for (handler, value) in [
        ("FromDevice@1.config", "eth2"),
        ("eth1/to_slots.config", "eth2"),
        ("0.0.reset.config", "eth2"),
        ("..reset.config", "eth2"),
    ] {
        refused(&it.red(&["write", handler, value]), "is as the system file says");
    }
    refused(&it.red(&["write", "pings.config", "COUNT_CALL 1 blue/pings.reset"]), "no element");
    let list = said(&it.red(&["read", "list"])).to_owned();
    assert!(list.lines().any(|line| line == "own") && !list.contains("received"), "{list}");
    let top = it.red(&["top", "--once", "--json"]);
    assert!(said(&top).contains("\"pings\"") && !top.stdout.contains("received"), "{top:?}");
    assert!(said(&it.red(&["elements"])).contains("ICMPPingResponder"));
    said(&it.red(&["drops"]));
    said(&it.red(&["read", "drops"]));
    assert!(said(&it.red(&["config"])).contains("pings :: Counter"));
    // An installation takes another process.
    let other = "FromDevice(eth1) -> other :: Counter -> Discard;";
    said(&it.red(&["write", "hotconfig", other]));
    until("the other process answers", || it.red(&["read", "other.count"]).success());
    refused(&it.red(&["read", "pings.count"]), "No element named 'pings'");
    said(&it.red(&["write", "stop"]));
    assert_eq!(said(&it.red(&["read", "list"])), "0");
    refused(&it.operator(&["read", "red/other.count"]), "No element named");
    it.stop();
}

/// The value of the series of an element in a text of metrics.
fn series(metrics: &str, metric: &str, element: &str) -> Option<String> {
    let line = metrics.lines().find(|line| {
        line.starts_with(&format!("{metric}{{")) && line.contains(&format!("element=\"{element}\""))
    });
    Some(line?.rsplit_once(' ')?.1.to_owned())
}

#[test]
fn the_operator_sees_the_elements_of_processes_among_all_others() {
    let it = network("tenants-all-elements");
    it.running(1);
    it.ping(0, "192.168.7.1", 10);
    let top = it.operator(&["top", "--once", "--json"]);
    let top: serde_json::Value = serde_json::from_str(said(&top)).unwrap();
    let all = top["elements"].as_array().unwrap();
    let of = |name: &str| all.iter().filter(|it| it["element"] == name).collect::<Vec<_>>();
    let [pings] = of("red/pings")[..] else { panic!("{top}") };
    assert_eq!((&pings["class"], &pings["packets"]), (&"Counter".into(), &10.into()));
    for name in ["blue/pings", "red/process", "red/eth1/received", "red/eth1/to_slots"] {
        assert_eq!(of(name).len(), 1, "{name}: {top}");
    }
    let metrics = it.client(&["ctl", "read", "metrics"]);
    let packets = |element| series(&metrics, "castanet_element_packets_total", element);
    assert_eq!(packets("red/pings").as_deref(), Some("10"), "{metrics}");
    assert!(packets("blue/pings").is_some() && packets("pings").is_none(), "{metrics}");
    // A packet that an element of the process drops.
    let drops = || said(&it.operator(&["drops", "--json"])).to_owned();
    assert!(!drops().contains("red/own"), "{}", drops());
    let nobody = it.hosts[0].command("ping").args(["-n", "-c", "1", "-W", "1", "192.168.7.77"]);
    assert!(!nobody.timeout(LATER).output().unwrap().success());
    until("the drop is told", || drops().contains("red/"));
    // They are gone with the process.
    it.client(&["tenants", "remove", "red"]);
    let gone = || said(&it.operator(&["top", "--once", "--json"])).to_owned();
    assert!(!gone().contains("red/pings") && gone().contains("blue/pings"), "{}", gone());
    it.stop();
}

#[test]
fn a_process_that_does_not_answer_keeps_no_client_waiting() {
    let it = network("tenants-silent");
    let pid = it.running(1);
    let mut neighbour = it.neighbour();
    signal("-STOP", &pid);
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let client = it.wan.command(program()).args(["ctl", "read", "red/pings.count"]);
            client.env("RUNTIME_DIRECTORY", it.lab.directory()).timeout(LATER).spawn().unwrap()
        })
        .collect();
    let began = Instant::now();
    refused(&it.red(&["read", "pings.count"]), "the process of tenant red does not answer");
    // Others have answers meanwhile, and tables of all elements leave this tenant's out.
    it.read("blue/pings.count");
    let top = said(&it.operator(&["top", "--once", "--json"])).to_owned();
    assert!(top.contains("\"blue/pings\"") && !top.contains("\"red/pings\""), "{top}");
    said(&it.operator(&["drops"]));
    let late = "tenant red: reports about all elements are without its own: its process does not report within 500 ms";
    until("the log names the report", || it.process.stderr().contains(late));
    assert_eq!(it.process.stderr().matches(late).count(), 1);
    refused(
        &it.operator(&["write", "red/pings.reset"]),
        "the process of tenant red does not answer",
    );
    for client in clients {
        refused(&client.finish(SOON).unwrap(), "the process of tenant red does not answer");
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    signal("-CONT", &pid);
    // Late answers are those of nobody: each client has the value of its own handler.
    until("the process answers", || it.operator(&["read", "red/pings.count"]).success());
    assert_eq!(it.client(&["ctl", "read", "red/pings.class"]), "Counter");
    assert_eq!(it.client(&["ctl", "read", "red/own.class"]), "IPClassifier");
    signal("-9", &pid);
    let gone = it.operator(&["read", "red/pings.count"]);
    let why = "the process of tenant red ";
    assert!(gone.success() || gone.stderr.contains(why), "{}", gone.printed());
    it.running(2);
    assert_eq!(it.read("red/pings.count"), 0);
    it.ping(0, "192.168.7.1", 3);
    assert_eq!(it.read("red/pings.count"), 3);
    finish_pings(&mut neighbour, 300);
    assert!(!Path::new("/proc").join(pid).exists());
    it.stop();
}

#[test]
fn handlers_of_a_process_that_does_not_run_have_the_reason() {
    let it = network("tenants-down");
    // Each end makes the pause before the next start longer.
    for starts in 1..=4 {
        signal("-9", &it.running(starts));
    }
    let waits = || it.client(&["ctl", "read", "red/process.state"]) == "waiting";
    let why = "the process of tenant red does not run, but is waiting: it ended by SIGKILL";
    for starts in 4.. {
        until("the process waits for its next start", || {
            waits() || it.read("red/process.starts") > starts
        });
        let said = [it.operator(&["read", "red/pings.count"]), it.red(&["read", "pings.count"])];
        if waits() && it.read("red/process.starts") == starts {
            said.iter().for_each(|it| refused(it, why));
            break;
        }
        // The pause was too short for both, and the next one is twice as long.
        signal("-9", &it.running(starts + 1));
    }
    it.stop();
}

#[test]
fn a_hostile_process_deceives_its_own_clients_only() {
    let it = network_with("tenants-hostile", "patience = \"10min\"");
    let pid = it.running(1);
    signal("-STOP", &pid);
    let mut neighbour = it.neighbour();
    let hostile = Command::on_host("python3").args([HOSTILE_PROCESS, &pid]);
    let mut hostile = hostile.spawn().unwrap();
    hostile.wait_for("answers", SOON).unwrap();
    let read = |name: &str| it.operator(&["read", &format!("red/x.{name}")]);
    let no_answer = "the process of tenant red answers with bytes that are no answer";
    refused(&read("garbage"), no_answer);
    refused(&read("promise"), no_answer);
    refused(&read("endless"), "the process of tenant red answers with more than 1048576 bytes");
    refused(&read("reason"), "\\033[2J\nbad");
    assert_eq!(said(&read("escape")), "a?[2J\nb");
    assert_eq!(said(&read("packets")), "kept");
    // It answers a write with a value.
    refused(&it.operator(&["write", "red/x.plain", "1"]), no_answer);
    // Answers to others' requests: late, early, twice.
    refused(&read("late"), "does not answer");
    for name in ["plain", "twice", "plain", "early", "plain", "late"] {
        let output = read(name);
        match name {
            "plain" => assert_eq!(said(&output), "x.plain"),
            "twice" => assert_eq!(said(&output), "one"),
            "early" => assert_eq!(said(&output), "own"),
            _ => refused(&output, "does not answer"),
        }
    }
    assert_eq!(said(&it.red(&["read", "x.plain"])), "x.plain");
    // Its reports are about its own elements.
    let top = reported(&|| said(&it.operator(&["top", "--once", "--json"])).to_owned());
    let top: serde_json::Value = serde_json::from_str(&top).unwrap();
    let all = top["elements"].as_array().unwrap();
    let named = |name: &str| all.iter().filter(|it| it["element"] == name).count();
    assert_eq!((named("red/pings"), named("blue/pings"), named("red/process")), (1, 1, 1), "{top}");
    assert!(!top.to_string().contains("invented"), "{top}");
    // The operator hears of reports that are left out.
    said(&read("long"));
    until("the last report is old", || {
        let top = it.operator(&["top", "--once", "--json"]);
        !said(&top).contains("red/pings")
    });
    let omitted = "tenant red: reports about all elements are without its own: its process answers with more than 1048576 \
                   bytes";
    until("the log names the report", || it.process.stderr().contains(omitted));
    let refuses = "without its own: its process refuses to report; a report may have 1 MB";
    said(&read("refusal"));
    until("the log names the refusal", || {
        said(&it.operator(&["top", "--once", "--json"]));
        it.process.stderr().contains(refuses)
    });
    said(&read("short"));
    let drops = reported(&|| said(&it.operator(&["drops"])).to_owned());
    let lines = |text: &str| drops.lines().filter(|line| line.contains(text)).count();
    assert_eq!((lines("red/pings :: Counter: other"), lines("?[2J?[2J")), (1, 1), "{drops}");
    assert!(!drops.contains("555-0100") && !drops.contains('\x1b'), "{drops}");
    said(&it.operator(&["top", "--once", "--fold"]));
    let metrics = reported(&|| it.client(&["ctl", "read", "metrics"]));
    assert!(!metrics.contains("invented") && !metrics.contains('\x1b'), "{metrics}");
    let dropped = "castanet_element_dropped_packets_total";
    let of_pings = |line: &&str| line.starts_with(dropped) && line.contains("red/pings");
    let of_pings: Vec<&str> = metrics.lines().filter(of_pings).collect();
    assert!(matches!(of_pings[..], [line] if line.contains("reason=\"other\"")), "{of_pings:?}");
    // A flood of packets keeps no other client waiting, and costs memory of a few answers.
    let before = it.process.memory();
    refused(&read("flood"), "does not answer");
    it.read("blue/pings.count");
    until("the flood is over", || read("plain").success());
    assert!(it.process.memory() < before + (16 << 20), "{before} {}", it.process.memory());
    // Of a flood of messages about its state it is ended, and nothing is printed.
    refused(&read("state"), "has ended");
    until("the process has another start", || it.read("red/process.starts") == 2);
    let why = it.client(&["ctl", "read", "red/process.last_end"]);
    assert_eq!(why, "has sent more than 1000 messages in a second");
    let printed = it.process.stderr();
    assert!(!printed.contains('\x1b') && !printed.contains("flood"), "{printed}");
    hostile.kill();
    finish_pings(&mut neighbour, 1500);
    it.running(2);
    assert_eq!(it.read("red/pings.count"), 0);
    it.stop();
}
