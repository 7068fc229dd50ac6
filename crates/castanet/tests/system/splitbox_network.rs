//! Parties of SplitBox on one network, between a sender and servers.
//!
//! ```text
//! sender 10.1.0.2 ── A ── cloud 10.7.0.0/24 ── C ── server 10.2.0.2, 10.2.0.3
//!                           │   │   │    │
//!                          B1  B2  B3   attacker
//! ```
//!
//! The hosts of A and C have addresses .1 and .2 in the cloud, those of the processors .11 and so on,
//! and the attacker .99.

use castanet_lab::{Lab, Namespace, Port, Process, Router, require};
use std::path::PathBuf;

use crate::control::Control;
use crate::testbed::{LATER, SOON, program, root};

/// A party.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Party {
    /// The entry.
    Entry,
    /// A processor, from 1.
    Processor(usize),
    /// The client.
    Client,
}

impl Party {
    /// The element of the party in its configuration.
    pub(crate) fn element(self) -> &'static str {
        match self {
            Party::Entry => "entry",
            Party::Processor(_) => "processor",
            Party::Client => "client",
        }
    }
}

/// The hosts and their links.
pub(crate) struct SplitBoxNetwork {
    pub(crate) sender: Namespace,
    pub(crate) a: Namespace,
    pub(crate) c: Namespace,
    pub(crate) processors: Vec<Namespace>,
    pub(crate) server: Namespace,
    pub(crate) attacker: Namespace,
    pub(crate) cloud: Namespace,
    pub(crate) lab: Lab,
}

/// The hosts in the cloud, in the order of their ports.
fn hosts(a: &Namespace, c: &Namespace, processors: &[Namespace]) -> Vec<(Namespace, String)> {
    let mut hosts = vec![(a.clone(), "10.7.0.1/24".to_owned()), (c.clone(), "10.7.0.2/24".into())];
    let own = (11..).zip(processors).map(|(n, it)| (it.clone(), format!("10.7.0.{n}/24")));
    hosts.extend(own);
    hosts
}

impl SplitBoxNetwork {
    /// A network whose cloud is a switch.
    pub(crate) fn new(name: &str, processors: usize) -> SplitBoxNetwork {
        let (network, mut hosts) = SplitBoxNetwork::without_cloud(name, processors);
        hosts.push((network.attacker.clone(), "10.7.0.99/24".to_owned()));
        network.cloud.ip("link add sw type bridge stp_state 0 forward_delay 0").unwrap();
        for (n, (host, address)) in hosts.iter().enumerate() {
            let here = Port::new(host, "eth0").address(address);
            network.lab.link(here, Port::new(&network.cloud, &format!("p{n}"))).unwrap();
            network.cloud.ip(&format!("link set p{n} master sw")).unwrap();
        }
        network.cloud.ip("link set sw up").unwrap();
        network.add_routes();
        network
    }

    /// A network whose cloud is a switch of Castanet. `impair` gives the elements that IP packets from
    /// port `n` pass: 0 is A, 1 is C, processors follow. A lost ARP request would cost a second.
    pub(crate) fn impaired(
        name: &str,
        processors: usize,
        impair: impl Fn(usize) -> String,
    ) -> (SplitBoxNetwork, Process) {
        let (network, hosts) = SplitBoxNetwork::without_cloud(name, processors);
        let mut text = "sw :: EtherSwitch;\n".to_owned();
        for (n, (host, address)) in hosts.iter().enumerate() {
            let here = Port::new(host, "eth0").address(address).offloads(false);
            let there = Port::new(&network.cloud, &format!("p{n}")).offloads(false);
            network.lab.link(here, there).unwrap();
            text += &format!(
                "FromDevice(p{n}, METHOD AF_PACKET, PROMISC true) -> c{n} :: Classifier(12/0800, -);
                 c{n}[0] -> {} -> [{n}] sw; c{n}[1] -> [{n}] sw;
                 sw[{n}] -> Queue(10000) -> ToDevice(p{n}, METHOD AF_PACKET);\n",
                impair(n)
            );
        }
        let switch = network.cloud.command(program()).args(["run", "-e", &text]);
        let mut switch = switch.spawn().unwrap();
        switch.wait_for(Router::READY, SOON).unwrap();
        network.add_routes();
        (network, switch)
    }

