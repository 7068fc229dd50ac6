//! `castanet tenants` with processes of tenants' own: their packets, their confinement, and their ends,
//! of which a neighbour notices nothing.

use crate::tenants::{BLUE, GREEN, RED, STRAY_FILE, TenantsNetwork, system_text};
use crate::testbed::{LATER, SOON, finish_pings, program, until};
use castanet_lab::{Command, Process, Router};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The network with a box on which `red` has a process of its own, with these keys.
fn network(name: &str, keys: &str) -> TenantsNetwork {
    TenantsNetwork::of_system(name, &text(keys))
}

fn text(keys: &str) -> String {
    let own = format!("[tenant.red]\nisolation = \"process\"\n{keys}\n");
    system_text(&[RED, BLUE, GREEN]).replace("[tenant.red]\n", &own)
}

/// The same with another configuration of `red`.
fn network_of(name: &str, configuration: &str, keys: &str) -> TenantsNetwork {
    let it = network(name, keys);
    let file = it.lab.directory().join("red.click");
    std::fs::write(&file, configuration).unwrap();
    let (before, red) = text(keys).split_once("[tenant.red]").map(owned).unwrap();
    let red: String = red.lines().fold(String::new(), |text, line| {
        let is_file = line.starts_with("file = ") && !text.contains("red.click");
        text + &if is_file { format!("file = {file:?}") } else { line.to_owned() } + "\n"
    });
    std::fs::write(&it.system, format!("{before}[tenant.red]{red}")).unwrap();
    it.client(&["ctl", "reload"]);
    it
}

fn owned((a, b): (&str, &str)) -> (String, String) {
    (a.to_owned(), b.to_owned())
}

impl TenantsNetwork {
    fn text_of(&self, handler: &str) -> String {
        self.client(&["ctl", "read", handler])
    }

