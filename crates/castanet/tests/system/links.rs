//! Interfaces that are removed, taken down, moved away and made again while a router runs: the router
//! says so, forwards between the others, and uses them again when they are back.

use castanet_lab::{Command, Lab, Namespace, Port, Process, Router, require};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use crate::testbed::{LATER, SOON, finish_pings, program, until, until_or};

/// The ways to receive and send.
const METHODS: [&str; 2] = ["AF_XDP", "AF_PACKET"];
/// How often an interface is removed under load.
const REMOVALS: usize = 100;

/// Three hosts, and a router that is their switch.
struct SwitchedHosts {
    hosts: [Namespace; 3],
    middle: Namespace,
    config: PathBuf,
    router: Option<Process>,
    queues: u32,
    // Last, so that processes in the namespaces are gone before them.
    lab: Lab,
}

/// A switch of three devices with these arguments.
fn switch(arguments: [&str; 3]) -> String {
    let port = |n: usize| {
        let arguments = arguments[n];
        format!(
            "from{n} :: FromDevice(m{n}, PROMISC true, {arguments}) -> [{n}] sw;
             sw[{n}] -> to{n} :: ToDevice(m{n}, {arguments});\n"
        )
    };
    format!("sw :: EtherSwitch;\n{}{}{}", port(0), port(1), port(2))
}

impl SwitchedHosts {
    /// The hosts, each with so many queues of its link, and a switch that runs.
    fn new(name: &str, text: &str, queues: u32, options: &[&str]) -> SwitchedHosts {
        let mut it = SwitchedHosts::idle(name, text, queues);
        let command = it.command().args(options);
        it.start(command);
        it
    }

