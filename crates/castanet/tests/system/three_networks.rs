//! `castanet middlebox` between three networks: as a router, and as a bridge, with a firewall of states, chains,
//! limits and a log.

use castanet_lab::{Lab, Namespace, Port, Process, Router, require};

use crate::testbed::{LATER, SOON, program};

const NAMES: [&str; 3] = ["lan", "dmz", "wan"];

/// The rules: the inner network begins connections, the outer one reaches one server.
const RULES: &str = include_str!("../../../../conf/firewall.mmb");

/// Three hosts, each on a network of its own, and a middlebox between them.
struct ThreeNetworks {
    process: Process,
    hosts: [Namespace; 3],
    lab: Lab,
}

impl ThreeNetworks {
    /// As a router, each network has its own prefix; as a bridge all hosts have the same.
    fn new(name: &str, is_router: bool) -> ThreeNetworks {
        require(&["curl", "ip", "ping", "python3", "tcpdump"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let middle = lab.namespace("m").unwrap();
        let hosts = NAMES.map(|name| {
            let host = lab.namespace(name).unwrap();
            let n = NAMES.iter().position(|it| *it == name).unwrap() + 1;
            let port = match is_router {
                true => Port::new(&host, "eth0")
                    .address(&format!("10.0.{n}.2/24"))
                    .route(&format!("default via 10.0.{n}.1")),
                false => Port::new(&host, "eth0").address(&format!("10.0.0.{n}/24")),
            };
            lab.link(port, Port::new(&middle, name)).unwrap();
            host
        });
        let rules = lab.directory().join("rules");
        let is_of_bridge = |line: &&str| is_router || !line.contains(" map ");
        let text: Vec<&str> = RULES.lines().filter(is_of_bridge).collect();
        std::fs::write(&rules, text.join("\n")).unwrap();
        let mut words = vec!["middlebox".to_owned(), "--control".into(), "commands".into()];
        words.extend(["--log-file".into(), "log.pcapng".into()]);
        for (n, name) in (1..).zip(NAMES) {
            let address = if is_router { format!("=10.0.{n}.1/24") } else { String::new() };
            words.extend(["--interface".to_owned(), format!("{name}{address}")]);
        }
        let command = middle.command(program()).current_dir(lab.directory()).args(&words);
        let mut process = command.arg(&rules).spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        ThreeNetworks { process, hosts, lab }
    }

    /// Serves the host's name over HTTP on three ports.
    fn serve(&self, n: usize) -> Process {
        let host = self.hosts[n].command("python3").args(["-u", "-c", SERVER, NAMES[n]]);
        let mut server = host.spawn().unwrap();
        server.wait_for("ready", SOON).unwrap();
        server
    }

    /// The page that a host fetches from an address and port; the exit code of curl, if it fails.
    fn fetch(&self, n: usize, from: &str) -> Result<String, String> {
        let curl = self.hosts[n].command("curl").args(["-s", "--noproxy", "*", "--max-time", "3"]);
        let output = curl.arg(format!("http://{from}/")).output().unwrap();
        if output.success() { Ok(output.stdout) } else { Err(output.status.to_string()) }
    }

    fn command(&self, words: &[&str]) -> String {
        let command = self.hosts[0].command(program()).current_dir(self.lab.directory());
        let command = command.args(["middlebox", "--connect", "commands"]).args(words);
        command.check().unwrap().stdout
    }
}

impl Drop for ThreeNetworks {
    /// A failing check shows the middlebox's output.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("== the middlebox ==\n{}{}", self.process.stdout(), self.process.stderr());
            eprintln!("{}", self.command(&["list"]));
        }
    }
}

