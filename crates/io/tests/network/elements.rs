//! Tests of whole configurations between real hosts and files.

use crate::{TOOLS, test_network};
use castanet_lab::{Lab, Namespace, require};
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{Options, Router, TeardownReport};
use castanet_runtime::worker::driver::DriverEvent;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

fn build(text: &str, workers: usize) -> Result<Router, String> {
    let mut library = castanet_elements::library();
    castanet_io::elements::CLASSES.iter().for_each(|class| library.add(class));
    let mut options = Options::new(Arc::new(SilentConsole));
    options.workers = workers;
    options.interfaces = Some(castanet_io::elements::address_of);
    Router::from_text(text, &library, &options)
}

/// A router that runs in a namespace until `finish`.
struct RouterThread {
    line: Sender<DriverEvent>,
    thread: JoinHandle<castanet_lab::Result<(Vec<String>, TeardownReport)>>,
}

/// Runs a configuration; reads `handlers` when it ends.
fn run(
    namespace: &Namespace,
    text: &str,
    workers: usize,
    handlers: &'static [&'static str],
) -> RouterThread {
    let (ready, built) = channel();
    let text = text.to_owned();
    let thread = namespace.enter(move || {
        let mut router = build(&text, workers).unwrap_or_else(|error| panic!("{error}"));
        ready.send(router.line()).unwrap();
        router.run(None);
        let answers = handlers.iter().map(|name| router.read(name).unwrap()).collect();
        router.end();
        Ok((answers, router.dismantle()))
    });
    let line = built.recv_timeout(Duration::from_secs(20)).expect("the router is built");
    RouterThread { line, thread }
}

impl RouterThread {
    fn finish(self) -> Vec<String> {
        self.line.send(DriverEvent::Interrupted).unwrap();
        self.wait()
    }

    fn wait(self) -> Vec<String> {
        let (answers, report) = self.thread.join().unwrap().unwrap();
        assert_eq!(report, TeardownReport { leaked_frames: 0, panics: 0, lost_workers: 0 });
        answers
    }
}

#[test]
fn from_device_to_device_is_a_bridge() {
    for workers in [1, 2] {
        let net = test_network("fdtd");
        let bridge = run(
            &net.middle,
            "one :: FromDevice(m0, PROMISC true) -> a :: ToDevice(m1);
             two :: FromDevice(m1, PROMISC true) -> c :: Counter -> b :: ToDevice(m0);",
            workers,
            &[
                "one.count",
                "a.count",
                "two.count",
                "b.count",
                "two.kernel_drops",
                "one.encap",
                "c.count",
                "c.byte_count",
                "two.byte_count",
                "b.byte_count",
            ],
        );
        net.a.command("ping").args(["-c", "5", "-i", "0.02", "10.9.0.2"]).check().unwrap();
        let file = net.lab.random_file("random", 16).unwrap();
        let _server = net.b.serve("10.9.0.2", 8000).unwrap();
        let fetched = net.a.fetch("http://10.9.0.2:8000/random", Duration::from_secs(30)).unwrap();
        assert_eq!((fetched.bytes, fetched.sha256), (file.bytes, file.sha256));
        let answers = bridge.finish();
        let number = |i: usize| answers[i].trim().parse::<u64>().unwrap();
        assert!(number(2) > 10_000 && number(0) > 100, "{answers:?}");
        assert_eq!((number(0), number(2)), (number(1), number(3)), "{answers:?}");
        assert_eq!((number(6), number(7)), (number(2), number(8)), "{answers:?}");
        assert_eq!(number(8), number(9), "{answers:?}");
        assert_eq!(answers[4..6], ["0", "ETHER"]);
    }
}

#[test]
fn the_host_behind_kernel_tap_speaks_with_a_real_one() {
    let net = test_network("ktap");
    let middle = run(
        &net.middle,
        "tap :: KernelTap(10.9.0.9/24, DEVNAME mine, ETHER 2:0:0:0:0:9);
         FromDevice(m0, PROMISC true) -> tap -> ToDevice(m0);",
        1,
        &["tap.dev_name"],
    );
    net.a.command("ping").args(["-c", "3", "-i", "0.02", "10.9.0.9"]).check().unwrap();
    assert_eq!(middle.finish(), ["mine"]);
}