    fn without_cloud(name: &str, count: usize) -> (SplitBoxNetwork, Vec<(Namespace, String)>) {
        let tools = ["curl", "ethtool", "ip", "iperf3", "ping", "python3", "sha256sum"];
        require(&tools).unwrap_or_else(|error| panic!("{error}"));
        let lab = Lab::new(name).unwrap();
        let [sender, a, c, server, attacker, cloud] =
            ["sender", "a", "c", "server", "attacker", "cloud"]
                .map(|it| lab.namespace(it).unwrap());
        let processors: Vec<Namespace> =
            (1..=count).map(|n| lab.namespace(&format!("b{n}")).unwrap()).collect();
        for host in [&a, &c] {
            host.sysctl("net/ipv4/ip_forward", "1").unwrap();
            // Packets come by another device than their answers go.
            host.sysctl("net/ipv4/conf/all/rp_filter", "0").unwrap();
            host.sysctl("net/ipv4/conf/default/rp_filter", "0").unwrap();
        }
        for (gateway, host, n) in [(&a, &sender, 1), (&c, &server, 2)] {
            let lan = Port::new(gateway, "lan").address(&format!("10.{n}.0.1/24"));
            let port = Port::new(host, "eth0")
                .address(&format!("10.{n}.0.2/24"))
                .address(&format!("10.{n}.0.3/24"))
                .route(&format!("default via 10.{n}.0.1"));
            lab.link(lan, port).unwrap();
        }
        let hosts = hosts(&a, &c, &processors);
        (SplitBoxNetwork { sender, a, c, processors, server, attacker, cloud, lab }, hosts)
    }

    /// The way back, which leads past SplitBox.
    fn add_routes(&self) {
        self.c.ip("route add 10.1.0.0/24 via 10.7.0.1").unwrap();
    }

    /// Gives all hosts but the processors IPv6 addresses like fd01::2, and routes.
    pub(crate) fn add_ip6(&self) {
        for host in [&self.sender, &self.a, &self.c, &self.server] {
            for which in ["all", "default", "eth0", "lan", "lo"] {
                // Not each of them has all the devices.
                _ = host.sysctl(&format!("net/ipv6/conf/{which}/disable_ipv6"), "0");
            }
        }
        for (host, device, address) in [
            (&self.sender, "eth0", "fd01::2"),
            (&self.a, "lan", "fd01::1"),
            (&self.a, "eth0", "fd07::1"),
            (&self.c, "eth0", "fd07::2"),
            (&self.c, "lan", "fd02::1"),
            (&self.server, "eth0", "fd02::2"),
        ] {
            host.ip(&format!("address add {address}/64 dev {device} nodad")).unwrap();
        }
        self.sender.ip("route add default via fd01::1").unwrap();
        self.server.ip("route add default via fd02::1").unwrap();
        for host in [&self.a, &self.c] {
            host.sysctl("net/ipv6/conf/all/forwarding", "1").unwrap();
        }
        self.c.ip("route add fd01::/64 via fd07::1").unwrap();
    }

    /// Frames go to all ports of the cloud, so that the attacker hears everything.
    pub(crate) fn let_all_hear(&self) {
        self.cloud.ip("link set sw type bridge ageing_time 0").unwrap();
    }

    /// Pings the server, and returns all that ping printed.
    pub(crate) fn ping(&self, words: &[&str], to: &str) -> String {
        let command = self.sender.command("ping").args(["-n", "-i", "0.1", "-W", "2"]);
        command.args(words).arg(to).output().unwrap().printed()
    }

    /// Makes the files of a policy; its name tells its language.
    pub(crate) fn split_box(
        &self,
        (name, text): (&str, &str),
        words: &[&str],
        port: u16,
    ) -> SplitBox {
        let at = self.lab.directory().join(format!("{name}-{port}"));
        std::fs::create_dir(&at).unwrap();
        let (policy, key) = (at.join(name), at.join("key"));
        std::fs::write(&policy, text).unwrap();
        let castanet = |words: &[&str]| self.cloud.command(program()).arg("splitbox").args(words);
        castanet(&["key"]).arg(&key).check().unwrap();
        let clouds = self.processors.len().to_string();
        let setup = castanet(&["setup"]).arg(&policy).arg("--out").arg(&at).arg("--key-file");
        let setup = setup.arg(&key).args(["--clouds", &clouds, "--allow-low-weight"]).args(words);
        setup.timeout(LATER).check().unwrap();
        let device = format!("box{port}");
        let (entry, client) = (self.a.clone(), self.c.clone());
        let parties = Vec::new();
        let (b, is_backwards) = (self.processors.clone(), false);
        SplitBox { at, port, device, entry, client, b, is_backwards, parties }
    }
}

