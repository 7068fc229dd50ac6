//! Connections and mappings end when they should: not before their time, soon after it, and what
//! comes then is new. Times are short here; a machine may be slow, but no clock is fast.

use std::time::{Duration, Instant};

use castanet_lab::{Lab, Namespace, Port, Process, Router, require};

use crate::control::Control;
use crate::nat::NatNetwork;
use crate::testbed::{LATER, SOON, program};

/// Timeouts in seconds: of idle UDP; of TCP before it is established and after it is over; and
/// TCP in between.
const UDP: u64 = 3;
const TRANSIENT: u64 = 2;
const ESTABLISHED: u64 = 5;

/// Executes the lines of its input towards one peer, and reports the end of each.
const CLIENT: &str = r#"
import socket, struct, sys
peer, nobody = (sys.argv[1], 8000), (sys.argv[2], 8000)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(20)
def talk():
    tcp.sendall(b"hello")
    heard = b""
    while not heard.endswith(b"hello"): heard += tcp.recv(99)
for number, line in enumerate(sys.stdin):
    what = line.strip()
    if what == "udp":
        udp.sendto(b"hello", peer)
        while udp.recv(99) != b"hello": pass
    elif what == "hear": assert udp.recv(99) == b"news"
    elif what == "open":
        tcp = socket.create_connection(peer, 20)
        talk()
    elif what == "talk": talk()
    elif what == "close":
        tcp.shutdown(socket.SHUT_WR)
        while tcp.recv(99): pass
        tcp.close()
    elif what == "reset":
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        tcp.close()
    elif what == "knock":
        knock = socket.socket()
        knock.settimeout(0.2)
        try: knock.connect(nobody)
        except TimeoutError: knock.close()
    print("done", number, ".")
"#;

/// Echoes UDP and TCP; on command, sends unsolicited data to the last client.
const SERVER: &str = r#"
import socket, sys, threading
address = (sys.argv[1], 8000)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(address)
listener = socket.create_server(address)
last = {}
def echo():
    while True:
        data, last["udp"] = udp.recvfrom(99)
        udp.sendto(data, last["udp"])
def serve():
    while True:
        last["tcp"], _ = listener.accept()
        try:
            while data := last["tcp"].recv(99): last["tcp"].sendall(data)
        except ConnectionError: pass
        last["tcp"].close()
threading.Thread(target=echo, daemon=True).start()
threading.Thread(target=serve, daemon=True).start()
print("ready")
for line in sys.stdin:
    if line.strip() == "udp": udp.sendto(b"news", last["udp"])
    else: last["tcp"].sendall(b"news")
"#;

/// A configuration that tracks flows between a client and a server, and its handlers.
struct FlowTracker {
    client: Process,
    server: Process,
    control: Control,
    /// Handlers: number of flows, events of flows, list of flows.
    count: &'static str,
    events: &'static str,
    /// Element and drop reason of packets that belong to no flow.
    strangers: (&'static str, &'static str),
    answers: usize,
}

impl FlowTracker {
    fn talk(namespaces: [&Namespace; 2], addresses: [&str; 2]) -> [Process; 2] {
        let python =
            |namespace: &Namespace, script| namespace.command("python3").args(["-u", "-c", script]);
        let server = python(namespaces[1], SERVER).arg(addresses[0]).pipe_stdin();
        let mut server = server.spawn().unwrap();
        server.wait_for("ready", SOON).unwrap();
        let client = python(namespaces[0], CLIENT).args(addresses).pipe_stdin().spawn().unwrap();
        [client, server]
    }

    /// Has the client do something; when that began.
    fn does(&mut self, what: &str) -> Instant {
        let began = Instant::now();
        self.client.write_line(what).unwrap();
        self.client.wait_for(&format!("done {} .", self.answers), LATER).unwrap();
        self.answers += 1;
        began
    }

    fn count(&mut self) -> u64 {
        self.control.sum(&[self.count])
    }

    fn added(&mut self) -> u64 {
        self.control.of(self.events, "added")
    }

    fn strangers(&mut self) -> u64 {
        self.control.dropped_by(self.strangers.0, self.strangers.1)
    }