#[test]
fn from_host_and_to_host_are_two_sides_of_one_device() {
    let net = test_network("hosts");
    let middle = run(
        &net.middle,
        "FromDevice(m0, PROMISC true) -> ToHost(fake0);
         FromHost(fake0, 10.9.0.9/24, ETHER 2:0:0:0:0:9) -> ToDevice(m0);",
        2,
        &[],
    );
    net.a.command("ping").args(["-c", "3", "-i", "0.02", "10.9.0.9"]).check().unwrap();
    middle.finish();
}

#[test]
fn two_tuns_in_one_host_are_a_wire() {
    require(TOOLS).expect("these tests build networks");
    let lab = Lab::new("ktun").unwrap();
    let host = lab.namespace("a").unwrap();
    let wire = run(&host, "t :: KernelTun(10.9.0.1/24, DEVNAME t0) -> t;", 1, &["t.count"]);
    // Returning packets have the host's own address as their source.
    host.sysctl("net/ipv4/conf/all/accept_local", "1").unwrap();
    host.sysctl("net/ipv4/conf/t0/accept_local", "1").unwrap();
    host.sysctl("net/ipv4/conf/all/forwarding", "1").unwrap();
    let seen = host.capture("t0", "icmp").unwrap();
    host.command("ping").args(["-c", "1", "-W", "1", "10.9.0.7"]).output().unwrap();
    let text = seen.finish().unwrap();
    assert!(text.matches("10.9.0.1 > 10.9.0.7: ICMP echo request").count() >= 2, "{text}");
    assert!(wire.finish()[0].parse::<u64>().unwrap() >= 1);
}

#[test]
fn dumps_are_written_and_read_again() {
    let net = test_network("dump");
    let path = net.lab.directory().join("seen.pcap");
    let copy = net.lab.directory().join("copy.pcap");
    let text = format!("FromDevice(m0, PROMISC true) -> d :: ToDump({}, 0);", path.display());
    let middle = run(&net.middle, &text, 1, &["d.count"]);
    // No host answers ARP here, so the test adds the neighbor itself.
    net.a.ip("neigh add 10.9.0.77 lladdr 2:0:0:0:0:77 dev eth0").unwrap();
    let ping = ["-c", "5", "-i", "0.02", "-W", "1", "-s", "1000", "10.9.0.77"];
    net.a.command("ping").args(ping).output().unwrap();
    let written = middle.finish()[0].parse::<u64>().unwrap();
    assert!(written >= 5);
    let show = |path: &std::path::Path| {
        let tcpdump = net.a.command("tcpdump").args(["-nevvtt", "-r"]).arg(path);
        tcpdump.check().unwrap().stdout
    };
    let shown = show(&path);
    assert!(shown.matches("ICMP echo request").count() == 5, "{shown}");
    let text = format!(
        "f :: FromDump({}, STOP true, FORCE_IP true) -> ToDump({}, SNAPLEN 0);",
        path.display(),
        copy.display()
    );
    let answers = run(&net.middle, &text, 1, &["f.count", "f.encap", "f.active"]).wait();
    assert_eq!(answers, ["5", "ETHER", "false"]);
    let only_ip = shown.lines().collect::<Vec<_>>().join("\n");
    let copied = show(&copy);
    assert!(only_ip.contains(copied.trim_end()), "{copied}\nis not in\n{only_ip}");
}

#[test]
fn devices_that_cannot_be_opened_are_explained() {
    let net = test_network("errors");
    net.middle.ip("link set m1 down").unwrap();
    for (text, expected) in [
        (
            "FromDevice(m00) -> ToDevice(m1);",
            "no network interface is called ‘m00’; did you mean ‘m0’?",
        ),
        ("FromDevice(m1) -> ToDevice(m0);", "interface ‘m1’ is down"),
        ("FromDevice(m0, METHOD NETMAP) -> ToDevice(m0);", "`NETMAP` is not AF_XDP, AF_PACKET"),
        ("FromDump(/no/such) -> ToDevice(m0);", "/no/such: No such file or directory"),
        ("KernelTun(10.0.0.1/24, 11.0.0.1) -> ToDevice(m0);", "is not on the device's network"),
        (
            "FromDump(/dev/null, START 1, START_AFTER 2) -> ToDevice(m0);",
            "START and START_AFTER exclude each other",
        ),
    ] {
        let error = net.middle.enter(move || Ok(build(text, 1).err())).join().unwrap().unwrap();
        let error = error.unwrap_or_default();
        assert!(error.contains(expected), "{text}\n{error}");
    }
}