/// A private function between two hosts.
pub(crate) struct SplitBox {
    at: PathBuf,
    port: u16,
    /// The TUN device at both ends.
    pub(crate) device: String,
    /// The hosts of the entry, of the client and of the processors.
    entry: Namespace,
    client: Namespace,
    b: Vec<Namespace>,
    /// Whether packets go from C's host to A's.
    is_backwards: bool,
    parties: Vec<(Party, Process)>,
}

impl SplitBox {
    /// The same function from C's host to A's.
    pub(crate) fn backwards(mut self) -> SplitBox {
        std::mem::swap(&mut self.entry, &mut self.client);
        self.is_backwards = true;
        self
    }

    /// The entry's host has the device before the entry runs, and keeps it, with routes for networks.
    pub(crate) fn with_device(self, networks: &[&str]) -> SplitBox {
        let (host, device) = (&self.entry, &self.device);
        host.ip(&format!("tuntap add dev {device} mode tun")).unwrap();
        host.ip(&format!("link set {device} up")).unwrap();
        self.add_routes(networks);
        self
    }

    /// The entry's host sends packets for networks through the function.
    pub(crate) fn add_routes(&self, networks: &[&str]) {
        for network in networks {
            self.entry.ip(&format!("route add {network} dev {}", self.device)).unwrap();
        }
    }

    /// Starts all parties, and waits until the entry has an epoch.
    pub(crate) fn start_all(&mut self) {
        self.start(Party::Client, &[]);
        (1..=self.b.len()).for_each(|n| self.start(Party::Processor(n), &[]));
        self.start(Party::Entry, &[]);
        self.wait_until("the entry has an epoch", |it| {
            it.control(Party::Entry).sum(&["entry.newest_epoch"]) > 0
        });
    }

    /// Starts a party that does not run, with more words.
    pub(crate) fn start(&mut self, party: Party, words: &[&str]) {
        let port = self.port;
        let (a, c) = (format!("10.7.0.1:{port}"), format!("10.7.0.2:{port}"));
        let [entry, client] = if self.is_backwards { [c, a] } else { [a, c] };
        let processor = |n: usize| format!("10.7.0.{}:{port}", 10 + n);
        let all: Vec<String> =
            (1..=self.b.len()).flat_map(|n| ["--processor".to_owned(), processor(n)]).collect();
        let device = ["--device", &self.device];
        let (host, file, listen) = match party {
            Party::Entry => (&self.entry, "entry.splitbox".to_owned(), entry.clone()),
            Party::Client => (&self.client, "client.splitbox".to_owned(), client.clone()),
            Party::Processor(n) => {
                (&self.b[n - 1], format!("processor-{n}.splitbox"), processor(n))
            }
        };
        let command = host.command(program()).args(["splitbox", "run", party.element()]);
        let command = command.arg(self.at.join(file)).arg("--key-file").arg(self.at.join("key"));
        let command = command.args(["--listen", &listen]).arg("--control").arg(self.socket(party));
        let command = match party {
            Party::Entry => command.args(["--client", &client]).args(all).args(device),
            Party::Processor(_) => command.args(["--client", &client]),
            Party::Client => command.args(["--entry", &entry]).args(all).args(device),
        };
        let mut process = command.args(words).spawn().unwrap();
        process.wait_for(Router::READY, LATER).unwrap();
        self.parties.push((party, process));
    }

    /// Kills a party: it has no time to take leave.
    pub(crate) fn kill(&mut self, party: Party) {
        // A process is killed when it is dropped.
        self.parties.retain(|it| it.0 != party);
    }

    /// Insists that all parties end on Ctrl-C, without a word about an error.
    pub(crate) fn stop(&mut self) {
        for (party, mut process) in self.parties.drain(..) {
            process.interrupt();
            let status = process.wait(SOON).unwrap();
            assert_eq!(status.code(), Some(0), "{party:?}: {}", process.stderr());
            assert!(!process.stderr().contains("error"), "{party:?}: {}", process.stderr());
        }
    }

    /// The control socket of a party.
    pub(crate) fn socket(&self, party: Party) -> PathBuf {
        self.at.join(match party {
            Party::Processor(n) => format!("b{n}.sock"),
            _ => format!("{}.sock", party.element()),
        })
    }

