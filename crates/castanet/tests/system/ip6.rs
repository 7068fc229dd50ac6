//! Hosts reach each other over IPv6 through `conf/router6.click`.

use castanet_lab::{Capture, Lab, Namespace, Port, Process, Router, answered_pings, require};

use crate::testbed::{Form, LATER, SOON, conf};

/// Two hosts on networks of their own, and a forwarder between them.
struct Hosts {
    process: Option<Process>,
    a: Namespace,
    b: Namespace,
    lab: Lab,
}

const A: &str = "2001:db8:1::2";
const B: &str = "2001:db8:2::2";
/// MTU of the second network's link.
const SMALL: u32 = 1400;

impl Hosts {
    /// Hosts that have not heard of each other, with Castanet between them in this form and by this
    /// method, or Linux by none.
    fn new(name: &str, method: Option<(Form, &str)>) -> Hosts {
        require(&["curl", "ip", "ping", "python3", "tcpdump", "traceroute"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let [a, router, b] = ["a", "r", "b"].map(|it| lab.namespace(it).unwrap());
        // For Linux the router has addresses, for Castanet not even IPv6.
        for namespace in [&a, &b].into_iter().chain(method.is_none().then_some(&router)) {
            for which in ["all", "default"] {
                let file = format!("net/ipv6/conf/{which}/disable_ipv6");
                namespace.sysctl(&file, "0").unwrap();
            }
        }
        for (n, host, mtu) in [(1, &a, 1500), (2, &b, SMALL)] {
            let here = Port::new(host, "eth0")
                .address(&format!("2001:db8:{n}::2/64 nodad"))
                .route(&format!("default via 2001:db8:{n}::1"));
            let mut there =
                Port::new(&router, &format!("lan{n}")).mac(&format!("02:00:00:00:{n:02}:01"));
            if method.is_none() {
                there = there.address(&format!("2001:db8:{n}::1/64 nodad"));
            }
            lab.link(here.mtu(mtu), there.mtu(mtu)).unwrap();
        }
        let process = match method {
            None => {
                router.sysctl("net/ipv6/icmp/ratelimit", "0").unwrap();
                router.sysctl("net/ipv6/conf/all/forwarding", "1").unwrap();
                None
            }
            Some((form, method)) => Some(forward(&lab, &router, form, method)),
        };
        Hosts { process, a, b, lab }
    }

    fn ping(&self, from: &Namespace, args: &[&str], to: &str) -> String {
        let command = from.command("ping").args(["-6", "-n", "-i", "0.2", "-W", "2"]);
        command.args(args).arg(to).output().unwrap().printed()
    }
}

impl Drop for Hosts {
    /// A failing check shows the router's output.
    fn drop(&mut self) {
        if let (true, Some(process)) = (std::thread::panicking(), &self.process) {
            eprintln!("== the router said ==\n{}{}", process.stdout(), process.stderr());
        }
    }
}

/// Starts the router on its two interfaces.
fn forward(lab: &Lab, router: &Namespace, form: Form, method: &str) -> Process {
    let mut text = std::fs::read_to_string(conf("router6.click")).unwrap();
    for device in ["$dev0", "$dev1"] {
        text = text.replace(&format!("Device({device})"), &format!("Device({device}{method})"));
    }
    let command = form.run(lab, router, "router6", &text);
    let settings = ["dev0=lan1".to_owned(), "dev1=lan2".to_owned(), format!("mtu1={SMALL}")];
    let mut process = command.args(settings).spawn().unwrap();
    process.wait_for(Router::READY, SOON).unwrap();
    process
}

/// Both ways by ping, each host's first packet waiting for neighbour discovery, and by TCP.
fn hosts_reach_each_other(hosts: &Hosts) {
    for (from, to) in [(&hosts.a, B), (&hosts.b, A)] {
        let output = from.ping(&["-6", "-i", "0.2"], 3, to).unwrap().stdout;
        // Linux begins with 64: one hop, one less.
        assert_eq!(output.matches("ttl=63").count(), answered_pings(&output).len(), "{output}");
    }
    let file = hosts.lab.random_file("large", 10).unwrap();
    for (at, here, from) in [(B, &hosts.b, &hosts.a), (A, &hosts.a, &hosts.b)] {
        let at = format!("[{at}]:9000").parse().unwrap();
        let got = file.send(here, at, from, LATER).unwrap();
        assert_eq!((got.bytes, &got.sha256), (10 << 20, &file.sha256));
    }
    let _server = hosts.b.serve(B, 8000).unwrap();
    let got = hosts.a.fetch(&format!("http://[{B}]:8000/large"), LATER).unwrap();
    assert_eq!((got.bytes, &got.sha256), (10 << 20, &file.sha256));
}

/// Hosts find the router by neighbour discovery, and no host at unused addresses.
fn neighbours_are_found(hosts: &Hosts) {
    for (n, host) in [(1, &hosts.a), (2, &hosts.b)] {
        let known = host.ip("-6 neighbour show dev eth0").unwrap();
        let router = known.lines().find(|line| line.starts_with(&format!("2001:db8:{n}::1 ")));
        let router = router.unwrap_or_else(|| panic!("{known}"));
        assert!(router.contains(&format!("lladdr 02:00:00:00:{n:02}:01")), "{known}");
        let output = hosts.ping(host, &["-c", "1"], &format!("2001:db8:{n}::77"));
        assert!(output.contains("0 received"), "{output}");
        let known = host.ip("-6 neighbour show dev eth0").unwrap();
        let nobody = known.lines().find(|line| line.starts_with(&format!("2001:db8:{n}::77 ")));
        assert!(nobody.is_none_or(|line| !line.contains("lladdr")), "{known}");
    }
}

/// ICMPv6 errors for packets that the router cannot forward.
fn the_router_explains(hosts: &Hosts) {
    let mut capture = hosts.a.capture_arriving("eth0", "icmp6").unwrap();
    // 48 bytes of headers: too long for the second link by one byte, then just right.
    let large = (SMALL - 47).to_string();
    let output = hosts.ping(&hosts.a, &["-c", "1", "-M", "do", "-s", &large], B);
    assert!(output.contains("0 received") && output.contains("mtu=1400"), "{output}");
    let fits = (SMALL - 48).to_string();
    let output = hosts.ping(&hosts.a, &["-c", "1", "-M", "do", "-s", &fits], B);
    assert!(output.contains("1 received"), "{output}");
    // Fragments of the sender's own pass.
    let output = hosts.ping(&hosts.a, &["-c", "1", "-s", "4000"], B);
    assert!(output.contains("4008 bytes from"), "{output}");
    let output = hosts.ping(&hosts.a, &["-c", "1", "-t", "1"], B);
    assert!(output.contains("From 2001:db8:1::1") && output.contains("Time exceeded"), "{output}");
    // There is no route for this one.
    let output = hosts.ping(&hosts.a, &["-c", "1"], "2001:db8:9::9");
    assert!(output.contains("unreachable") || output.contains("No route"), "{output}");
    capture.wait_for("unreachable", SOON).unwrap();
    let seen = capture.finish().unwrap();
    for what in ["packet too big, mtu 1400", "time exceeded in-transit"] {
        assert_eq!(seen.matches(what).count(), 1, "{seen}");
    }
    assert!(Capture::wrong_checksums(&seen).is_empty(), "{seen}");
}

fn traceroute_sees_the_router(hosts: &Hosts) {
    // UDP to an unused port, then ICMP echo: two ways to find the end.
    for how in ["-U", "-I"] {
        let hops = hosts.a.traceroute(&["-6", how], B, 4).unwrap();
        assert_eq!(hops, ["2001:db8:1::1", B], "{how}");
    }
}

fn all_of_it(mut hosts: Hosts) {
    hosts_reach_each_other(&hosts);
    neighbours_are_found(&hosts);
    the_router_explains(&hosts);
    traceroute_sees_the_router(&hosts);
    if let Some(mut process) = hosts.process.take() {
        process.interrupt();
        assert_eq!(process.wait(SOON).unwrap().code(), Some(0), "{}", process.stderr());
    }
}

#[test]
fn castanet_routes_ipv6() {
    all_of_it(Hosts::new("ip6", Some((Form::Plain, ""))));
}

#[test]
fn a_built_program_routes_ipv6() {
    all_of_it(Hosts::new("ip6b", Some((Form::Built, ""))));
}

#[test]
fn castanet_routes_ipv6_by_packet_sockets() {
    all_of_it(Hosts::new("ip6p", Some((Form::Plain, ", METHOD AF_PACKET"))));
}

#[test]
fn linux_routes_ipv6() {
    all_of_it(Hosts::new("ip6k", None));
}
