//! Tenants of a running system are installed, replaced and removed, by the operator and by themselves.

use castanet_lab::{Lab, Namespace, Output, Port, Process, Router, require};
use std::path::PathBuf;

use crate::tenants::{BLUE, GREEN, HOST, RED, TenantsNetwork, system_text};
use crate::testbed::{LATER, SOON, finish_pings, program, until};

/// Installs and removes configurations of tenants at random.
const SOAK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/system/tenants_soak.py");
/// Floods a tenant's socket from many connections, until it is ended: commands, installations, garbage, and clients that
/// never read.
const FLOOD: &str = "
import socket, sys, threading

def flood(number):
    data = [
        b'READ list\\n' * 100,
        b'WRITEDATA hotconfig 17\\nIdle -> Discard;\\n' * 10,
        bytes(range(256)) * 40,
        b'READ flatconfig\\n' * 10000,
        b'WRITEDATA hotconfig 999999999\\n' + b'x' * 100000,
    ][number % 5]
    while True:
        try:
            it = socket.socket(socket.AF_UNIX)
            it.connect(sys.argv[1])
            it.settimeout(0.5)
            while True:
                it.sendall(data)
                if number % 5 < 3:
                    it.recv(65536)
        except OSError:
            pass

for number in range(30):
    threading.Thread(target=flood, args=(number,), daemon=True).start()
print('floods', flush=True)
threading.Event().wait()
";

/// Commands of the soak test.
const COMMANDS: usize = 1000;
/// Tenants of the soak test that forward all the time, and those whose configurations change.
const NEIGHBOURS: usize = 10;
const BUSY: usize = 3;

/// The host of the repository, which counts pings, with a second counter.
const OTHER: &str = "FromDevice(eth1) -> frames :: Classifier(12/0806 20/0001, 12/0800, -);
frames[0] -> ARPResponder(192.168.7.1 02:00:00:00:07:01) -> out :: Queue -> ToDevice(eth1);
frames[1] -> Strip(14) -> CheckIPHeader -> pings :: Counter -> second :: Counter -> ICMPPingResponder
    -> Unstrip(14) -> EtherMirror -> out;
frames[2] -> dropped :: Discard;";

/// The program by the name of one of Click's tools.
fn tool(lab: &Lab, name: &str) -> PathBuf {
    let link = lab.directory().join(name);
    if !link.exists() {
        std::os::unix::fs::symlink(program(), &link).unwrap();
    }
    link
}

impl TenantsNetwork {
    /// A network whose first tenant has a control socket with these quotas.
    fn with_socket(name: &str, quotas: &str) -> (TenantsNetwork, PathBuf) {
        let text = system_text(&[RED, BLUE, GREEN])
            + &format!("[tenant.red.control]\nsocket = \"red.sock\"\n{quotas}\n");
        let it = TenantsNetwork::of_system(name, &text);
        let socket = it.lab.directory().join("red.sock");
        (it, socket)
    }

    /// A command of the tenant at its socket, with one of Click's tools.
    fn tool(&self, name: &str, words: &[&str], socket: &PathBuf) -> Output {
        let command = self.wan.command(tool(&self.lab, name)).args(words);
        command.env("CASTANET_CONTROL", socket).output().unwrap()
    }

    /// The output of `castanet ctl` at a tenant's socket.
    fn tenant(&self, socket: &PathBuf, words: &[&str]) -> Output {
        self.wan.command(program()).arg("ctl").arg(socket).args(words).output().unwrap()
    }

    /// A value that a tenant reads at its socket.
    fn tenant_read(&self, socket: &PathBuf, handler: &str) -> String {
        let output = self.tenant(socket, &["read", handler]);
        assert!(output.success(), "{}", output.printed());
        output.stdout.trim().to_owned()
    }

    /// The message by which a tenant is refused a command.
    fn refusal(&self, socket: &PathBuf, words: &[&str]) -> String {
        let output = self.tenant(socket, words);
        assert!(!output.success(), "{words:?}: {}", output.printed());
        output.stderr
    }
}

