//! The test network: three hosts and a router.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use castanet_lab::{
    Command, Host, Lab, Namespace, NetworkOptions, Process, Router, ThreeHosts, answered_pings,
    require,
};

use crate::{builds, large};

pub(crate) use crate::program::{LATER, SOON, number, program};

/// All programs that the checks run.
const TOOLS: &[&str] = &[
    "arping",
    "curl",
    "ethtool",
    "ip",
    "iperf3",
    "nc",
    "ping",
    "python3",
    "sha256sum",
    "tcpdump",
    "traceroute",
];

/// The program by which a configuration runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `castanet`.
    Plain,
    /// The program that `castanet build` makes of the configuration.
    Built,
}

impl Form {
    /// A command that runs a configuration in a namespace. Paths of the lab are settings and not part of
    /// the text, which tests of one name have in common: it is built once.
    pub(crate) fn run(self, lab: &Lab, place: &Namespace, name: &str, text: &str) -> Command {
        match self {
            Form::Plain => {
                let config = lab.directory().join(format!("{name}.click"));
                std::fs::write(&config, text).unwrap();
                place.command(program()).arg("run").arg(&config)
            }
            Form::Built => {
                place.command(builds::build(&format!("system-{name}"), text, &[])).arg("run")
            }
        }
    }
}

/// Three hosts and a router that forwards between them.
pub(crate) struct TestNetwork {
    pub(crate) process: Option<Process>,
    pub(crate) network: ThreeHosts,
}

impl TestNetwork {
    /// A network with `castanet run conf/router.click` between the hosts.
    pub(crate) fn castanet(name: &str, wiring: &NetworkOptions) -> TestNetwork {
        TestNetwork::new(
            name,
            wiring,
            Router::Castanet { program: program(), config: &router_config() },
        )
    }

    /// A network whose router uses packet sockets.
    pub(crate) fn packet(name: &str, wiring: &NetworkOptions) -> TestNetwork {
        let mut testbed = TestNetwork::idle(name, wiring);
        let config = packet_config(&testbed.network);
        let router = Router::Castanet { program: program(), config: &config };
        testbed.process = testbed.network.start(router).unwrap_or_else(|error| panic!("{error}"));
        testbed
    }

    /// A network with a configuration of 2000 elements between the hosts.
    pub(crate) fn large(name: &str, wiring: &NetworkOptions, form: Form) -> TestNetwork {
        let mut testbed = TestNetwork::idle(name, wiring);
        let ThreeHosts { router, .. } = &testbed.network;
        let command = form.run(testbed.network.lab(), router, "large", &large::text());
        let mut process =
            command.args((0..3).map(|n| format!("dev{n}=lan{}", n + 1))).spawn().unwrap();
        process.wait_for(Router::READY, LATER).unwrap();
        testbed.process = Some(process);
        testbed
    }

    /// A network in which Linux forwards.
    pub(crate) fn kernel(name: &str, wiring: &NetworkOptions) -> TestNetwork {
        TestNetwork::new(name, wiring, Router::Kernel)
    }

    fn new(name: &str, wiring: &NetworkOptions, router: Router<'_>) -> TestNetwork {
        let mut testbed = TestNetwork::idle(name, wiring);
        testbed.process = testbed.network.start(router).unwrap_or_else(|error| panic!("{error}"));
        testbed
    }

    /// A network without a router that forwards yet.
    pub(crate) fn idle(name: &str, wiring: &NetworkOptions) -> TestNetwork {
        require(TOOLS).unwrap_or_else(|error| panic!("{error}"));
        let network = ThreeHosts::new(name, wiring).unwrap_or_else(|error| panic!("{error}"));
        TestNetwork { process: None, network }
    }

    pub(crate) fn hosts(&self) -> &[Host; 3] {
        &self.network.hosts
    }

    /// Starts the router again after it has ended.
    pub(crate) fn start(&mut self) {
        let router = Router::Castanet { program: program(), config: &router_config() };
        self.process = self.network.start(router).unwrap();
    }