    /// Waits until the process of `red` runs, and has been started this often; returns its number.
    pub(crate) fn running(&self, starts: u64) -> String {
        let runs = || {
            self.text_of("red/process.state") == "running"
                && self.read("red/process.starts") >= starts
        };
        let began = Instant::now();
        while !runs() {
            assert!(began.elapsed() < LATER, "it does not run: {}", self.process.stderr());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.text_of("red/process.pid")
    }

    /// Pings of a neighbour, 100 a second, until [`finish_pings`].
    pub(crate) fn neighbour(&self) -> Process {
        let ping = self.hosts[1].command("ping").args(["-n", "-i", "0.01", "192.168.7.1"]);
        ping.timeout(2 * LATER).spawn().unwrap()
    }
}

/// The files that a process has open.
fn open_files(pid: &str) -> Vec<PathBuf> {
    let descriptors = Path::new("/proc").join(pid).join("fd").read_dir().unwrap();
    descriptors.filter_map(|it| it.ok()?.path().read_link().ok()).collect()
}

fn exists(pid: &str) -> bool {
    !pid.is_empty() && Path::new("/proc").join(pid).exists()
}

#[test]
fn a_killed_process_returns_and_a_neighbour_loses_nothing() {
    let it = network("tenants-killed", "");
    let first = it.running(1);
    it.ping(0, "192.168.7.1", 10);
    assert!(it.read("red/eth1/to_process.count") >= 10);
    assert!(open_files(&it.process.id().to_string()).contains(&STRAY_FILE.into()));
    assert_eq!(it.text_of("red/process.tenant"), "red");
    let confinement = it.text_of("red/process.confinement");
    assert!(confinement.contains("no capabilities"), "{confinement}");
    let files = open_files(&first);
    assert!(files.len() > 2 && !files.contains(&STRAY_FILE.into()), "{files:?}");
    let mut neighbour = it.neighbour();
    let mut pids = vec![first];
    for kills in 1..=3 {
        Command::on_host("kill").args(["-9", &pids[kills - 1]]).check().unwrap();
        pids.push(it.running(kills as u64 + 1));
    }
    finish_pings(&mut neighbour, 300);
    assert_eq!(it.text_of("red/process.last_end"), "ended by SIGKILL");
    assert_eq!(it.read("red/process.restarts"), 3);
    it.ping(0, "192.168.7.1", 10);
    let metrics = it.client(&["ctl", "metrics"]);
    let starts = "castanet_tenant_process_starts_total";
    let line = metrics.lines().find(|line| line.starts_with(starts)).unwrap_or_default();
    assert!(line.contains("red/process") && line.ends_with(" 4"), "{metrics}");
    let last = pids.pop().unwrap();
    it.stop();
    assert!(!exists(&last), "{last}");
}

#[test]
fn processes_end_with_their_parent() {
    let it = network("tenants-orphan", "");
    let pid = it.running(1);
    Command::on_host("kill").args(["-9", &it.process.id().to_string()]).check().unwrap();
    until("the process of red ends", || !exists(&pid));
}

#[test]
fn a_reload_starts_replaces_and_stops_only_what_changed() {
    let it = network("tenants-process-reload", "");
    let first = it.running(1);
    let mut neighbour = it.neighbour();
    let reload = |text: &str| {
        std::fs::write(&it.system, text).unwrap();
        it.client(&["ctl", "reload"]);
    };
    // The same text: the same process.
    reload(&text(""));
    assert_eq!(it.running(1), first);
    it.ping(0, "192.168.7.1", 3);
    reload(&text("memory = { process = \"128M\" }"));
    let second = it.running(1);
    assert!(second != first && !exists(&first), "{first} {second}");
    it.ping(0, "192.168.7.1", 3);
    // In process, and back.
    reload(&system_text(&[RED, BLUE, GREEN]));
    assert!(!exists(&second));
    it.ping(0, "192.168.7.1", 3);
    reload(&text(""));
    let third = it.running(1);
    it.ping(0, "192.168.7.1", 3);
    reload(&system_text(&[BLUE]));
    assert!(!exists(&third));
    finish_pings(&mut neighbour, 300);
    it.stop();
}

#[test]
fn a_confined_process_reaches_nothing() {
    let said = Command::on_host(program()).args(["tenants", "probe"]).timeout(LATER).output();
    let said = said.unwrap();
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert!(lines.len() > 20, "{}", said.printed());
    for line in lines {
        // A machine for tests may give no control groups away.
        let is_cgroup = line.starts_with("no memory-cgroup") || line.starts_with("no cpu-cgroup");
        assert!(line.contains(": refused") || is_cgroup, "{}", said.printed());
    }
}

#[test]
fn a_tenant_that_makes_no_progress_is_cut_off_alone() {
    let stuck = "FromDevice(eth1) -> ToDevice(eth1);
        InfiniteSource -> WorkPackage(0, 0, 0, false, 4000000000) -> Discard;";
    let it = network_of("tenants-stuck", stuck, "patience = \"500ms\"");
    assert_eq!(ends_alone(&it), "has made no progress for 500 ms");
    // The process also ends with the box, although it sees nothing.
    let mut pid = String::new();
    until("the process of red starts again", || {
        pid = it.text_of("red/process.pid");
        !pid.is_empty()
    });
    Command::on_host("kill").args(["-9", &it.process.id().to_string()]).check().unwrap();
    until("the process of red ends", || !exists(&pid));
}

const GREEDY: &str = "FromDevice(eth1) -> ToDevice(eth1);
    RandomSource(LENGTH 60) -> StoreData(0, \\<450000280000000040110000>) -> MarkIPHeader(0)
        -> AggregateIPFlows -> Discard;";

/// Runs a program where the memory of processes can be limited: the mounts of control groups do not come
/// along into a network namespace of the lab.
const WITH_CGROUPS: &str = "mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/memory &&
    { mount -t cgroup -o memory none /sys/fs/cgroup/memory || mount -t cgroup2 none /sys/fs/cgroup/memory; } &&
    exec \"$@\"";

/// Asserts that the process of `red` is ended again and again while a neighbour loses nothing; returns
/// the reason.
fn ends_alone(it: &TenantsNetwork) -> String {
    let mut neighbour = it.neighbour();
    let (began, mut pids) = (Instant::now(), BTreeSet::new());
    while it.read("red/process.restarts") < 2 {
        pids.insert(it.text_of("red/process.pid"));
        assert!(began.elapsed() < LATER, "it does not end: {}", it.process.stderr());
        std::thread::sleep(Duration::from_millis(20));
    }
    finish_pings(&mut neighbour, 400);
    let last = it.text_of("red/process.pid");
    pids.remove(&last);
    until("processes that were ended are gone", || pids.iter().all(|pid| !exists(pid)));
    let listed: serde_json::Value =
        serde_json::from_str(&it.client(&["tenants", "list", "--json"])).unwrap();
    let red = listed.as_array().unwrap().iter().find(|it| it["tenant"] == "red").unwrap();
    assert!(red["restarts"].as_u64().unwrap() >= 2, "{red}");
    assert!(["starting", "running", "waiting"].iter().any(|it| red["state"] == *it), "{red}");
    it.text_of("red/process.last_end")
}

#[test]
fn a_tenant_that_exceeds_the_memory_of_its_group_is_ended_alone() {
    let mut it = network_of("tenants-greedy", GREEDY, "memory = { process = \"32M\" }");
    it.process.interrupt();
    it.process.wait(SOON).unwrap();
    let run = it.wan.command("sh").args(["-c", WITH_CGROUPS, "sh"]).arg(program());
    let run = run.args(["tenants", "run"]).arg(&it.system);
    it.process = run.env("RUNTIME_DIRECTORY", it.lab.directory()).spawn().unwrap();
    it.process.wait_for(Router::READY, SOON).unwrap();
    let why = ends_alone(&it);
    assert_eq!(why, "needed more memory than it may use", "{}", it.process.stderr());
    it.stop();
}

#[test]
fn a_tenant_that_exceeds_its_own_limit_of_memory_is_ended_alone() {
    let it = network_of("tenants-limited", GREEDY, "memory = { process = \"32M\" }");
    let why = ends_alone(&it);
    assert!(why.starts_with("ended by SIG"), "{why}: {}", it.process.stderr());
    assert!(it.text_of("red/process.lacking").starts_with("memory-cgroup "));
    it.stop();
}

#[test]
fn required_protections_and_wrong_keys_are_named() {
    let it =
        network("tenants-required", "require = [\"seccomp\", \"landlock\", \"pid-namespace\"]");
    it.running(1);
    assert_eq!(it.text_of("red/process.lacking"), "");
    it.stop();
    let file = std::env::temp_dir().join(format!("castanet-keys-{}.toml", std::process::id()));
    for (keys, wanted) in [
        ("isolation = \"jail\"", "`isolation` of tenant `red` is not `in-process` or `process`"),
        (
            "memory = { process = \"64M\" }",
            "`process` of `memory` of tenant `red` is about a process of its own",
        ),
        (
            "isolation = \"process\"\nmemory = { heap = \"64M\" }",
            "tenant `red` has a process of its own, whose memory is not told apart",
        ),
        (
            "isolation = \"process\"\nmemory = { process = \"1M\" }",
            "is not a size such as \"256M\"",
        ),
        ("isolation = \"process\"\nrequire = [\"secomp\"]", "did you mean `seccomp`?"),
    ] {
        let own = format!("[tenant.red]\n{keys}\n");
        let text = system_text(&[RED]).replace("[tenant.red]\n", &own);
        std::fs::write(&file, text).unwrap();
        let check = Command::on_host(program()).args(["tenants", "check"]).arg(&file);
        let said = check.timeout(SOON).output().unwrap().printed();
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    std::fs::remove_file(file).unwrap();
}