#[test]
fn a_tenant_installs_its_own_graph_and_sees_nothing_else() {
    let (it, socket) = TenantsNetwork::with_socket("tenants-own", "");
    let mut neighbour = neighbour_pings(&it);
    it.ping(0, "192.168.7.1", 3);
    let file = it.lab.directory().join("other.click");
    std::fs::write(&file, OTHER).unwrap();
    let installed = it.tool("click-install", &["-h", file.to_str().unwrap()], &socket);
    assert!(installed.success(), "{}", installed.printed());
    it.ping(0, "192.168.7.1", 4);
    // The counter that ran before goes on, the other one is new.
    assert_eq!(it.tenant_read(&socket, "pings.count"), "7");
    assert_eq!(it.tenant_read(&socket, "second.count"), "4");
    assert_eq!(it.read("red/second.count"), 4);
    assert_eq!(it.tenant_read(&socket, "config"), OTHER);
    // It sees its own elements only.
    let list = it.tenant_read(&socket, "list");
    assert!(list.lines().any(|name| name == "second"), "{list}");
    assert!(!list.contains('/') && !list.contains("wan"), "{list}");
    for handler in ["blue/pings.count", "wan/check.count", "red/pings.count", "red_account.limit"] {
        let said = it.refusal(&socket, &["read", handler]);
        assert!(said.contains("No element named"), "{handler}: {said}");
    }
    let info = it.tenant(&socket, &["info", "--json"]).stdout;
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!((&info["tenant"], &info["configuration"]), (&"red".into(), &"installed".into()));
    let top = it.tenant(&socket, &["top", "--once", "--json"]).stdout;
    assert!(top.contains("\"second\"") && !top.contains("blue"), "{top}");
    // To count cycles makes all slower.
    for handler in ["element_cycles.csv", "second.cycles"] {
        let said = it.refusal(&socket, &["read", handler]);
        assert!(said.contains("cycles are not counted"), "{said}");
    }
    it.refusal(&socket, &["write", "count_cycles", "true"]);
    assert_eq!(it.client(&["ctl", "read", "count_cycles"]), "false");
    it.client(&["ctl", "write", "count_cycles", "true"]);
    let cycles = it.tenant(&socket, &["cycles", "--interval", "0.5"]);
    assert!(cycles.success(), "{}", cycles.printed());
    let cycles = cycles.stdout;
    assert!(!cycles.contains("blue") && !cycles.contains("wan/"), "{cycles}");
    let ports = it.tenant_read(&socket, "FromDevice@1.ports");
    assert!(ports.contains("(outside)") && ports.contains("frames"), "{ports}");
    for command in ["trace", "capture", "metrics", "log"] {
        let said = it.refusal(&socket, &[command]);
        assert!(said.contains("control socket of a tenant has no"), "{command}: {said}");
    }
    // Removed, others go on; then the operator's again.
    let removed = it.tool("click-uninstall", &[], &socket);
    assert!(removed.success(), "{}", removed.printed());
    assert_eq!(it.tenant_read(&socket, "list"), "0");
    assert!(it.tenant(&socket, &["reload"]).success());
    it.ping(0, "192.168.7.1", 2);
    assert_eq!(it.tenant_read(&socket, "pings.count"), "2");
    finish_pings(&mut neighbour, 100);
    it.stop();
    assert!(!socket.exists());
}

#[test]
fn a_tenant_stays_within_its_bounds_and_quotas() {
    let quotas = "installs_per_minute = 5\nelements = 20\ntext = \"4K\"";
    let (it, socket) = TenantsNetwork::with_socket("tenants-quotas", quotas);
    let mut neighbour = neighbour_pings(&it);
    let refused = |text: &str| {
        let output = it.tool("click-install", &["-e", text], &socket);
        assert!(!output.success(), "{text}: {}", output.printed());
        output.stderr
    };
    for (text, message) in [
        ("FromDevice(eth7) -> Discard;", "tenant `red` has no device `eth7`"),
        ("x :: Idle -> ToDump(/tmp/x.pcap);", "ToDump reaches"),
        (&"Idle -> Discard;".repeat(20), "the configuration has 40 elements, of 20 allowed"),
        (&"// a long text\n".repeat(400), "bytes, of 4096 allowed"),
    ] {
        let said = refused(text);
        assert!(said.contains(message), "{message}: {said}");
        assert!(!said.contains("blue") && !said.contains("green"), "{said}");
    }
    let said = it.refusal(&socket, &["write", "hotconfig", "require(library /etc/hostname)"]);
    assert!(said.contains("library '/etc/hostname' not found"), "{said}");
    // Nothing changed, and no other arguments are possible, either.
    it.ping(0, "192.168.7.1", 2);
    let list = it.tenant_read(&socket, "list");
    let sender = list.lines().find(|name| name.starts_with("ToDevice")).unwrap();
    for (handler, message) in [
        ("FromDevice@1.capacity", "is as the system file says"),
        (&format!("{sender}.mtu"), "is as the system file says"),
        ("FromDevice@1.config", "is as the system file says"),
        ("pings.config", "no element `blue"),
    ] {
        let said = it.refusal(&socket, &["write", handler, "COUNT_CALL 1 blue/pings.reset"]);
        assert!(said.contains(message), "{handler}: {said}");
    }
    // The text that was too long took no part of the quota.
    let output = it.tool("click-install", &["-e", OTHER], &socket);
    assert!(output.success(), "{}", output.printed());
    let said = refused(OTHER);
    assert!(said.contains("5 installations in a minute are allowed"), "{said}");
    it.ping(0, "192.168.7.1", 2);
    let list: serde_json::Value =
        serde_json::from_str(&it.client(&["tenants", "list", "--json"])).unwrap();
    let red = list.as_array().unwrap().iter().find(|it| it["tenant"] == "red").unwrap();
    assert_eq!((&red["own_installs"], &red["refused"]), (&1.into(), &4.into()), "{red}");
    assert_eq!((&red["state"], &red["panics"]), (&"running".into(), &0.into()), "{red}");
    finish_pings(&mut neighbour, 100);
    it.stop();
}