    /// Insists that the first host reaches the second.
    pub(crate) fn reached(&self) {
        let [h1, h2, _] = self.hosts();
        h1.namespace.ping(&["-i", "0.2"], 3, &h2.address).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Pings, and returns all that ping printed whatever came of it.
    pub(crate) fn ping(&self, from: &Host, args: &[&str], to: &str) -> String {
        let command = from.command("ping").args(["-n", "-i", "0.2", "-W", "2"]);
        command.args(args).arg(to).output().unwrap_or_else(|error| panic!("{error}")).printed()
    }
}

impl Drop for TestNetwork {
    /// A failing check shows the router's output.
    fn drop(&mut self) {
        if let (true, Some(process)) = (std::thread::panicking(), &self.process) {
            eprintln!("== the router said ==\n{}{}", process.stdout(), process.stderr());
        }
    }
}

/// Repeats until a condition is met.
pub(crate) fn until(complaint: &str, condition: impl FnMut() -> bool) {
    until_or(|| complaint.to_owned(), condition);
}

/// The same, with a complaint that is made when it is needed.
pub(crate) fn until_or(complaint: impl Fn() -> String, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < LATER, "{}", complaint());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends this many pings one after another, all of which have to be answered.
#[track_caller]
pub(crate) fn ping_each(from: &Namespace, address: &str, count: u32) {
    for _ in 0..count {
        // One packet, for whose answer it waits.
        let ping = from.command("ping").args(["-n", "-c", "1", "-W", "5", address]);
        ping.check().unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Ends pings once so many are answered. All have to be answered, once and in order, but for the last one, whose answer may
/// be on its way. Returns how many were sent.
#[track_caller]
pub(crate) fn finish_pings(ping: &mut Process, least: usize) -> usize {
    until("pings have no answers", || ping.stdout().matches("icmp_seq=").count() >= least);
    ping.interrupt();
    ping.wait(SOON).unwrap();
    let said = ping.stdout();
    let answered = answered_pings(&said);
    let sent = said.split(" packets transmitted").next().and_then(|it| it.lines().last());
    let sent: usize = sent.unwrap().parse().unwrap_or_else(|_| panic!("{said}"));
    let received = format!("{sent} packets transmitted, {} received, ", answered.len());
    assert!(said.contains(&received) && answered.len() + 1 >= sent, "{said}");
    assert!(answered.iter().copied().eq(1..=answered.len()), "{said}");
    sent
}

/// The text of `conf/router.click`.
pub(crate) fn router_text() -> String {
    std::fs::read_to_string(router_config()).unwrap()
}

/// A file of the repository's `conf` directory.
pub(crate) fn conf(name: &str) -> PathBuf {
    root().join("conf").join(name)
}

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn router_config() -> PathBuf {
    conf("router.click")
}

/// The router's configuration with packet sockets for its devices.
pub(crate) fn packet_config(network: &ThreeHosts) -> PathBuf {
    let mut text = std::fs::read_to_string(router_config()).unwrap();
    for device in 0..3 {
        text = text.replace(
            &format!("Device($dev{device})"),
            &format!("Device($dev{device}, METHOD AF_PACKET)"),
        );
    }
    assert_eq!(text.matches("METHOD").count(), 6);
    let path = network.lab().directory().join("router.click");
    std::fs::write(&path, text).unwrap();
    path
}

/// Makes five tests of each check: through Castanet as it comes (by AF_XDP) and by packet
/// sockets, through 2000 elements in `castanet` and in a program built of them, and through Linux.
macro_rules! through_all {
    ($($(#[$doc:meta])* $check:ident($wiring:expr);)*) => {
        mod castanet {
            $($(#[$doc])* #[test] fn $check() {
                super::$check(&crate::testbed::TestNetwork::castanet(stringify!($check), &$wiring));
            })*
        }
        mod packet {
            $($(#[$doc])* #[test] fn $check() {
                super::$check(&crate::testbed::TestNetwork::packet(stringify!($check), &$wiring));
            })*
        }
        mod large {
            $($(#[$doc])* #[test] fn $check() {
                let form = crate::testbed::Form::Plain;
                super::$check(&crate::testbed::TestNetwork::large(stringify!($check), &$wiring, form));
            })*
        }
        mod built {
            $($(#[$doc])* #[test] fn $check() {
                let form = crate::testbed::Form::Built;
                super::$check(&crate::testbed::TestNetwork::large(stringify!($check), &$wiring, form));
            })*
        }
        mod kernel {
            $($(#[$doc])* #[test] fn $check() {
                super::$check(&crate::testbed::TestNetwork::kernel(stringify!($check), &$wiring));
            })*
        }
    };
}
pub(crate) use through_all;
