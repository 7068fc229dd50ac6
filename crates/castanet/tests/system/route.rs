//! `castanet middlebox` as a router: two networks, IPv4 and IPv6, with rules in between.

use castanet_lab::{Capture, Lab, Namespace, Port, Process, Router, answered_pings, require};

use crate::builds;
use crate::testbed::{Form, LATER, SOON, program};

/// The longest packet that the router forwards.
const MTU: u32 = 1400;

/// A client and a server on networks of their own.
struct Networks {
    process: Process,
    client: Namespace,
    server: Namespace,
    lab: Lab,
}

impl Networks {
    fn new(name: &str, form: Form, method: &[&str]) -> Networks {
        require(&["curl", "ip", "ping", "python3", "sha256sum", "tcpdump", "traceroute"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let [client, router, server] = ["c", "r", "s"].map(|it| lab.namespace(it).unwrap());
        for (n, host) in [(1, &client), (2, &server)] {
            for which in ["all", "default"] {
                host.sysctl(&format!("net/ipv6/conf/{which}/disable_ipv6"), "0").unwrap();
            }
            host.sysctl("net/ipv4/icmp_ratemask", "0").unwrap();
            let port = Port::new(host, "eth0")
                .address(&format!("10.0.{n}.2/24"))
                .address(&format!("2001:db8:{n}::2/64 nodad"))
                .route(&format!("default via 10.0.{n}.1"))
                .route(&format!("default via 2001:db8:{n}::1"));
            let mac = format!("02:00:00:00:0{n}:01");
            lab.link(port, Port::new(&router, &format!("lan{n}")).mac(&mac)).unwrap();
        }
        let rules = lab.directory().join("rules");
        // No server sees the client's address, by TCP; one service is closed, and one rejects.
        let text = "add-stateful in lan1 ip-proto tcp map ip-saddr 10.0.2.1 shuffle tcp-sport
            tcp-dport 9 drop\n            tcp-dport 10 reject\n            udp-dport 10 reject\n";
        std::fs::write(&rules, text).unwrap();
        let words = ["middlebox", "--in", "lan1", "--out", "lan2", "--mtu", &MTU.to_string()];
        let near = ["--in-address", "10.0.1.1/24", "--in-address", "2001:db8:1::1/64"];
        let far = ["--out-address", "10.0.2.1/24", "--out-address", "2001:db8:2::1/64"];
        let command = router.command(program()).args(words).args(near).args(far).args(method);
        let command = match form {
            Form::Plain => command.arg(&rules),
            Form::Built => {
                let shown = command.arg("--show").arg(&rules).check().unwrap().stdout;
                let path = format!("\"{}\"", rules.display());
                assert_eq!(shown.matches(&path).count(), 1, "{shown}");
                // The rules are read when the program starts, and must be right when it is built.
                let rules_then = builds::folder().join("system-middlebox.rules");
                std::fs::write(&rules_then, text).unwrap();
                let settings = [&*format!("rules={}", rules_then.display())];
                // Where it is built there are no such interfaces.
                let text = "AddressInfo(lan1 2:0:0:0:1:1, lan2 2:0:0:0:2:1);\n".to_owned()
                    + &shown.replace(&path, "$rules");
                let program = builds::build("system-middlebox", &text, &settings);
                router.command(program).arg(format!("rules={}", rules.display()))
            }
        };
        let mut process = command.spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        Networks { process, client, server, lab }
    }

    fn ping(&self, from: &Namespace, args: &[&str], to: &str) -> String {
        let command = from.command("ping").args(["-n", "-i", "0.2", "-W", "2"]);
        command.args(args).arg(to).output().unwrap().printed()
    }
}

impl Drop for Networks {
    /// A failing check shows the router's output.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("== the router said ==\n{}{}", self.process.stdout(), self.process.stderr());
        }
    }
}

/// Connects to a service over TCP and UDP, IPv4 and IPv6: prints the error that comes.
const KNOCKER: &str = r#"
import socket
for family, address in [(socket.AF_INET, "10.0.2.2"), (socket.AF_INET6, "2001:db8:2::2")]:
    for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM]:
        it = socket.socket(family, kind)
        it.settimeout(20)
        try:
            it.connect((address, 10))
            it.send(b"hello")
            it.recv(9)
        except OSError as error:
            print(type(error).__name__)