    /// The flow ends by its time, and not before.
    fn ends(&mut self, what: &str, since: Instant, seconds: u64) {
        let expired = self.control.of(self.events, "expired");
        while self.count() > 0 {
            assert!(since.elapsed() < LATER, "{what} does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
        let after = since.elapsed();
        println!("{what}: ended after {:.2} s", after.as_secs_f64());
        assert!(after >= Duration::from_secs(seconds), "{what}: {after:?}");
        assert_eq!(self.control.of(self.events, "expired"), expired + 1, "{what}");
    }

    /// Packets that the server sends after the flow's expiry belong to no flow.
    fn is_forgotten(&mut self, protocol: &str) {
        let before = self.strangers();
        self.server.write_line(protocol).unwrap();
        let since = Instant::now();
        while self.strangers() == before {
            assert!(since.elapsed() < LATER, "{protocol}: somebody knows it");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn udp(&mut self) {
        let added = self.added();
        let mut last = self.does("udp");
        assert_eq!((self.count(), self.added()), (1, added + 1));
        let (began, mut longest) = (last, Duration::ZERO);
        while began.elapsed() < Duration::from_secs(2 * UDP) {
            // Time is tested here: the flow is used twice a second.
            std::thread::sleep(Duration::from_millis(500));
            let before = std::mem::replace(&mut last, self.does("udp"));
            longest = longest.max(before.elapsed());
        }
        // As long as it is used it stays, if this machine let it be used.
        let stalled = longest > Duration::from_secs(UDP - 1);
        assert!(stalled || self.added() == added + 1, "{longest:?}");
        self.server.write_line("udp").unwrap();
        self.does("hear");
        last = self.does("udp");
        self.ends("UDP", last, UDP);
        self.is_forgotten("udp");
        let added = self.added();
        let last = self.does("udp");
        assert_eq!((self.count(), self.added()), (1, added + 1));
        self.ends("UDP anew", last, UDP);
    }

    fn tcp(&mut self) {
        let last = self.does("knock");
        assert_eq!(self.count(), 1);
        self.ends("TCP without an answer", last, TRANSIENT);
        self.does("open");
        let last = self.does("talk");
        self.ends("TCP that is open", last, ESTABLISHED);
        self.is_forgotten("tcp");
        // To those at its ends it is still open, and the client may begin anew.
        let added = self.added();
        self.does("talk");
        assert_eq!((self.count(), self.added()), (1, added + 1));
        let last = self.does("close");
        self.ends("TCP that is closed", last, TRANSIENT);
        self.does("open");
        let last = self.does("reset");
        self.ends("TCP that is reset", last, TRANSIENT);
    }
}

fn ends_well(process: &mut Process) {
    process.interrupt();
    assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
}

#[test]
fn connections_of_a_firewall_end_in_time() {
    require(&["ip", "python3"]).unwrap();
    let lab = Lab::new("expiry").unwrap();
    let [outside, wall, inside] = ["out", "wall", "in"].map(|it| lab.namespace(it).unwrap());
    let near = Port::new(&outside, "eth0").address("192.168.7.1/24");
    lab.link(near, Port::new(&wall, "w0")).unwrap();
    let far = Port::new(&inside, "eth0").mac("06:00:00:00:00:02").address("192.168.7.2/24");
    lab.link(far, Port::new(&wall, "w1")).unwrap();
    outside.ip("neigh add 192.168.7.99 lladdr 06:00:00:00:00:02 dev eth0").unwrap();
    let socket = lab.directory().join("control");
    let rules = lab.directory().join("rules");
    std::fs::write(&rules, "add-stateful in w0 accept\nall drop\n").unwrap();
    let command = wall.command(program()).args(["middlebox", "--in", "w0", "--out", "w1"]);
    let mut process = command.arg("--control").arg(&socket).arg(&rules).spawn().unwrap();
    process.wait_for(Router::READY, SOON).unwrap();
    for (kind, seconds) in
        [("udp", UDP), ("tcp-transient", TRANSIENT), ("tcp-established", ESTABLISHED)]
    {
        let command = wall.command(program()).args(["middlebox", "--connect"]).arg(&socket);
        command.args(["timeout", kind, &seconds.to_string()]).check().unwrap();
    }
    let talk = FlowTracker::talk([&outside, &inside], ["192.168.7.2", "192.168.7.99"]);
    let [client, server] = talk;
    let mut keeper = FlowTracker {
        client,
        server,
        control: Control::connect(&socket),
        count: "rules.connection_count",
        events: "rules.connection_events",
        strangers: ("rules", "rule"),
        answers: 0,
    };
    keeper.udp();
    keeper.tcp();
    ends_well(&mut process);
}

#[test]
fn mappings_of_a_nat_gateway_end_in_time() {
    let times = format!(
        "UDP_TIMEOUT {UDP}, TCP_NODATA_TIMEOUT {TRANSIENT}, TCP_DONE_TIMEOUT {TRANSIENT},
         TCP_TIMEOUT {ESTABLISHED}, CAPACITY $capacity"
    );
    let mut world = NatNetwork::with_words("natexpiry", &[("CAPACITY $capacity", &times)]);
    // No host answers for it.
    world.beyond.ip("route add blackhole 20.0.0.0/8").unwrap();
    let [client, server] =
        FlowTracker::talk([&world.client, &world.server], ["10.0.3.2", "20.0.0.1"]);
    let mut keeper = FlowTracker {
        client,
        server,
        control: Control::connect(&world.lab.directory().join("control")),
        count: "flows.table_size",
        events: "flows.mapping_events",
        strangers: ("flows", "unmapped"),
        answers: 0,
    };
    keeper.udp();
    keeper.tcp();
    ends_well(&mut world.nat);
}
