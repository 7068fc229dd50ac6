//! `castanet tenants` behind tunnels that the user-space datapath of Open vSwitch ends.

use castanet_lab::{Lab, Port, Router, require};

use crate::open_vswitch::Switch;
use crate::testbed::{SOON, ping_each, program};

const HOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/tenants/host.click");

/// Kind of a tunnel, its number, the third byte of the addresses inside, and its line in a system file.
const TUNNELS: [(&str, u32, u8, &str); 3] = [
    ("geneve", 5, 11, "geneve = { vni = 5, remote = \"10.9.0.2\" }"),
    ("gre", 6, 12, "gre = { key = 6, remote = \"10.9.0.2\" }"),
    ("vxlan", 7, 13, "vxlan = { vni = 7, remote = \"10.9.0.2\" }"),
];

#[test]
fn open_vswitch_ends_geneve_gre_and_vxlan() {
    require(&["ip", "ovs-vsctl", "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ping"]).unwrap();
    let lab = Lab::new("tenants-ovs").unwrap();
    let [wan, peer] = ["box", "peer"].map(|it| lab.namespace(it).unwrap());
    let near = Port::new(&wan, "wan").mac("02:00:00:00:00:01");
    lab.link(near, Port::new(&peer, "eth0")).unwrap();
    let switch = Switch::new(&lab, &peer);
    switch.bridge("phy", "eth0", &[]);
    switch.address("phy", "10.9.0.2/24", 1400);
    let mut text =
        "[device.wan]\nmac = \"02:00:00:00:00:01\"\naddress = \"10.9.0.1/24\"\n".to_owned();
    for (kind, key, net, line) in TUNNELS {
        let (bridge, port) = (format!("b{kind}"), format!("t{kind}"));
        let words = format!(
            "-- set interface {port} type={kind} options:remote_ip=10.9.0.1 options:key={key}"
        );
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        switch.bridge(&bridge, &port, &words);
        switch.address(&bridge, &format!("192.168.{net}.2/24"), 1400);
        text += &format!(
            "[tenant.{kind}]\nfile = \"{HOST}\"\nvariables = {{ ip = \"192.168.{net}.1\" }}\n\
             [tenant.{kind}.device.eth1]\non = \"wan\"\n{line}\n"
        );
    }
    let system = lab.directory().join("system.toml");
    std::fs::write(&system, text).unwrap();
    let command = wan.command(program()).args(["tenants", "run"]).arg(&system);
    let mut process = command.env("RUNTIME_DIRECTORY", lab.directory()).spawn().unwrap();
    process.wait_for(Router::READY, SOON).unwrap();
    for (kind, _, net, _) in TUNNELS {
        ping_each(&peer, &format!("192.168.{net}.1"), 10);
        let read = wan
            .command(program())
            .args(["ctl", "system", "read"])
            .arg(format!("{kind}/pings.count"));
        let read = read.env("RUNTIME_DIRECTORY", lab.directory()).check().unwrap();
        assert_eq!(read.stdout.trim(), "10", "{kind}");
    }
    process.interrupt();
    assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
}