    /// The same without a switch that runs.
    fn idle(name: &str, text: &str, queues: u32) -> SwitchedHosts {
        require(&["ip", "ping", "ethtool"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let hosts = ["a", "b", "c"].map(|it| lab.namespace(it).unwrap());
        let middle = lab.namespace("m").unwrap();
        let config = lab.directory().join("switch.click");
        std::fs::write(&config, text).unwrap();
        let it = SwitchedHosts { hosts, middle, config, router: None, queues, lab };
        (0..3).for_each(|n| it.connect(n));
        it
    }

    /// The command that runs the switch.
    fn command(&self) -> Command {
        let command = self.middle.command(program()).env("RUNTIME_DIRECTORY", self.lab.directory());
        command.arg("run").arg(&self.config)
    }

    /// Starts the switch, and waits until it runs.
    fn start(&mut self, command: Command) {
        let mut router = command.spawn().unwrap();
        router.wait_for(Router::READY, SOON).unwrap();
        self.router = Some(router);
    }

    /// A switch whose devices have this method.
    fn by(name: &str, method: &str) -> SwitchedHosts {
        let arguments = format!("METHOD {method}");
        let name = format!("{name}-{}", method.to_lowercase().replace('_', "-"));
        SwitchedHosts::new(&name, &switch([arguments.as_str(); 3]), 1, &[])
    }

    /// The end of a link at a host.
    fn end(&self, n: usize) -> Port {
        // The same Ethernet address each time: other hosts keep it for a minute.
        let (address, mac) = (format!("10.9.0.{}/24", n + 1), format!("02:00:00:00:00:0{n}"));
        Port::new(&self.hosts[n], "eth0").address(&address).mac(&mac).queues(self.queues)
    }

    /// Makes the link of a host.
    fn connect(&self, n: usize) {
        let here = Port::new(&self.middle, &format!("m{n}")).queues(self.queues);
        self.lab.link(self.end(n), here).unwrap();
    }

    /// Removes the link of a host.
    fn remove(&self, n: usize) {
        self.middle.ip(&format!("link del m{n}")).unwrap();
    }

    fn router(&mut self) -> &mut Process {
        self.router.as_mut().unwrap()
    }

    /// Waits until the router says a text.
    fn says(&mut self, text: &str) {
        self.router().wait_for(text, SOON).unwrap();
    }

    /// How often the router has said a text.
    fn said(&self, text: &str) -> usize {
        self.router.as_ref().unwrap().stderr().matches(text).count()
    }

    /// The output of a client of the router.
    fn client(&self, words: &[&str]) -> String {
        let command = Command::on_host(program()).timeout(LATER).args(words);
        let command = command.env("RUNTIME_DIRECTORY", self.lab.directory());
        command.check().unwrap_or_else(|error| panic!("{error}")).stdout.trim().to_owned()
    }

    /// Value of a handler.
    fn read(&self, handler: &str) -> String {
        self.client(&["ctl", "read", handler])
    }

    /// The number that a handler returns.
    fn number(&self, handler: &str) -> u64 {
        let text = self.read(handler);
        text.parse().unwrap_or_else(|error| panic!("{handler}: {error}: {text}"))
    }

    /// A ping from the first host to another.
    fn ping(&self, to: usize, words: &[&str]) -> Command {
        let command = self.hosts[0].command("ping").args(["-n", "-q"]).args(words);
        command.arg(format!("10.9.0.{}", to + 1)).timeout(LATER)
    }

    /// Waits until another host answers the first.
    fn reaches(&self, to: usize) {
        until(&format!("no answer of host {to}"), || {
            self.ping(to, &["-c", "1", "-W", "1"]).output().unwrap().success()
        });
        self.hosts[0].ping(&["-i", "0.05"], 5, &format!("10.9.0.{}", to + 1)).unwrap();
    }

    /// Pings without an answer.
    fn misses(&self, to: usize) {
        let output = self.ping(to, &["-c", "3", "-i", "0.05", "-W", "0.3"]).output().unwrap();
        assert!(output.stdout.contains(" 0 received"), "{}", output.printed());
    }

    /// Writes the configuration and has it read again.
    fn reload(&self, text: &str) {
        std::fs::write(&self.config, text).unwrap();
        let id = i32::try_from(self.router.as_ref().unwrap().id()).unwrap();
        kill(Pid::from_raw(id), Signal::SIGHUP).unwrap();
    }

    /// Frames of devices that packets have.
    fn used_frames(&self) -> u64 {
        let metrics = self.client(&["ctl", "metrics"]);
        let line = "castanet_pool_used_frames{pool=\"devices\"} ";
        let value = metrics.lines().find_map(|it| it.strip_prefix(line));
        value.unwrap_or_else(|| panic!("{metrics}")).trim().parse().unwrap()
    }

    /// Ends the router, which finds that no frame is missing.
    fn end_router(mut self) {
        self.router().interrupt();
        let status = self.router().wait(SOON).unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.router().stderr());
    }
}

impl Drop for SwitchedHosts {
    /// A failing test shows the router's output.
    fn drop(&mut self) {
        if let (true, Some(router)) = (std::thread::panicking(), &self.router) {
            eprintln!("== the router said ==\n{}{}", router.stdout(), router.stderr());
        }
    }
}

#[test]
fn an_interface_that_is_made_again_is_used_again_and_others_lose_no_packet() {
    for method in METHODS {
        let mut it = SwitchedHosts::by("links-again", method);
        (1..3).for_each(|n| it.reaches(n));
        let (device, count) = (it.read("from1.device"), it.number("to1.count"));
        assert_eq!((it.read("from1.link"), it.number("to1.link_up")), ("up".into(), 1));
        let others = it.hosts[0].command("ping").args(["-n", "-i", "0.005", "10.9.0.3"]);
        let mut others = others.timeout(LATER).spawn().unwrap();

        it.remove(1);
        it.says("castanet: m1 is gone: removed, or moved to another namespace");
        assert_eq!((it.read("to1.link"), it.number("from1.link_up")), ("gone".into(), 0));
        assert_eq!(it.read("from1.device"), "m1: gone; waits for an interface of this name");
        // The switch still knows where the host was.
        it.misses(1);
        let dropped = it.number("to1.drops.gone");
        assert!(dropped >= 1, "{dropped}");
        assert!(it.client(&["drops", "--interval", "0"]).contains("interface that is gone"));
        assert!(it.client(&["ctl", "metrics"]).contains("castanet_device_up{element=\"to1\""));

        it.connect(1);
        it.says("castanet: m1 is back: ");
        it.reaches(1);
        assert_eq!((it.read("from1.link"), it.read("from1.device")), ("up".into(), device));
        assert!(it.number("to1.count") > count, "counts begin anew");
        finish_pings(&mut others, 600);
        for text in ["m1 is gone", "m1 is back: "] {
            assert_eq!(it.said(text), 1, "{text}");
        }
        assert_eq!(it.said("m0 is") + it.said("m2 is"), 0);
        it.end_router();
    }
}

#[test]
fn a_router_that_waits_for_an_interface_rests() {
    for method in METHODS {
        let mut it = SwitchedHosts::by("links-rest", method);
        it.remove(1);
        it.says("m1 is gone");
        let used = || it.router.as_ref().unwrap().cpu_time();
        // The test is about processor time in a period, so it sleeps for that period.
        let before = used();
        std::thread::sleep(Duration::from_secs(2));
        let used = used() - before;
        assert!(used < Duration::from_millis(100), "{used:?} in two seconds");
        it.end_router();
    }
}

#[test]
fn a_service_stays_ready_while_an_interface_is_gone() {
    let mut it = SwitchedHosts::idle("links-service", &switch(["METHOD AF_XDP"; 3]), 1);
    let path = it.lab.directory().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let command = it.command().env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "400000");
    it.start(command);
    let message = || {
        let mut text = [0; 4096];
        let length = socket.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    while !message().contains("READY=1") {}
    it.remove(1);
    it.says("m1 is gone");
    // Those that were sent before are read, too.
    for _ in 0..10 {
        assert_eq!(message().trim_end(), "WATCHDOG=1");
    }
    it.connect(1);
    it.says("m1 is back: ");
    for _ in 0..10 {
        assert_eq!(message().trim_end(), "WATCHDOG=1");
    }
    it.end_router();
}

#[test]
fn an_interface_that_is_down_is_reported_once_and_goes_on() {
    for method in METHODS {
        let mut it = SwitchedHosts::by("links-down", method);
        (1..3).for_each(|n| it.reaches(n));
        it.middle.ip("link set m1 down").unwrap();
        it.says("castanet: m1 is down; it goes on when it is up");
        assert_eq!((it.read("from1.link"), it.number("from1.link_up")), ("down".into(), 0));
        it.misses(1);
        it.reaches(2);
        it.middle.ip("link set m1 up").unwrap();
        it.says("castanet: m1 is up");
        it.reaches(1);
        // The far end takes the carrier away.
        it.hosts[1].ip("link set eth0 down").unwrap();
        it.says("castanet: m1 has no carrier; it goes on when it has");
        assert_eq!(it.read("to1.link"), "no carrier");
        it.hosts[1].ip("link set eth0 up").unwrap();
        it.reaches(1);
        assert_eq!((it.said("m1 is down"), it.said("m1 has no carrier")), (1, 1));
        assert_eq!(it.said("m1 is gone"), 0);
        it.end_router();
    }
}

#[test]
fn no_frame_is_missing_after_a_hundred_removals_under_load() {
    for method in METHODS {
        let it = SwitchedHosts::by("links-load", method);
        (1..3).for_each(|n| it.reaches(n));
        let used = it.used_frames();
        // From both sides: frames of the removed interface are in both directions of its sockets.
        let flood = |from: usize, to: usize| {
            let command = it.hosts[from].command("ping").args(["-n", "-q", "-f", "-l", "64"]);
            command.arg(format!("10.9.0.{to}")).timeout(LATER).spawn().unwrap()
        };
        let mut floods = [flood(0, 2), flood(2, 2), flood(0, 3)];
        for _ in 0..REMOVALS {
            let back = it.said("m1 is back: ");
            it.remove(1);
            it.connect(1);
            until("the interface does not come back", || it.said("m1 is back: ") > back);
        }
        for flood in &mut floods {
            assert!(flood.is_running(), "{}", flood.stderr());
            flood.interrupt();
            flood.wait(SOON).unwrap();
        }
        assert_eq!((it.said("m1 is gone"), it.said("m1 is back: ")), (REMOVALS, REMOVALS));
        it.reaches(1);
        // As many wait in the rings of devices as before, and those on their way come back.
        until(&format!("{used} frames were used"), || it.used_frames() <= used);
        it.end_router();
    }
}

#[test]
fn an_interface_that_moves_to_another_namespace_and_back_is_used_again() {
    for method in METHODS {
        let mut it = SwitchedHosts::by("links-moved", method);
        it.reaches(1);
        let index = it.middle.ip("-o link show m1").unwrap();
        let other = it.hosts[2].name().to_owned();
        it.middle.ip(&format!("link set m1 netns {other}")).unwrap();
        it.says("m1 is gone");
        it.hosts[2].ip(&format!("link set m1 netns {}", it.middle.name())).unwrap();
        it.says("castanet: m1 is back, but down; it is used again when it is up");
        it.middle.ip("link set m1 up").unwrap();
        it.says("castanet: m1 is back: ");
        let number = |text: &str| text.split(':').next().map(str::to_owned);
        assert_eq!(number(&it.middle.ip("-o link show m1").unwrap()), number(&index));
        it.reaches(1);
        it.end_router();
    }
}

#[test]
fn a_reload_while_an_interface_is_gone_waits_for_it_too() {
    for method in METHODS {
        let mut it = SwitchedHosts::by("links-reload", method);
        it.reaches(1);
        it.remove(1);
        it.says("m1 is gone");
        // One that has the same device, and one whose arguments are new, so that it is opened anew.
        let same = format!("METHOD {method}");
        it.reload(&(switch([same.as_str(); 3]) + "Idle -> Discard;"));
        until("no reload", || it.read("list").contains("Idle"));
        let new = "METHOD AF_PACKET, BURST 16";
        it.reload(&switch([&same, new, &same]));
        until("no second reload", || it.read("config").contains("BURST"));
        assert_eq!(it.read("from1.link"), "gone");
        // A device that nobody waits for is an error.
        it.reload(&switch([&same, new, &same]).replace("m0", "m9"));
        it.says("no network interface is called ‘m9’");
        it.reaches(2);
        it.connect(1);
        it.says("castanet: m1 is back: packet socket");
        it.reaches(1);
        it.end_router();
    }
}

#[test]
fn a_missing_interface_is_an_error_at_the_start() {
    let it = SwitchedHosts::by("links-start", "AF_PACKET");
    let command = it.middle.command(program()).args(["run", "-e", "FromDevice(m7) -> Discard"]);
    let output = command.output().unwrap();
    assert!(!output.success() && output.stderr.contains("‘m7’"), "{}", output.printed());
    it.end_router();
}

#[test]
fn an_interface_comes_back_with_another_mtu_and_address() {
    for method in METHODS {
        let mut it = SwitchedHosts::by("links-other", method);
        it.reaches(1);
        let large = ["-c", "3", "-i", "0.05", "-W", "0.5", "-s", "1900"];
        for n in [0, 1] {
            it.remove(n);
            let port = Port::new(&it.middle, &format!("m{n}")).mtu(2000);
            it.lab.link(it.end(n).mtu(2000), port.mac("02:00:00:00:09:01")).unwrap();
            it.says(&format!("castanet: m{n} is back: "));
        }
        it.says("its address is now 02:00:00:00:09:01 and was ");
        it.reaches(1);
        let output = it.ping(1, &large).output().unwrap();
        assert!(output.stdout.contains(" 3 received"), "{}", output.printed());
        it.end_router();
    }
}

#[test]
fn an_interface_comes_back_as_one_without_xdp_in_its_driver() {
    for (arguments, wanted) in [
        ("METHOD AF_XDP", "AF_XDP in copy mode"),
        ("BURST 32", "packet socket, works with any driver"),
    ] {
        let name = format!("links-kind-{}", arguments.len());
        let mut it = SwitchedHosts::new(&name, &switch([arguments; 3]), 1, &[]);
        it.reaches(1);
        assert!(it.read("from1.device").contains("XDP program in the driver"));
        it.remove(1);
        it.says("m1 is gone");
        // A bridge in its place, whose port is the link.
        it.middle.ip("link add m1 type bridge").unwrap();
        it.lab.link(it.end(1), Port::new(&it.middle, "p1")).unwrap();
        it.middle.ip("link set p1 master m1").unwrap();
        it.middle.ip("link set m1 up").unwrap();
        it.says(&format!("castanet: m1 is back: {wanted}"));
        it.reaches(1);
        // And a veth again.
        it.middle.ip("link del m1").unwrap();
        it.middle.ip("link del p1").unwrap();
        until("the bridge is not gone", || it.said("m1 is gone") == 2);
        it.connect(1);
        until("the link is not back", || it.said("m1 is back: ") == 2);
        it.reaches(1);
        it.end_router();
    }
}

#[test]
fn workers_get_their_queues_back() {
    for method in METHODS {
        let name = format!("links-workers-{}", method.len());
        let text = switch([format!("METHOD {method}").as_str(); 3]);
        let mut it = SwitchedHosts::new(&name, &text, 4, &["-j", "2"]);
        (1..3).for_each(|n| it.reaches(n));
        for n in 0..3 {
            it.remove(n);
            it.says(&format!("m{n} is gone"));
            it.connect(n);
            it.says(&format!("castanet: m{n} is back: "));
            (1..3).for_each(|n| it.reaches(n));
        }
        // Fewer queues than before.
        it.queues = 1;
        it.remove(1);
        until("not gone", || it.said("m1 is gone") == 2);
        it.connect(1);
        until("not back", || it.said("m1 is back: ") == 2);
        it.reaches(1);
        it.reload(&(text + "Idle -> Discard;"));
        until("no reload", || it.read("list").contains("Idle"));
        it.reaches(1);
        it.end_router();
    }
}

/// Frames go from ring to ring between the first two, and wait in a queue before the third.
#[test]
fn frames_that_are_forwarded_without_a_look_come_back_too() {
    const TIMES: usize = 20;
    for method in METHODS {
        let text = format!(
            "from0 :: FromDevice(m0, PROMISC true, METHOD {method})
                -> to1 :: ToDevice(m1, METHOD {method});
             from1 :: FromDevice(m1, PROMISC true, METHOD {method})
                -> queue :: Queue -> to0 :: ToDevice(m0, METHOD {method});
             FromDevice(m2, METHOD {method}) -> Discard"
        );
        let name = format!("links-straight-{}", method.len());
        let it = SwitchedHosts::new(&name, &text, 1, &[]);
        it.reaches(1);
        let flood = ["-n", "-q", "-f", "-l", "64", "10.9.0.2"];
        let mut flood = it.hosts[0].command("ping").args(flood).timeout(LATER).spawn().unwrap();
        for n in 0..TIMES {
            let device = format!("m{}", n % 2);
            let back = format!("{device} is back: ");
            let before = it.said(&back);
            it.remove(n % 2);
            until("it is not gone", || it.said(&format!("{device} is gone")) > before);
            if n % 2 == 0 {
                // The queue does not fill: packets are dropped where they end.
                until("the queue keeps packets", || it.number("queue.length") == 0);
                // The flood has no interface to send on any more.
                flood.kill();
                flood.wait(SOON).unwrap();
            }
            it.connect(n % 2);
            until("it is not back", || it.said(&back) > before);
            if n % 2 == 0 {
                it.reaches(1);
                let again = ["-n", "-q", "-f", "-l", "64", "10.9.0.2"];
                let again = it.hosts[0].command("ping").args(again).timeout(LATER);
                flood = again.spawn().unwrap();
            }
        }
        flood.kill();
        flood.wait(SOON).unwrap();
        it.reaches(1);
        it.end_router();
    }
}

#[test]
fn a_device_that_the_router_made_is_made_again() {
    let answers = "c[0] -> ARPResponder(0.0.0.0/0 1:1:1:1:1:1) -> to;
                   c[1] -> Strip(14) -> CheckIPHeader -> ICMPPingResponder
                       -> EtherEncap(0x0800, 1:1:1:1:1:1, 00:01:02:03:04:05) -> to;";
    for (name, text) in [
        ("host", "to :: ToHost(tap0); FromHost(tap0, 192.0.2.1/24) -> c;"),
        ("tap", "to :: KernelTap(192.0.2.1/24, DEVNAME tap0, ETHER 00:01:02:03:04:05) -> c;"),
    ] {
        let text = format!("c :: Classifier(12/0806, 12/0800); {text} {answers}");
        let lab = Lab::new(&format!("links-{name}")).unwrap();
        let namespace = lab.namespace("m").unwrap();
        let command = namespace.command(program()).args(["run", "-e", &text]);
        let mut router = command.spawn().unwrap();
        router.wait_for(Router::READY, SOON).unwrap();
        let answered = || {
            let ping = ["-n", "-q", "-c", "1", "-W", "1", "192.0.2.9"];
            namespace.command("ping").args(ping).output().unwrap().success()
        };
        until("no answer", answered);
        for times in 1..=2 {
            namespace.ip("link del tap0").unwrap();
            let again = "tap0: the device is there again";
            let host = || ["-s addr", "neigh"].map(|it| namespace.ip(it).unwrap()).concat();
            let complaint = || format!("it is not made again: {}\n{}", router.stderr(), host());
            until_or(complaint, || {
                answered();
                router.stderr().contains(again) && answered()
            });
            let removed = router.stderr().matches("tap0: the device was removed").count();
            // Each element says so for itself, unless it finds the device there again.
            assert!((times..=2 * times).contains(&removed), "{}", router.stderr());
        }
        router.interrupt();
        assert_eq!(router.wait(SOON).unwrap().code(), Some(0), "{}", router.stderr());
    }
}

#[test]
fn a_confined_router_needs_its_capabilities_to_open_an_interface_again() {
    let text = switch(["METHOD AF_XDP"; 3]);
    let mut it = SwitchedHosts::new("links-confined", &text, 1, &["--confine"]);
    it.reaches(1);
    it.remove(1);
    it.says("m1 is gone");
    it.connect(1);
    it.says("castanet: m1 is back, but cannot be used yet: ");
    it.says("only with --keep-capabilities");
    it.reaches(2);
    it.end_router();
    let options = ["--confine", "--keep-capabilities"];
    let mut it = SwitchedHosts::new("links-kept", &text, 1, &options);
    it.reaches(1);
    it.remove(1);
    it.says("m1 is gone");
    it.connect(1);
    it.says("castanet: m1 is back: ");
    it.reaches(1);
    it.end_router();
}
