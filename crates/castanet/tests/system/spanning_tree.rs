//! A ring of bridges, of which one is the kernel's: `EtherSpanTree` and the kernel agree on a tree, so that no
//! broadcast goes round, and on another one when a link fails.

use castanet_lab::{Lab, Namespace, Port, Process, Router, require};
use std::time::{Duration, Instant};

use crate::testbed::{LATER, SOON, program};

/// The bridges of Castanet: for each, the devices that are its ports.
const BRIDGES: [(&str, &[&str]); 2] =
    [("one", &["ring0", "ring1", "host"]), ("two", &["ring0", "ring1"])];
/// Time in which all bridges know of a change: a message expires after 6 s, then ports listen for 4 s
/// and learn for 4 s.
const CONVERGED: Duration = Duration::from_secs(40);

/// A switch with a spanning tree.
fn switch(number: usize, devices: &[&str]) -> String {
    let mut text = format!(
        "stp :: EtherSpanTree(02:00:00:00:00:0{number}, before, behind, sw);
         before, behind :: Suppressor; sw :: EtherSwitch;\n"
    );
    for (n, device) in devices.iter().enumerate() {
        text += &format!(
            "from{n} :: FromDevice({device}, PROMISC true, METHOD AF_PACKET) -> c{n} :: Classifier(14/4242, -);
             to{n} :: ToDevice({device}, METHOD AF_PACKET);
             c{n} [0] -> [{n}] stp [{n}] -> to{n};
             c{n} [1] -> [{n}] before [{n}] -> [{n}] sw [{n}] -> [{n}] behind [{n}] -> to{n};\n"
        );
    }
    text
}

/// Two bridges of Castanet and one of the kernel in a ring; a host at the first and one at the
/// kernel's.
struct Ring {
    hosts: [Namespace; 2],
    kernel: Namespace,
    bridges: Vec<(Namespace, Process)>,
    // Last, so that processes in the namespaces are gone before them.
    lab: Lab,
}

impl Ring {
    fn new() -> Ring {
        require(&["ip", "ping"]).unwrap();
        let lab = Lab::new("spanning-tree").unwrap();
        let hosts = ["a", "b"].map(|it| lab.namespace(it).unwrap());
        let kernel = lab.namespace("kernel").unwrap();
        let [one, two] = BRIDGES.map(|(name, _)| lab.namespace(name).unwrap());
        let port = |place: &Namespace, device: &str| Port::new(place, device);
        lab.link(port(&one, "ring0"), port(&two, "ring1")).unwrap();
        lab.link(port(&two, "ring0"), port(&kernel, "ring1")).unwrap();
        lab.link(port(&kernel, "ring0"), port(&one, "ring1")).unwrap();
        lab.link(port(&one, "host"), port(&hosts[0], "eth0").address("10.9.0.1/24")).unwrap();
        lab.link(port(&kernel, "host"), port(&hosts[1], "eth0").address("10.9.0.2/24")).unwrap();
        // The kernel's bridge has the lesser identifier, and so its times hold.
        kernel
            .ip("link add br0 type bridge stp_state 1 forward_delay 400 hello_time 100 max_age 600")
            .unwrap();
        for device in ["ring0", "ring1", "host"] {
            kernel.ip(&format!("link set {device} master br0")).unwrap();
        }
        kernel.ip("link set br0 up").unwrap();
        let mut bridges = Vec::new();
        for (number, (place, (name, devices))) in [one, two].into_iter().zip(BRIDGES).enumerate() {
            let config = lab.directory().join(format!("{name}.click"));
            std::fs::write(&config, switch(number + 1, devices)).unwrap();
            let command = place.command(program()).env("RUNTIME_DIRECTORY", place.directory());
            let mut process = command.arg("run").arg(&config).spawn().unwrap();
            process.wait_for(Router::READY, SOON).unwrap();
            bridges.push((place, process));
        }
        Ring { hosts, kernel, bridges, lab }
    }

    /// Value of a handler of one of Castanet's bridges.
    fn read(&self, bridge: usize, handler: &str) -> String {
        let place = &self.bridges[bridge].0;
        let command = place.command(program()).env("RUNTIME_DIRECTORY", place.directory());
        let output =
            command.args(["ctl", BRIDGES[bridge].0, "read", handler]).timeout(LATER).check();
        output.unwrap_or_else(|error| panic!("{error}")).stdout.trim().to_owned()
    }

    fn states(&self) -> String {
        (0..BRIDGES.len()).map(|n| self.read(n, "stp.states") + "\n").collect()
    }

    /// Waits until the hosts reach each other and no port is on its way to another state.
    fn converge(&self) {
        let end = Instant::now() + CONVERGED;
        loop {
            let ping =
                self.hosts[0].command("ping").args(["-n", "-q", "-c", "1", "-W", "1", "10.9.0.2"]);
            let is_settled = !self.states().contains("learn") && !self.states().contains("listen");
            if is_settled && ping.timeout(LATER).output().unwrap().success() {
                return;
            }
            assert!(Instant::now() < end, "no answer; states:\n{}", self.states());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Sends ten broadcasts, and asserts that the other host gets each of them about once.
    fn assert_no_storm(&self) {
        // Nobody has these addresses: each makes a host ask by broadcast.
        let before = self.hosts[1].received("eth0").unwrap().1;
        for last in 100..110 {
            let ask = self.hosts[0].command("ping").args(["-n", "-q", "-c", "1", "-W", "0.1"]);
            _ = ask.arg(format!("10.9.0.{last}")).timeout(LATER).output().unwrap();
        }
        std::thread::sleep(Duration::from_secs(2));
        let frames = self.hosts[1].received("eth0").unwrap().1 - before;
        // Each is repeated up to two times; messages of the kernel's bridge come beside.
        assert!((10..60).contains(&frames), "{frames} frames; states:\n{}", self.states());
    }
}

#[test]
fn a_ring_with_a_bridge_of_the_kernel_has_no_storm_and_survives_a_link() {
    let mut ring = Ring::new();
    ring.converge();
    // The kernel's bridge is the root, and of the two others the one with the greater address blocks.
    assert_eq!(ring.read(0, "stp.states"), "0 forward\n1 forward\n2 forward");
    assert_eq!(ring.read(1, "stp.states"), "0 forward\n1 block");
    assert_eq!(ring.read(1, "before.active1"), "false");
    let best = ring.read(1, "stp.msgs").lines().last().unwrap().to_owned();
    assert!(
        best.contains(":0000: ") && best.contains(" 1 -> ") && best.contains(" m/h/d: 6/1/4"),
        "{best}"
    );
    ring.assert_no_storm();
    // The link between the kernel's bridge and the first fails.
    ring.kernel.ip("link set ring0 down").unwrap();
    let end = Instant::now() + CONVERGED;
    while ring.read(1, "stp.states") != "0 forward\n1 forward" {
        assert!(Instant::now() < end, "{}", ring.states());
        std::thread::sleep(Duration::from_millis(200));
    }
    ring.converge();
    ring.assert_no_storm();
    ring.kernel.ip("link set ring0 up").unwrap();
    let end = Instant::now() + CONVERGED;
    while ring.read(1, "stp.states") != "0 forward\n1 block" {
        assert!(Instant::now() < end, "{}", ring.states());
        std::thread::sleep(Duration::from_millis(200));
    }
    ring.converge();
    ring.assert_no_storm();
    for (_, process) in &mut ring.bridges {
        process.interrupt();
        let status = process.wait(SOON).unwrap();
        assert_eq!(status.code(), Some(0), "{}", process.stderr());
    }
    assert!(ring.lab.directory().exists());
}
