//! A router as a service: a user without privileges, ambient capabilities, AF_XDP, confinement, reloads.

use castanet_lab::{Command, NetworkOptions, Router, require};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, chown};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::testbed::{LATER, SOON, TestNetwork, finish_pings, program, router_text, until};

/// The user `nobody`.
const NOBODY: u32 = 65534;

/// A router that is about to run as `nobody`.
struct ServiceNetwork {
    testbed: TestNetwork,
    config: PathBuf,
    runtime: PathBuf,
}

impl ServiceNetwork {
    fn new(name: &str) -> ServiceNetwork {
        require(&["setpriv"]).unwrap();
        let testbed = TestNetwork::idle(name, &NetworkOptions::default());
        let directory = testbed.network.lab().directory();
        let (config, runtime) = (directory.join("router.click"), directory.join("run"));
        std::fs::write(&config, router_text()).unwrap();
        std::fs::create_dir(&runtime).unwrap();
        chown(&runtime, Some(Uid::from_raw(NOBODY)), Some(Gid::from_raw(NOBODY))).unwrap();
        ServiceNetwork { testbed, config, runtime }
    }

    /// `castanet run` as `nobody` with these capabilities.
    fn command(&self, capabilities: &[String]) -> Command {
        self.command_from(self.testbed.network.router.command("setpriv"), capabilities)
    }

    /// The same with `setpriv`, which a command runs or is.
    fn command_from(&self, command: Command, capabilities: &[String]) -> Command {
        let list = capabilities.iter().fold("-all".to_owned(), |all, name| {
            all + ",+" + name.trim_start_matches("CAP_").to_lowercase().as_str()
        });
        let user = NOBODY.to_string();
        let command = command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
        let command = command.args(["--inh-caps", &list, "--ambient-caps", &list]);
        let command = command.args(["--bounding-set", &list]).arg(program());
        let devices = (0..3).map(|n| format!("dev{n}=lan{}", n + 1));
        let command = command.arg("run").arg(&self.config).args(devices).arg("--confine");
        command.env("RUNTIME_DIRECTORY", &self.runtime)
    }

    /// The capabilities that `castanet explain --privileges` names.
    fn capabilities(&self) -> Vec<String> {
        let command = self.testbed.network.router.command(program()).arg("explain");
        let devices = (0..3).map(|n| format!("dev{n}=lan{}", n + 1));
        let command = command.args(["--privileges", "--json"]).arg(&self.config).args(devices);
        let text = command.check().unwrap_or_else(|error| panic!("{error}")).stdout;
        let value: Value = serde_json::from_str(&text).unwrap();
        let list = value["capabilities"].as_array().unwrap().iter();
        let mut names: Vec<String> =
            list.map(|it| it["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Starts the router, and waits until it runs.
    fn start(&mut self, command: Command) {
        let mut process = command.spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        self.testbed.process = Some(process);
    }

    fn stderr(&self) -> String {
        self.testbed.process.as_ref().unwrap().stderr()
    }

    /// Writes the file and has it read again.
    fn reload(&self, text: &str) {
        std::fs::write(&self.config, text).unwrap();
        let id = self.testbed.process.as_ref().unwrap().id();
        kill(Pid::from_raw(i32::try_from(id).unwrap()), Signal::SIGHUP).unwrap();
    }

    /// For each thread of the router, its name and the lines of its `status`.
    fn threads(&self) -> Vec<(String, String)> {
        let tasks = format!("/proc/{}/task", self.testbed.process.as_ref().unwrap().id());
        let tasks = std::fs::read_dir(tasks).unwrap().map(|it| it.unwrap().path());
        let of = |task: PathBuf| {
            let read = |name| std::fs::read_to_string(task.join(name)).unwrap();
            (read("comm").trim().to_owned(), read("status"))
        };
        tasks.map(of).collect()
    }
}

/// The value of a line of `/proc/PID/status`.
fn field<'t>(status: &'t str, name: &str) -> &'t str {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
    line.unwrap_or_else(|| panic!("no {name} in {status}"))
}

#[test]
fn an_unprivileged_router_forwards_by_af_xdp_keeps_no_capability_and_reloads_without_loss() {
    const RELOADS: usize = 8;
    let mut it = ServiceNetwork::new("service-xdp");
    let capabilities = it.capabilities();
    let wanted = ["CAP_BPF", "CAP_IPC_LOCK", "CAP_NET_ADMIN", "CAP_NET_RAW"];
    assert_eq!(capabilities, wanted);
    it.start(it.command(&capabilities));
    for lan in ["lan1", "lan2", "lan3"] {
        assert!(it.stderr().contains(&format!("{lan}: AF_XDP")), "{}", it.stderr());
    }
    assert!(it.stderr().contains("castanet: confined: "), "{}", it.stderr());
    it.testbed.reached();
    let threads = it.threads();
    assert!(threads.iter().any(|(name, _)| name == "castanet-0"), "{threads:?}");
    for (name, status) in &threads {
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(field(status, set), "0000000000000000", "{name}: {set}");
        }
        assert_eq!(field(status, "NoNewPrivs"), "1", "{name}");
        assert_eq!(field(status, "Seccomp"), "2", "{name}");
        assert!(field(status, "Uid").starts_with(&NOBODY.to_string()), "{name}");
    }
    let [h1, h2, _] = it.testbed.hosts();
    let ping = h1.command("ping").args(["-n", "-i", "0.01"]);
    let mut ping = ping.arg(&h2.address).timeout(LATER).spawn().unwrap();
    let said = format!("castanet: {} runs anew\n", it.config.display());
    for n in 1..=RELOADS {
        let extra = ["", "-> Null ", "-> Counter "][n % 3];
        it.reload(&router_text().replace("-> FixIPSrc($ip)", &format!("{extra}-> FixIPSrc($ip)")));
        until("SIGHUP does nothing", || it.stderr().matches(&said).count() == n);
        std::thread::sleep(Duration::from_millis(200));
    }
    // A broken file changes nothing, nor one for which the process has no privileges any more.
    let stays = "castanet: the running configuration stays";
    it.reload(&(router_text() + "FromDevice(lan1) -> Bluh;"));
    until("SIGHUP does nothing", || it.stderr().contains(stays));
    assert!(it.stderr().contains("undeclared element 'Bluh'"), "{}", it.stderr());
    it.reload(&router_text().replace("Device($dev2)", "Device($dev2, METHOD AF_PACKET)"));
    until("SIGHUP does nothing", || it.stderr().matches(stays).count() == 2);
    let told = it.stderr();
    assert!(told.contains("not permitted") && told.contains("under --confine"), "{told}");
    finish_pings(&mut ping, 500);
    let mut process = it.testbed.process.take().unwrap();
    process.interrupt();
    assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
    assert!(!it.runtime.join("router.sock").exists());
}