#[test]
fn the_operator_installs_and_removes_tenants() {
    let (it, socket) = TenantsNetwork::with_socket("tenants-operator", "");
    let file = it.lab.directory().join("other.click");
    std::fs::write(&file, OTHER).unwrap();
    let file = file.to_str().unwrap();
    it.ping(0, "192.168.7.1", 2);
    // The system file is not read, and may be wrong meanwhile.
    std::fs::write(&it.system, "[tenant.red]").unwrap();
    it.client(&["tenants", "install", "red", file]);
    it.ping(0, "192.168.7.1", 2);
    assert_eq!(it.read("red/second.count"), 2);
    // The installed configuration remains through a reload.
    let control = "[tenant.red.control]\nsocket = \"red.sock\"\n";
    std::fs::write(&it.system, system_text(&[RED, BLUE, GREEN]) + control).unwrap();
    it.client(&["ctl", "reload"]);
    assert_eq!(it.read("red/second.count"), 2);
    it.client(&["tenants", "remove", "red"]);
    it.client(&["ctl", "reload"]);
    assert_eq!(it.tenant_read(&socket, "list"), "0");
    let listed = it.client(&["tenants", "list"]);
    assert!(listed.lines().any(|line| line.starts_with("red ") && line.contains("removed")));
    it.client(&["tenants", "restore", "red"]);
    it.ping(0, "192.168.7.1", 2);
    assert_eq!(it.read("red/pings.count"), 2);
    let command = it.wan.command(program()).args(["tenants", "install", "rde", file]);
    let said = command.env("RUNTIME_DIRECTORY", it.lab.directory()).output().unwrap();
    assert!(
        said.stderr.contains("there is no tenant 'rde'; did you mean 'red'?"),
        "{}",
        said.stderr
    );
    // The socket goes with the table that names it.
    std::fs::write(&it.system, system_text(&[RED, BLUE, GREEN])).unwrap();
    it.client(&["ctl", "reload"]);
    assert!(!socket.exists());
    it.stop();
}

#[test]
fn installed_configurations_outlive_a_killed_coordinator() {
    // Before the coordinator starts, which makes the folder of all else.
    let lab = castanet_lab::Lab::new("store").unwrap();
    let kept = lab.directory().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let text = format!("store = {kept:?}\n")
        + &system_text(&[RED, BLUE, GREEN])
        + "[tenant.red.control]\nsocket = \"red.sock\"\n";
    let mut it = TenantsNetwork::of_system("tenants-store", &text);
    let socket = it.lab.directory().join("red.sock");
    std::fs::remove_dir(&kept).unwrap();
    let refused = it.tool("click-install", &["-e", OTHER], &socket);
    assert!(refused.stderr.contains("red.click.new: No such file"), "{}", refused.printed());
    std::fs::create_dir(&kept).unwrap();
    it.client(&["tenants", "remove", "blue"]);
    for options in [&[] as &[&str], &["--confine", "--keep-capabilities"]] {
        let installed = it.tool("click-install", &["-e", OTHER], &socket);
        assert!(installed.success(), "{}", installed.printed());
        it.ping(0, "192.168.7.1", 2);
        it.restart(options);
        it.ping(0, "192.168.7.1", 2);
        assert_eq!(it.tenant_read(&socket, "second.count"), "2");
        let listed = it.client(&["tenants", "list"]);
        assert!(listed.lines().any(|line| line.starts_with("blue ") && line.contains("removed")));
    }
    // Under --confine, too, a configuration is stored and forgotten.
    it.client(&["tenants", "restore", "red"]);
    it.client(&["tenants", "install", "green", "/dev/null"]);
    let mut names: Vec<_> =
        std::fs::read_dir(&kept).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["blue.click", "green.click"]);
    it.stop();
}

