//! Arguments of `FromDevice` that select packets.

use castanet_lab::{Lab, Namespace, Port, Router, require};

use crate::testbed::{SOON, number, program, until};

/// A host, and a router with one interface to it.
struct Wire {
    host: Namespace,
    router: Namespace,
    // Last, so that processes in the namespaces are gone before them.
    _lab: Lab,
}

impl Wire {
    fn new(name: &str) -> Wire {
        require(&["bash", "ip"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let [host, router] = ["h", "r"].map(|it| lab.namespace(it).unwrap());
        let here = Port::new(&host, "eth0").address("10.9.0.1/24");
        lab.link(here, Port::new(&router, "m0")).unwrap();
        host.ip("neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev eth0").unwrap();
        Wire { host, router, _lab: lab }
    }

    /// Sends a datagram to a port of the address beyond the router.
    fn send(&self, port: u16) {
        let line = format!("echo x > /dev/udp/10.9.0.2/{port}");
        assert!(self.host.command("bash").args(["-c", &line]).output().unwrap().success());
    }

    /// Number of packets that the interface of the router has received.
    fn arrived(&self) -> u64 {
        let cat = self.router.command("cat").args(["/sys/class/net/m0/statistics/rx_packets"]);
        cat.output().unwrap().printed().trim().parse().unwrap()
    }

    /// Runs a router while `during` sends, and returns the values of these handlers at its end.
    fn values<const N: usize>(
        &self,
        text: &str,
        handlers: [&str; N],
        during: impl FnOnce(),
    ) -> [u64; N] {
        let shown = handlers.into_iter().flat_map(|handler| ["--handler", handler]);
        let command = self.router.command(program()).args(["run", "-e", text]).args(shown);
        let mut router = command.spawn().unwrap();
        router.wait_for(Router::READY, SOON).unwrap();
        during();
        router.interrupt();
        assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
        let output = router.stdout();
        handlers.map(|handler| number(&output, handler))
    }
}

#[test]
fn a_filter_of_tcpdump_drops_packets_and_leaves_them_to_the_host() {
    let wire = Wire::new("bpf");
    let text = "f :: FromDevice(m0, PROMISC true, BPF_FILTER \"udp dst port 7 or udp dst port 8\")
                -> c :: IPClassifier(dst udp port 7, -) -> seven :: Counter -> Discard;
                c[1] -> others :: Counter -> Discard";
    let text = text.replace("-> c ::", "-> MarkIPHeader(14) -> c ::");
    let handlers = ["seven.count", "others.count", "f.drops.filtered"];
    let [seven, others, filtered] = wire.values(&text, handlers, || {
        [7, 8, 9, 7, 10].into_iter().for_each(|port| wire.send(port));
        // One more of those that pass tells that all have come.
        let before = wire.arrived();
        wire.send(7);
        until("the last datagram has not come", || wire.arrived() > before);
    });
    assert_eq!((seven, others), (3, 1));
    assert!(filtered >= 2, "{filtered}");
}

#[test]
fn an_element_that_is_not_active_receives_nothing() {
    let wire = Wire::new("inactive");
    let text = "f :: FromDevice(m0, PROMISC true, ACTIVE false) -> c :: Counter -> Discard";
    let [count, received] = wire.values(text, ["c.count", "f.count"], || {
        let before = wire.arrived();
        wire.send(7);
        until("the datagram has not come", || wire.arrived() > before);
    });
    assert_eq!((count, received), (0, 0));
    // Once it is, it does.
    let text =
        "f :: FromDevice(m0, PROMISC true, ACTIVE false, BPF_FILTER \"udp dst port 7\", NDESC 64)
                -> c :: Counter(COUNT_CALL 1 s.run) -> Discard;
                s :: Script(TYPE PASSIVE, stop); Script(write f.active true)";
    let shown = ["run", "-e", text, "--handler", "c.count", "--handler", "f.drops"];
    let mut router = wire.router.command(program()).args(shown).spawn().unwrap();
    router.wait_for(Router::READY, SOON).unwrap();
    wire.send(7);
    assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
    assert_eq!(number(&router.stdout(), "c.count"), 1);
}
