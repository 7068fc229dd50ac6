//! Elements that keep packets leave frames to others: neighbours that never answer, a queue on a
//! side branch that no element empties, and fragments whose first fragment never comes.

use castanet_lab::{Lab, Namespace, Port, Process, Router, require};

use crate::testbed::{LATER, SOON, program};

/// Frames for devices: far fewer than packets that are kept.
const FRAMES: &str = "1024";
/// Packets of the flood.
const FLOOD: u64 = 20_000;

/// A client beside a router, behind which is a network without hosts.
struct Network {
    client: Namespace,
    router: Process,
    _lab: Lab,
}

impl Network {
    fn new(name: &str, method: &str) -> Network {
        require(&["ip", "ping", "python3"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let [client, middle, dead] = ["c", "r", "d"].map(|it| lab.namespace(it).unwrap());
        let port = Port::new(&client, "eth0").address("10.0.1.2/24").route("default via 10.0.1.1");
        lab.link(port, Port::new(&middle, "lan1")).unwrap();
        lab.link(Port::new(&dead, "eth0"), Port::new(&middle, "lan2")).unwrap();
        let text = format!(
            "from :: FromDevice(lan1, METHOD {method})
                -> c :: Classifier(12/0806 20/0001, 12/0800, -);
             to :: Queue -> ToDevice(lan1, METHOD {method});
             c[0] -> ARPResponder(10.0.1.1 lan1) -> to; c[2] -> Discard;
             c[1] -> Strip(14) -> CheckIPHeader -> GetIPAddress(16)
                -> here :: IPClassifier(dst host 10.0.1.1 icmp echo, ip frag, -);
             here[0] -> ICMPPingResponder -> Unstrip(14) -> EtherMirror -> to;
             here[2] -> t :: Tee -> arp :: ARPQuerier(10.9.0.1, lan2, CAPACITY 100000)
                -> Queue -> ToDevice(lan2, METHOD {method});
             here[1] -> flows :: AggregateIPFlows -> [0] arp; flows[1] -> [0] arp;
             t[1] -> held :: Queue(1000000) -> Unqueue(ACTIVE false) -> Discard;
             FromDevice(lan2, METHOD {method}) -> [1] arp;"
        );
        let handlers = ["held.length", "arp.length", "flows.length", "frames", "drops"];
        let handlers = handlers.iter().flat_map(|handler| ["--handler", handler]);
        let command = middle.command(program()).args(["run", "--frames", FRAMES, "-e", &text]);
        let mut router = command.args(handlers).spawn().unwrap();
        router.wait_for(Router::READY, SOON).unwrap();
        Network { client, router, _lab: lab }
    }

    /// Whether ten pings are all answered.
    fn pings(&self) {
        self.client.ping(&["-i", "0.05"], 10, "10.0.1.1").unwrap();
    }

    /// UDP to as many hosts that are not there, and then later fragments between as many pairs.
    fn flood(&self) {
        let script = format!(
            "import socket, struct, time\n\
             def to(i): return '10.9.%d.%d' % (i >> 8 & 255, i & 255)\n\
             udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)\n\
             for i in range({FLOOD}):\n\
             \x20   udp.sendto(b'x' * 1000, (to(i), 9))\n\
             \x20   if i % 50 == 0: time.sleep(0.002)\n\
             for i in range({FLOOD}):\n\
             \x20   to_it = socket.inet_aton(to(i))\n\
             \x20   head = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 28, i, 100, 64, 17, 0,\n\
             \x20                      socket.inet_aton('10.0.1.2'), to_it)\n\
             \x20   raw.sendto(head + b'fragment', (to(i), 0))\n\
             \x20   if i % 50 == 0: time.sleep(0.002)\n"
        );
        let flood = self.client.command("python3").args(["-c", &script]).timeout(LATER);
        flood.check().unwrap();
    }

    /// Ends the router; how many packets were kept in each place.
    fn kept(&mut self) -> [u64; 3] {
        self.router.interrupt();
        let status = self.router.wait(SOON).unwrap();
        let output = self.router.stdout();
        assert_eq!(status.code(), Some(0), "{output}{}", self.router.stderr());
        ["held", "arp", "flows"].map(|it| {
            let (_, rest) = output.split_once(&format!("{it}.length:\n")).unwrap();
            rest.lines().next().unwrap().parse().unwrap()
        })
    }
}

fn live_traffic_goes_on(name: &str, method: &str) {
    let mut network = Network::new(name, method);
    network.pings();
    network.flood();
    network.pings();
    let [held, arp, flows] = network.kept();
    let output = format!("held {held}, arp {arp}, flows {flows}\n{}", network.router.stdout());
    // The machine may be too busy to receive all, but not next to none.
    assert!(held > FLOOD / 2 && flows > FLOOD / 2, "{output}");
}

#[test]
fn packets_that_are_kept_stop_nothing_by_packet_sockets() {
    live_traffic_goes_on("keepers-packet", "AF_PACKET");
}

#[test]
fn packets_that_are_kept_stop_nothing_by_af_xdp() {
    live_traffic_goes_on("keepers-xdp", "AF_XDP");
}