/// Answers each request with the name and the address of the client.
const SERVER: &str = r#"
import http.server, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (sys.argv[1] + " to " + self.client_address[0]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
all = [http.server.ThreadingHTTPServer(("", port), Handler) for port in [22, 80, 81]]
for it in all: threading.Thread(target=it.serve_forever, daemon=True).start()
print("ready")
threading.Event().wait()
"#;

/// Opens connections to a port, one after the other, as long as lines come, and prints whether each opened; a
/// line `close` closes the first.
const OPENER: &str = r#"
import socket, sys
held = []
for line in sys.stdin:
    if line.strip() == "close":
        it = held.pop(0)
        it.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        it.close()
        print("closed")
        continue
    try:
        held.append(socket.create_connection((sys.argv[1], 81), timeout=2))
        print("opened", line.strip())
    except OSError:
        print("no room", line.strip())
"#;

/// Each network may do what the firewall lets it; of hosts with these addresses.
fn firewall_holds(it: &ThreeNetworks, [lan, dmz, wan]: [&str; 3], lan_outside: &str) {
    let _servers = [0, 1, 2].map(|n| it.serve(n));
    assert_eq!(it.fetch(0, dmz), Ok(format!("dmz to {lan}")));
    assert_eq!(it.fetch(0, wan), Ok(format!("wan to {lan_outside}")));
    assert_eq!(it.fetch(2, dmz), Ok(format!("dmz to {wan}")));
    // Neither reaches the inner network; the server reaches nothing.
    for (n, to) in [(2, lan), (1, lan), (1, wan), (2, &format!("{dmz}:82"))] {
        assert!(it.fetch(n, to).is_err_and(|status| status.ends_with(": 28")), "{n} to {to}");
    }
    // A rejected connection is refused at once, and logged.
    assert!(it.fetch(2, &format!("{dmz}:22")).is_err_and(|status| status.ends_with(": 7")));
    let line = format!("{wan}:");
    let logged = |text: &str| text.contains("rules :: Middlebox: ssh id") && text.contains(&line);
    crate::testbed::until("no line of the log", || logged(&it.process.stderr()));
    let log = it.lab.directory().join("log.pcapng");
    let read = it.hosts[0].command("tcpdump").args(["-n", "-r"]).arg(&log).check().unwrap();
    assert!(read.stdout.contains(&format!("> {dmz}.22: Flags [S]")), "{}", read.stdout);
    // Two connections of a source at a time.
    let opener = it.hosts[2].command("python3").args(["-u", "-c", OPENER, dmz]).pipe_stdin();
    let mut opener = opener.spawn().unwrap();
    for (line, wanted) in [
        ("one", "opened one"),
        ("two", "opened two"),
        ("three", "no room three"),
        ("close", "closed"),
        ("four", "opened four"),
        ("five", "no room five"),
    ] {
        opener.write_line(line).unwrap();
        opener.wait_for(wanted, LATER).unwrap();
    }
}

#[test]
fn a_router_of_three_networks_is_a_firewall() {
    let it = ThreeNetworks::new("three-router", true);
    firewall_holds(&it, ["10.0.1.2", "10.0.2.2", "10.0.3.2"], "10.0.3.1");
    // Three pings a minute from outside, to the router itself; as many as one likes from inside.
    let ping = |n: usize, to: &str| {
        let ping = it.hosts[n].command("ping").args(["-n", "-c", "9", "-i", "0.1", "-W", "1"]);
        ping.arg(to).timeout(LATER).output().unwrap().printed()
    };
    assert!(ping(2, "10.0.3.1").contains(" 3 received"));
    assert!(ping(0, "10.0.1.1").contains(" 9 received"));
    assert!(ping(0, "10.0.3.2").contains(" 9 received"));
    // An ICMP error of the router about a packet from inside comes back.
    let low = it.hosts[0].command("ping").args(["-n", "-c", "1", "-t", "1", "-W", "2", "10.0.3.2"]);
    let said = low.output().unwrap().printed();
    assert!(said.contains("From 10.0.1.1") || said.contains("From 10.0.3.1"), "{said}");
    let test =
        it.command(&["test", "in", "wan", "out", "router", "9.9.9.9:5 > 10.0.3.1:80 tcp syn"]);
    assert!(test.contains("dropped by rule"), "{test}");
}

#[test]
fn a_bridge_of_three_interfaces_is_a_firewall() {
    let it = ThreeNetworks::new("three-bridge", false);
    firewall_holds(&it, ["10.0.0.1", "10.0.0.2", "10.0.0.3"], "10.0.0.1");
    assert_eq!(it.command(&["disable", "wan", "dmz"]), "disabled wan dmz\n");
    // A packet from outside is not filtered any more, nor the answer, which belongs to no connection.
    let _server = it.serve(1);
    assert!(it.fetch(2, "10.0.0.2:22").is_ok());
}