#[test]
fn a_flood_at_a_tenant_s_socket_keeps_nobody_waiting() {
    let (it, socket) = TenantsNetwork::with_socket("tenants-flood", "");
    let mut neighbour = neighbour_pings(&it);
    let flood = it.wan.command("/usr/bin/python3").args(["-c", FLOOD]).arg(&socket);
    let mut flood = flood.spawn().unwrap();
    flood.wait_for("floods", SOON).unwrap();
    let answers = |ping: &Process| ping.stdout().matches("icmp_seq=").count();
    for _ in 0..2 {
        let before = answers(&neighbour);
        until("the neighbour has answers", || answers(&neighbour) >= before + 250);
        // The operator has answers.
        let reports: serde_json::Value =
            serde_json::from_str(&it.client(&["tenants", "list", "--json"])).unwrap();
        let red = reports.as_array().unwrap().iter().find(|it| it["tenant"] == "red").unwrap();
        assert!(red["own_installs"].as_u64().unwrap() <= 20, "{red}");
        it.client(&["tenants", "restore", "green"]);
    }
    assert!(flood.is_running());
    flood.kill();
    flood.wait(SOON).unwrap();
    // The tenant itself has answers again.
    until("the socket answers", || it.tenant(&socket, &["read", "list"]).success());
    it.client(&["tenants", "restore", "red"]);
    it.ping(0, "192.168.7.1", 2);
    finish_pings(&mut neighbour, 500);
    it.stop();
}

#[test]
fn a_tenant_s_process_runs_what_is_installed() {
    let text = system_text(&[RED, BLUE, GREEN])
        .replace("[tenant.red]\n", "[tenant.red]\nisolation = \"process\"\n")
        + "[tenant.red.control]\nsocket = \"red.sock\"\n";
    let it = TenantsNetwork::of_system("tenants-installed", &text);
    let socket = it.lab.directory().join("red.sock");
    let mut neighbour = neighbour_pings(&it);
    let answers = || it.hosts[0].command("ping").args(["-n", "-c1", "-W1", "192.168.7.1"]);
    until("the process answers", || answers().output().unwrap().success());
    // Its address is another one.
    let other = OTHER.replace("192.168.7.1", "192.168.7.9");
    let installed = it.tool("click-install", &["-e", &other], &socket);
    assert!(installed.success(), "{}", installed.printed());
    let answers = || it.hosts[0].command("ping").args(["-n", "-c1", "-W1", "192.168.7.9"]);
    until("the new process answers", || answers().output().unwrap().success());
    let removed = it.tool("click-uninstall", &[], &socket);
    assert!(removed.success(), "{}", removed.printed());
    assert!(!answers().output().unwrap().success());
    let said = it.tool("click-install", &["-e", "FromDevice(eth1) -> Nonsense;"], &socket);
    assert!(said.stderr.contains("Nonsense"), "{}", said.printed());
    finish_pings(&mut neighbour, 100);
    it.stop();
}