    /// A connection to a party.
    pub(crate) fn control(&self, party: Party) -> Control {
        Control::connect(&self.socket(party))
    }

    /// A number of the client's handler `packets`.
    pub(crate) fn packets(&self, word: &str) -> u64 {
        self.control(Party::Client).of("client.packets", word)
    }

    /// Datagrams and packets that a party dropped for a reason.
    pub(crate) fn dropped(&self, party: Party, reason: &str) -> u64 {
        self.control(party).dropped_by(party.element(), reason)
    }

    /// All datagrams and packets that a party dropped.
    pub(crate) fn all_dropped(&self, party: Party) -> u64 {
        self.control(party).dropped(&[party.element()])
    }

    /// Waits until something is so.
    pub(crate) fn wait_until(&self, text: &str, is_so: impl Fn(&SplitBox) -> bool) {
        let limit = std::time::Instant::now() + LATER;
        while !is_so(self) {
            let state = || self.control(Party::Client).read("client.state");
            assert!(std::time::Instant::now() < limit, "still waiting: {text}\n{}", state());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// Datagrams with numbers from the sender to a server, whose contents the receiver knows.
pub(crate) struct NumberedStream {
    sender: Process,
    receiver: Process,
    questions: u64,
}

/// Datagrams that the receiver of a stream has got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamCounts {
    /// Different ones.
    pub(crate) count: u64,
    /// Those with other contents.
    pub(crate) wrong: u64,
    /// Those that came again.
    pub(crate) doubled: u64,
    /// Numbers below the greatest that did not come.
    pub(crate) missing: u64,
}

/// The script of both ends.
fn script() -> PathBuf {
    root().join("crates/castanet/tests/system/splitbox_stream.py")
}

impl NumberedStream {
    /// Begins to send so many datagrams in a second.
    pub(crate) fn start(network: &SplitBoxNetwork, rate: u32) -> NumberedStream {
        let python = |host: &Namespace| host.command("python3").args(["-u", "-B"]).arg(script());
        let receiver = python(&network.server).args(["receive", "10.2.0.2", "5000"]).pipe_stdin();
        let mut receiver = receiver.spawn().unwrap();
        receiver.wait_for("ready", SOON).unwrap();
        let rate = rate.to_string();
        let sender = python(&network.sender).args(["send", "10.2.0.2", "5000", &rate]).pipe_stdin();
        NumberedStream { sender: sender.spawn().unwrap(), receiver, questions: 0 }
    }

    /// Datagrams that have come so far.
    pub(crate) fn received(&mut self) -> StreamCounts {
        self.questions += 1;
        let head = format!("answer {} ", self.questions);
        self.receiver.write_line("?").unwrap();
        self.receiver.wait_for(&head, SOON).unwrap();
        let output = self.receiver.stdout();
        let line = output.lines().find(|line| line.starts_with(&head)).unwrap();
        let numbers: Vec<u64> = line.split(' ').skip(2).map(|it| it.parse().unwrap()).collect();
        let [count, wrong, doubled, missing] = numbers[..] else { panic!("{line}") };
        StreamCounts { count, wrong, doubled, missing }
    }

    /// Waits until `count` more datagrams have come.
    pub(crate) fn wait_for(&mut self, count: u64) -> StreamCounts {
        let first = self.received();
        let limit = std::time::Instant::now() + LATER;
        loop {
            let now = self.received();
            if now.count >= first.count + count {
                return now;
            }
            assert!(std::time::Instant::now() < limit, "{first:?} and no more than {now:?}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Waits until `count` datagrams in a row have come.
    pub(crate) fn wait_for_whole(&mut self, count: u64) -> StreamCounts {
        let limit = std::time::Instant::now() + LATER;
        loop {
            let (first, last) = (self.received(), self.wait_for(count));
            if first.missing == last.missing {
                return last;
            }
            assert!(std::time::Instant::now() < limit, "{first:?} and {last:?}");
        }
    }

    /// Stops sending; returns the number of datagrams that were sent.
    pub(crate) fn stop(&mut self) -> u64 {
        self.sender.write_line("stop").unwrap();
        let status = self.sender.wait(SOON).unwrap();
        assert!(status.success(), "{}", self.sender.stderr());
        self.sender.stdout().trim().parse().unwrap()
    }
}