"#;

/// Rejected packets are answered, also those that would begin a translated connection.
fn rejected_hosts_hear_it(it: &Networks) {
    let output = it.client.command("python3").args(["-u", "-c", KNOCKER]).timeout(LATER);
    assert_eq!(output.check().unwrap().stdout, "ConnectionRefusedError\n".repeat(4));
}

fn pings_and_errors_come_back(it: &Networks) {
    for (from, to) in [
        (&it.client, "10.0.2.2"),
        (&it.client, "2001:db8:2::2"),
        (&it.server, "10.0.1.2"),
        (&it.server, "2001:db8:1::2"),
    ] {
        let output = from.ping(&["-i", "0.2"], 3, to).unwrap().stdout;
        assert_eq!(output.matches("ttl=63").count(), answered_pings(&output).len(), "{output}");
    }
    // The router itself, on either side.
    for to in ["10.0.1.1", "10.0.2.1", "2001:db8:1::1", "2001:db8:2::1"] {
        let output = it.ping(&it.client, &["-c", "1"], to);
        assert!(output.contains("1 received"), "{output}");
    }
    for (to, answer) in [("10.0.2.2", "(mtu = 1400)"), ("2001:db8:2::2", "mtu=1400")] {
        let output = it.ping(&it.client, &["-c", "1", "-M", "do", "-s", "1400"], to);
        assert!(output.contains(answer), "{output}");
    }
    for (to, router, answer) in [
        ("10.0.9.9", "From 10.0.1.1", "Net Unreachable"),
        ("2001:db8:9::9", "From 2001:db8:1::1", "No route"),
    ] {
        let output = it.ping(&it.client, &["-c", "1"], to);
        assert!(output.contains(router) && output.contains(answer), "{output}");
    }
}

fn traces_show_the_router(it: &Networks) {
    for (how, network) in [("-U", "4"), ("-I", "4"), ("-T", "4"), ("-U", "6"), ("-I", "6")] {
        let (near, server) = match network {
            "4" => ("10.0.1.1", "10.0.2.2"),
            _ => ("2001:db8:1::1", "2001:db8:2::2"),
        };
        let hops = it.client.traceroute(&[how, &format!("-{network}")], server, 4).unwrap();
        assert_eq!(hops, [near, server], "{how} -{network}");
    }
}

/// Longer packets than the router forwards are sent shorter, although rules have changed what
/// its errors quote.
fn transfers_arrive_whole(it: &Networks) {
    let file = it.lab.random_file("file", 4).unwrap();
    for (address, url) in [("10.0.2.2", "10.0.2.2"), ("2001:db8:2::2", "[2001:db8:2::2]")] {
        let server = it.server.serve(address, 8000).unwrap();
        let fetched = it.client.fetch(&format!("http://{url}:8000/file"), LATER).unwrap();
        assert_eq!(fetched.sha256, file.sha256);
        let peer = if address.contains(':') { "2001:db8:1::2" } else { "10.0.2.1" };
        assert!(server.stderr().contains(&format!("{peer} - - ")), "{}", server.stderr());
    }
    let closed = ["--silent", "--noproxy", "*", "--max-time", "2", "http://10.0.2.2:9/"];
    assert!(!it.client.command("curl").args(closed).output().unwrap().success());
}

fn all_of_it(mut it: Networks) {
    let captures = [&it.client, &it.server].map(|host| host.capture_arriving("eth0", "").unwrap());
    pings_and_errors_come_back(&it);
    rejected_hosts_hear_it(&it);
    traces_show_the_router(&it);
    for capture in captures {
        let seen = capture.finish().unwrap();
        assert!(Capture::wrong_checksums(&seen).is_empty(), "{seen}");
    }
    transfers_arrive_whole(&it);
    it.process.interrupt();
    assert_eq!(it.process.wait(SOON).unwrap().code(), Some(0), "{}", it.process.stderr());
}

#[test]
fn networks_are_routed_by_rules() {
    all_of_it(Networks::new("route", Form::Plain, &[]));
}

#[test]
fn networks_are_routed_by_a_built_program() {
    all_of_it(Networks::new("routeb", Form::Built, &[]));
}

#[test]
fn networks_are_routed_by_packet_sockets() {
    all_of_it(Networks::new("routep", Form::Plain, &["--method", "AF_PACKET"]));
}