#[test]
fn a_thousand_installations_cost_neighbours_no_packet() {
    require(&["ip", "ping", "python3"]).unwrap();
    let lab = Lab::new("tenants-soak").unwrap();
    let [wan, peer] = ["box", "peer"].map(|it| lab.namespace(it).unwrap());
    let near = Port::new(&wan, "wan").mac("02:00:00:00:00:01");
    let far = Port::new(&peer, "eth0").mac("02:00:00:00:00:02").address("10.9.0.2/24");
    lab.link(near, far).unwrap();
    let system = lab.directory().join("system.toml");
    std::fs::write(&system, soak_system()).unwrap();
    let command = wan.command(program()).args(["tenants", "run"]).arg(&system);
    let mut process = command.env("RUNTIME_DIRECTORY", lab.directory()).spawn().unwrap();
    process.wait_for(Router::READY, SOON).unwrap();
    let mut pings: Vec<Process> = (0..NEIGHBOURS).map(|n| soak_ping(&peer, n)).collect();
    let sockets = (0..BUSY).map(|n| lab.directory().join(format!("busy{n}.sock")));
    let command = wan.command("python3").args([SOAK, &COMMANDS.to_string(), "7"]);
    let command = command.arg(lab.directory().join("system.sock")).args(sockets).pipe_stdin();
    let mut soak = command.spawn().unwrap();
    soak.wait_for("settled", LATER * 4).unwrap();
    let before = resources(&process);
    soak.write_line("go").unwrap();
    let said = soak.finish(LATER * 4).unwrap();
    assert!(said.success() && said.stdout.contains("done "), "{}", said.printed());
    let after = resources(&process);
    println!("{}; before {before:?}, after {after:?}", said.stdout);
    for ping in &mut pings {
        assert!(ping.is_running(), "{}", ping.stdout());
        finish_pings(ping, 100);
    }
    let command = wan.command(program()).args(["ctl", "read", "drops"]);
    let drops = command.env("RUNTIME_DIRECTORY", lab.directory()).check().unwrap().stdout;
    assert!(!drops.contains("neighbour"), "{drops}");
    assert_eq!(before.threads, after.threads);
    // Clients of this moment come and go.
    assert!(before.descriptors.abs_diff(after.descriptors) < 8, "{before:?} {after:?}");
    // The heap of an allocator is not the same each time.
    assert!(after.memory < before.memory + (8 << 20), "{before:?} {after:?}");
    process.interrupt();
    assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
}

/// Pings of the second tenant, all of which have to be answered.
fn neighbour_pings(it: &TenantsNetwork) -> Process {
    it.ping(1, "192.168.7.1", 2);
    let ping = it.hosts[1].command("ping").args(["-n", "-i", "0.01", "192.168.7.1"]);
    ping.timeout(LATER).spawn().unwrap()
}

/// The system of the soak test: neighbours that answer pings, and tenants with control sockets.
fn soak_system() -> String {
    let mut text =
        "[device.wan]\nmac = \"02:00:00:00:00:01\"\naddress = \"10.9.0.1/24\"\n".to_owned();
    let mut add = |name: String, n: usize, control: String| {
        text += &format!(
            "[tenant.{name}]\nfile = \"{HOST}\"\n\
             variables = {{ ip = \"10.1.{n}.1\", mac = \"02:00:00:00:01:{n:02x}\" }}\n{control}\
             [tenant.{name}.device.eth1]\non = \"wan\"\n\
             vxlan = {{ vni = {}, remote = \"10.9.0.2\" }}\n",
            100 + n
        );
    };
    (0..NEIGHBOURS).for_each(|n| add(format!("neighbour{n}"), n, String::new()));
    for n in 0..BUSY {
        let control = format!(
            "control = {{ socket = \"busy{n}.sock\", installs_per_minute = 1000000, \
             commands_per_second = 100000 }}\n"
        );
        add(format!("busy{n}"), 50 + n, control);
    }
    text
}

/// Pings of a neighbour from behind the kernel's end of its tunnel.
fn soak_ping(peer: &Namespace, n: usize) -> Process {
    let (device, vni) = (format!("vx{n}"), 100 + n);
    peer.ip(&format!(
        "link add {device} mtu 1450 type vxlan id {vni} dstport 4789 local 10.9.0.2 remote 10.9.0.1"
    ))
    .unwrap();
    peer.ip(&format!("address add 10.1.{n}.2/24 dev {device}")).unwrap();
    peer.ip(&format!("link set {device} up")).unwrap();
    let ping = peer.command("ping").args(["-n", "-i", "0.005", "-W", "5"]);
    ping.arg(format!("10.1.{n}.1")).timeout(LATER * 8).spawn().unwrap()
}

/// The resources that a process uses.
#[derive(Clone, Copy, Debug)]
struct Resources {
    descriptors: usize,
    threads: usize,
    /// Resident bytes.
    memory: u64,
}

fn resources(process: &Process) -> Resources {
    let count = |folder: &str| {
        std::fs::read_dir(format!("/proc/{}/{folder}", process.id())).unwrap().count()
    };
    Resources { descriptors: count("fd"), threads: count("task"), memory: process.memory() }
}
