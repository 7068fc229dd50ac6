//! Open vSwitch with its user-space datapath, in a namespace.

use castanet_lab::{Command, Lab, Namespace, Process};
use std::time::{Duration, Instant};

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
/// A wait for what takes the switch some time.
const LATER: Duration = Duration::from_secs(60);

/// Open vSwitch in a namespace.
pub(crate) struct Switch<'a> {
    lab: &'a Lab,
    namespace: &'a Namespace,
    _processes: [Process; 2],
}

impl<'a> Switch<'a> {
    pub(crate) fn new(lab: &'a Lab, namespace: &'a Namespace) -> Switch<'a> {
        let folder = lab.directory().display();
        let database = format!("{folder}/ovs.db");
        let create = Command::on_host("ovsdb-tool").args(["create", &database, SCHEMA]);
        create.check().unwrap();
        let socket = format!("{folder}/db.sock");
        let run = |program: &str, words: [String; 2]| {
            let control = format!("--unixctl={folder}/{program}.ctl");
            let command = namespace.command(program).args(words).arg(control);
            command.env("OVS_RUNDIR", lab.directory()).spawn().unwrap()
        };
        let server = run("ovsdb-server", [database, format!("--remote=punix:{socket}")]);
        let started = Instant::now();
        while !lab.directory().join("db.sock").exists() {
            assert!(started.elapsed() < LATER, "the database does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        let command = Command::on_host("ovs-vsctl").arg(format!("--db=unix:{socket}"));
        command.args(["--no-wait", "init"]).timeout(LATER).check().unwrap();
        let daemon = run("ovs-vswitchd", [format!("unix:{socket}"), "--pidfile".into()]);
        Switch { lab, namespace, _processes: [server, daemon] }
    }

    fn configure(&self, words: &[&str]) {
        let socket = self.lab.directory().join("db.sock");
        let command = Command::on_host("ovs-vsctl").arg(format!("--db=unix:{}", socket.display()));
        command.args(words).timeout(LATER).check().unwrap();
    }

    /// Adds a bridge of the user-space datapath with one port.
    pub(crate) fn bridge(&self, name: &str, port: &str, options: &[String]) {
        let words = ["add-br", name, "--", "set", "bridge", name, "datapath_type=netdev"];
        let words = words.into_iter().chain(["--", "add-port", name, port]);
        self.configure(&words.chain(options.iter().map(String::as_str)).collect::<Vec<_>>());
    }

    /// Adds an interface of the namespace to a bridge.
    pub(crate) fn port(&self, bridge: &str, interface: &str) {
        self.configure(&["add-port", bridge, interface]);
    }

    /// Gives the host an address on a bridge, and the bridge an MTU.
    pub(crate) fn address(&self, bridge: &str, address: &str, mtu: u32) {
        self.namespace.ip(&format!("address add {address} dev {bridge}")).unwrap();
        self.namespace.ip(&format!("link set {bridge} mtu {mtu} up")).unwrap();
    }
}
