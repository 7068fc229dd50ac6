//! A process of its own behind a slot channel: pings cross it, and it may die and come back.

use castanet_lab::{Lab, Namespace, Port, Process, Router, require};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::testbed::{LATER, SOON, number, program};

/// The other process: it sends back all packets.
const CHILD: &str = "FromSlots(tenant.slots, CLIENT true) -> c :: Counter
    -> ToSlots(tenant.slots, CLIENT true)";

/// The router: packets carry the number of their interface through the other process.
const ROUTER: &str = "FromDevice(m0, PROMISC true) -> Paint(0) -> to :: ToSlots(tenant.slots);
    FromDevice(m1, PROMISC true) -> Paint(1) -> to;
    from :: FromSlots(tenant.slots) -> s :: PaintSwitch;
    s[0] -> ToDevice(m1);
    s[1] -> ToDevice(m0);";

/// Handlers of the router that are printed at its end.
const HANDLERS: [&str; 5] =
    ["to.drops.no_peer", "to.unread", "from.connections", "from.ring_faults", "from.malformed"];

/// Two hosts, and a machine between them on which the processes run.
struct Machine {
    hosts: [Namespace; 2],
    middle: Namespace,
    // Last, so that processes in the namespaces are gone before them.
    lab: Lab,
}

impl Machine {
    fn new(name: &str) -> Machine {
        require(&["ip", "ping"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let hosts = ["a", "b"].map(|it| lab.namespace(it).unwrap());
        let middle = lab.namespace("m").unwrap();
        for (n, host) in hosts.iter().enumerate() {
            let address = format!("10.9.0.{}/24", n + 1);
            let port = Port::new(host, "eth0").address(&address);
            lab.link(port, Port::new(&middle, &format!("m{n}"))).unwrap();
        }
        Machine { hosts, middle, lab }
    }

    fn start(&self, config: &str, handlers: &[&str]) -> Process {
        let directory = self.lab.directory();
        let command = self.middle.command(program()).current_dir(directory);
        let command = command.env("RUNTIME_DIRECTORY", directory).args(["run", "-e", config]);
        let handlers = handlers.iter().flat_map(|name| ["--handler", name]);
        let mut process = command.args(handlers).spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        process
    }

    /// Whether a host reaches the other one.
    fn ping(&self) -> bool {
        let command = self.hosts[0].command("ping");
        command.args(["-c", "3", "-i", "0.2", "-w", "2", "10.9.0.2"]).output().unwrap().success()
    }

    /// The same, within some attempts.
    fn ping_soon(&self) -> bool {
        (0..10).any(|_| self.ping())
    }
}

#[test]
fn a_killed_process_behind_slots_costs_its_packets_alone_and_comes_back() {
    let machine = Machine::new("slots");
    // Both wait for the other: the order of the start does not matter.
    let child = machine.start(CHILD, &[]);
    let mut router = machine.start(ROUTER, &HANDLERS);
    router.wait_for("a peer is connected", SOON).unwrap();
    assert!(machine.ping_soon());
    // Packets wait in the ring for a child that stands still, and are lost with it.
    let send = |signal| kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    send(Signal::SIGSTOP);
    assert!(!machine.ping() && router.is_running());
    send(Signal::SIGKILL);
    router.wait_for("the peer has gone", SOON).unwrap();
    drop(child);
    assert!(!machine.ping() && router.is_running());
    let mut child = machine.start(CHILD, &[]);
    child.wait_for("a peer is connected", SOON).unwrap();
    assert!(machine.ping_soon());
    router.interrupt();
    let output = router.finish(LATER).unwrap();
    let [no_peer, unread, connections, faults, malformed] =
        HANDLERS.map(|name| number(&output.stdout, name));
    assert!(no_peer > 0 && unread > 0, "{}", output.printed());
    assert_eq!((connections, faults, malformed), (2, 0, 0), "{}", output.printed());
    // The child has noticed, too, and waits for the next router.
    child.wait_for("the peer has gone", SOON).unwrap();
    assert!(child.is_running());
    assert!(!machine.lab.directory().join("tenant.slots").exists());
    let _router = machine.start(ROUTER, &HANDLERS);
    assert!(machine.ping_soon());
}