#[test]
fn kept_capabilities_let_a_reload_open_devices_again() {
    let mut it = ServiceNetwork::new("service-keep");
    it.start(it.command(&it.capabilities()).arg("--keep-capabilities"));
    assert!(it.stderr().contains("CAP_BPF CAP_IPC_LOCK CAP_NET_ADMIN CAP_NET_RAW"));
    it.reload(&router_text().replace("Device($dev2)", "Device($dev2, METHOD AF_PACKET)"));
    until("SIGHUP does nothing", || it.stderr().contains(" runs anew\n"));
    it.testbed.reached();
}

#[test]
fn each_capability_that_explain_names_is_needed() {
    let it = ServiceNetwork::new("service-each");
    let all = it.capabilities();
    // Memory may be locked without CAP_IPC_LOCK as far as the limit goes.
    for missing in all.iter().filter(|name| *name != "CAP_IPC_LOCK") {
        let others: Vec<String> = all.iter().filter(|name| *name != missing).cloned().collect();
        let mut process = it.command(&others).spawn().unwrap();
        until("it neither runs nor ends", || {
            !process.is_running() || process.stderr().contains(Router::READY)
        });
        let told = process.stderr();
        let is_whole = (1..=3).all(|n| told.contains(&format!("lan{n}: AF_XDP")));
        assert!(!is_whole, "without {missing} it receives by AF_XDP: {told}");
        process.kill();
        process.wait(SOON).unwrap();
    }
}

/// The system calls in a list of them and of groups, as systemd expands it.
fn expanded(list: &str) -> BTreeSet<String> {
    let group = |name: &str| {
        let command = Command::on_host("systemd-analyze").args(["syscall-filter", name]);
        let text = command.check().unwrap_or_else(|error| panic!("{error}")).stdout;
        let words = text.lines().skip(1).map(str::trim).filter(|it| !it.starts_with('#'));
        words.filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
    };
    list.split_whitespace()
        .flat_map(|word| match word.starts_with('@') {
            true => expanded(&group(word)),
            false => BTreeSet::from([word.to_owned()]),
        })
        .collect()
}

#[test]
fn the_filter_of_the_unit_admits_all_calls_of_a_router_by_af_xdp() {
    require(&["strace", "systemd-analyze"]).unwrap();
    let unit = Command::on_host(program()).args(["install-service", "--print"]);
    let unit = unit.check().unwrap_or_else(|error| panic!("{error}")).stdout;
    let mut admitted = BTreeSet::new();
    for list in unit.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        match list.strip_prefix('~') {
            Some(list) => admitted = &admitted - &expanded(list),
            None => admitted.extend(expanded(list)),
        }
    }
    assert!(admitted.contains("bpf") && !admitted.contains("ptrace"), "{admitted:?}");
    let mut it = ServiceNetwork::new("service-calls");
    let trace = it.testbed.network.lab().directory().join("trace");
    let strace = it.testbed.network.router.command("strace").args(["-f", "-qq", "-o"]);
    let strace = strace.arg(&trace).arg("setpriv");
    it.start(it.command_from(strace, &it.capabilities()).args(["-j", "2", "--log", "journal"]));
    it.testbed.reached();
    let ctl = |words: &[&str]| {
        let client = Command::on_host(program()).args(["ctl", "router"]).args(words);
        client.env("RUNTIME_DIRECTORY", &it.runtime).check().unwrap_or_else(|e| panic!("{e}"));
    };
    std::fs::write(
        &it.config,
        router_text().replace("-> FixIPSrc($ip)", "-> Null -> FixIPSrc($ip)"),
    )
    .unwrap();
    ctl(&["reload"]);
    ctl(&["top", "--once"]);
    ctl(&["stop"]);
    it.testbed.process.take().unwrap().wait(LATER).unwrap();
    let trace = std::fs::read_to_string(&trace).unwrap();
    let (_, trace) = trace.split_once(&format!("execve(\"{}\"", program().display())).unwrap();
    let calls = trace.lines().filter_map(|line| line.split_once(' ')?.1.trim().split_once('('));
    let is_name = |name: &&str| name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    let calls: BTreeSet<&str> = calls.map(|(name, _)| name).filter(is_name).collect();
    assert!(calls.len() > 40 && calls.contains("bpf"), "{calls:?}");
    let refused: Vec<&&str> = calls.iter().filter(|name| !admitted.contains(**name)).collect();
    assert!(refused.is_empty(), "the unit refuses {refused:?}");
}
