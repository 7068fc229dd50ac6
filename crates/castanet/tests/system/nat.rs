//! Clients behind `conf/nat.click` reach the world, which sees one address.
//!
//! ```text
//! client 10.0.1.2 ── 10.0.1.1 NAT 10.0.2.1 ── 10.0.2.2 Linux 10.0.3.1 ── 10.0.3.2 server
//! ```
//!
//! No host outside has a route to the client's network: a packet that is not rewritten gets no
//! answer.

use castanet_lab::{Capture, Lab, Namespace, Port, Process, Router, answered_pings, require};

use crate::testbed::{Form, LATER, SOON, conf};

const CLIENT: &str = "10.0.1.2";
const SERVER: &str = "10.0.3.2";
/// The system's own, which has the packages' modules, whatever comes first in the path.
const PYTHON: &str = "/usr/bin/python3";
/// The path's narrowest link lies behind the router.
const SMALL: u32 = 1400;

/// The network with a NAT gateway, whose control socket lies in the lab's directory.
pub(crate) struct NatNetwork {
    pub(crate) nat: Process,
    pub(crate) client: Namespace,
    pub(crate) beyond: Namespace,
    pub(crate) server: Namespace,
    pub(crate) lab: Lab,
}

impl NatNetwork {
    /// With devices opened by this method.
    fn new(name: &str, method: &str, form: Form) -> NatNetwork {
        NatNetwork::running(name, form, &["--threads", "2"], &text(method, &[]))
    }

    /// By `castanet`, with words of the configuration replaced.
    pub(crate) fn with_words(name: &str, other: &[(&str, &str)]) -> NatNetwork {
        NatNetwork::running(name, Form::Plain, &["--threads", "2"], &text("", other))
    }

    /// With this configuration, by a program with these options.
    pub(crate) fn running(name: &str, form: Form, options: &[&str], text: &str) -> NatNetwork {
        let tools = ["curl", "ethtool", "ip", "iperf3", "ping", "python3", "sha256sum"];
        require(&tools).and_then(|()| require(&["tcpdump", "traceroute"])).unwrap();
        let lab = Lab::new(name).unwrap();
        let [client, gateway, beyond, server] =
            ["client", "nat", "beyond", "server"].map(|it| lab.namespace(it).unwrap());
        let inner = Port::new(&client, "eth0")
            .address("10.0.1.2/24")
            .address("10.0.1.3/24")
            .route("default via 10.0.1.1");
        lab.link(inner, Port::new(&gateway, "lan1").mac("02:00:00:00:01:01")).unwrap();
        let outer = Port::new(&beyond, "eth0").address("10.0.2.2/24");
        lab.link(outer, Port::new(&gateway, "lan2").mac("02:00:00:00:02:01")).unwrap();
        let near = Port::new(&beyond, "eth1").address("10.0.3.1/24").mtu(SMALL);
        let far = Port::new(&server, "eth0").address("10.0.3.2/24").route("default via 10.0.3.1");
        lab.link(near, far.mtu(SMALL)).unwrap();
        beyond.sysctl("net/ipv4/ip_forward", "1").unwrap();
        // Each lost packet of a traceroute would look like a fault of the gateway's.
        for namespace in [&beyond, &server] {
            namespace.sysctl("net/ipv4/icmp_ratemask", "0").unwrap();
        }
        let command = form.run(&lab, &gateway, "nat", text).args(options);
        let socket = format!("socket={}", lab.directory().join("control").display());
        let mut nat = command.args(["dev0=lan1", "dev1=lan2"]).arg(socket).spawn().unwrap();
        nat.wait_for(Router::READY, SOON).unwrap();
        NatNetwork { nat, client, beyond, server, lab }
    }

    fn ping(&self, args: &[&str], to: &str) -> String {
        let command = self.client.command("ping").args(["-n", "-i", "0.2", "-W", "2"]);
        command.args(args).arg(to).output().unwrap().printed()
    }

    /// Runs Python on the server until it says that it is ready.
    fn serve(&self, script: &str, args: &[&str]) -> Process {
        let command = self.server.command(PYTHON).args(["-u", "-c", script]);
        let mut process = command.args(args).current_dir(self.lab.directory()).spawn().unwrap();
        process.wait_for("ready", SOON).unwrap();
        process
    }
}

impl Drop for NatNetwork {
    /// A failing check shows the gateway's output.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("== the gateway said ==\n{}{}", self.nat.stdout(), self.nat.stderr());
        }
    }
}

/// The gateway's configuration, with words replaced and a control socket.
pub(crate) fn text(method: &str, other: &[(&str, &str)]) -> String {
    let mut text = std::fs::read_to_string(conf("nat.click")).unwrap();
    for device in ["$dev0", "$dev1"] {
        text = text.replace(&format!("Device({device})"), &format!("Device({device}{method})"));
    }
    for (words, others) in other {
        assert!(text.contains(words), "{words}");
        text = text.replace(words, others);
    }
    text + "\nControlSocket(UNIX, $socket);\n"
}

/// Pings of two clients at once that have the same identifier, large ones too, and the gateway's
/// own answers.
fn pings_find_their_way(world: &NatNetwork) {
    for from in [CLIENT, "10.0.1.3"] {
        let options = ["-i", "0.2", "-e", "77", "-I", from];
        let output = world.client.ping(&options, 3, SERVER).unwrap().stdout;
        // Two routers, and the gateway is one.
        assert_eq!(output.matches("ttl=62").count(), answered_pings(&output).len(), "{output}");
    }
    let output = world.ping(&["-c", "1", "-s", "4000"], SERVER);
    assert!(output.contains("4008 bytes from"), "{output}");
    for gateway in ["10.0.1.1", "10.0.2.1"] {
        let output = world.ping(&["-c", "1"], gateway);
        assert!(output.contains("1 received"), "{output}");
    }
    // No host may ping the clients, but every host may ping the gateway.
    let ping = |to: &str| {
        let command = world.beyond.command("ping").args(["-n", "-c", "1", "-W", "1"]);
        command.arg(to).output().unwrap().printed()
    };
    assert!(ping("10.0.2.1").contains("1 received"));
    world.beyond.ip("route add 10.0.1.0/24 via 10.0.2.1").unwrap();
    let output = ping(CLIENT);
    world.beyond.ip("route del 10.0.1.0/24").unwrap();
    assert!(output.contains("0 received"), "{output}");
}

/// Errors about rewritten packets come back as errors about what was sent.
fn errors_find_their_way(world: &NatNetwork) {
    let mut capture = world.client.capture_arriving("eth0", "icmp").unwrap();
    for how in ["-U", "-I", "-T"] {
        let hops = world.client.traceroute(&[how], SERVER, 5).unwrap();
        assert_eq!(hops, ["10.0.1.1", "10.0.2.2", SERVER], "{how}");
    }
    // Too long for the link behind the next router, which says so.
    let output = world.ping(&["-c", "1", "-M", "do", "-s", "1400"], SERVER);
    assert!(output.contains("From 10.0.2.2") && output.contains("mtu = 1400"), "{output}");
    let output = world.ping(&["-c", "1"], "10.0.9.9");
    assert!(output.contains("From 10.0.2.2") && output.contains("Unreachable"), "{output}");
    capture.wait_for("unreachable", SOON).unwrap();
    let seen = capture.finish().unwrap();
    assert!(Capture::wrong_checksums(&seen).is_empty(), "{seen}");
}

/// Number of downloads at once.
const DOWNLOADS: usize = 1000;

/// Serves files over HTTP, but answers no client until all have asked.
const PATIENT_SERVER: &str = r#"
import asyncio, hashlib, os, resource, sys
all_of_them = int(sys.argv[1])
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
with open("sums", "w") as sums:
    for n in range(all_of_them):
        data = os.urandom(20000 + n * 37)
        with open(f"file{n}", "wb") as file: file.write(data)
        sums.write(f"{hashlib.sha256(data).hexdigest()}  got{n}\n")
asked, everybody = set(), None
async def serve(reader, writer):
    global asked
    path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode().lstrip("/")
    asked.add(writer.get_extra_info("peername"))
    if len(asked) == all_of_them:
        print("peers", *sorted({peer[0] for peer in asked}))
        everybody.set()
    await everybody.wait()
    with open(path, "rb") as file: data = file.read()
    writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
    await writer.drain()
    writer.close()
async def main():
    global everybody
    everybody = asyncio.Event()
    server = await asyncio.start_server(serve, "10.0.3.2", 8000, backlog=4096)
    print("ready")
    await server.serve_forever()
asyncio.run(main())
"#;

fn a_thousand_downloads_at_once_arrive_whole(world: &NatNetwork) {
    world.server.sysctl("net/core/somaxconn", "4096").unwrap();
    let mut server = world.serve(PATIENT_SERVER, &[&DOWNLOADS.to_string()]);
    // One curl does 300 at once.
    const EACH: usize = 250;
    let mut clients: Vec<Process> = (0..DOWNLOADS / EACH)
        .map(|part| {
            let wish = |n| format!("url = \"http://{SERVER}:8000/file{n}\"\noutput = \"got{n}\"\n");
            let wishes: String = (part * EACH..(part + 1) * EACH).map(wish).collect();
            let path = world.lab.directory().join(format!("wishes{part}"));
            std::fs::write(&path, wishes).unwrap();
            let curl = world.client.command("curl").current_dir(world.lab.directory());
            curl.args(["--silent", "--show-error", "--fail", "--noproxy", "*", "--http1.0"])
                .args(["--parallel", "--parallel-immediate", "--parallel-max", "300", "--config"])
                .arg(&path)
                .spawn()
                .unwrap()
        })
        .collect();
    server.wait_for("peers", LATER).unwrap();
    for client in &mut clients {
        let status = client.wait(LATER).unwrap();
        assert!(status.success(), "{}", client.stderr());
    }
    // The server saw one address, and each file came to its client.
    assert!(server.stdout().contains("peers 10.0.2.1\n"), "{}", server.stdout());
    let sums = world.client.command("sha256sum").args(["--check", "--quiet", "sums"]);
    sums.current_dir(world.lab.directory()).timeout(LATER).check().unwrap();
}

fn iperf3_runs_all_ways(world: &NatNetwork) {
    for (way, megabits) in [("--forceflush", 10.0), ("--reverse", 10.0), ("--udp", 1.0)] {
        let rate = world.client.iperf3(&world.server, SERVER, &[way]).unwrap();
        assert!(rate >= megabits, "{way}: {rate} Mbit/s");
    }
}

/// FTP whose server sends data from port 20, as RFC 959 says and the library does not by itself.
const FTP_SERVER: &str = r#"
import socket
from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import ActiveDTP, FTPHandler
from pyftpdlib.servers import FTPServer
class FromPort20(ActiveDTP):
    def connect_af_unspecified(self, addr, source_addr=None):
        self.create_socket(socket.AF_INET, socket.SOCK_STREAM)
        self.set_reuse_addr()
        self.bind((source_addr[0], 20))
        self.connect(addr)
        return socket.AF_INET
class Handler(FTPHandler):
    active_dtp = FromPort20
    authorizer = DummyAuthorizer()
Handler.authorizer.add_anonymous(".", perm="elradfmw")
server = FTPServer(("10.0.3.2", 21), Handler)
print("ready")
server.serve_forever()
"#;

/// By `PORT` and `EPRT`, several files in one session, up and down, and passive for comparison.
fn ftp_brings_its_data(world: &NatNetwork) {
    let library = world.server.command(PYTHON).args(["-c", "import pyftpdlib"]);
    library.check().unwrap_or_else(|e| panic!("{e}\ninstall the package python3-pyftpdlib"));
    let server = world.serve(FTP_SERVER, &[]);
    let files = ["one", "two", "three"].map(|name| world.lab.random_file(name, 2).unwrap());
    let url = format!("ftp://{SERVER}/{{one,two,three}}");
    for how in
        [&["--ftp-port", "-", "--disable-eprt"][..], &["--ftp-port", "-"], &["--disable-epsv"]]
    {
        let curl = world.client.command("curl").current_dir(world.lab.directory());
        let curl = curl.args(["--silent", "--show-error", "--verbose", "--max-time", "50"]);
        let curl = curl.args(how).arg(&url).args(["--output", "ftp-#1"]).timeout(LATER);
        let output = curl.check().unwrap_or_else(|e| panic!("{e}\n{}", server.stderr()));
        let asked = if how.len() == 3 { "> PORT 10,0,1,2," } else { "> EPRT |1|10.0.1.2|" };
        if how.len() > 1 {
            assert_eq!(output.stderr.matches(asked).count(), files.len(), "{}", output.stderr);
        }
        for file in &files {
            let name = file.path.file_name().unwrap().to_str().unwrap();
            let sums = world.client.command("sha256sum").arg(format!("ftp-{name}"));
            let output = sums.current_dir(world.lab.directory()).check().unwrap().stdout;
            assert!(output.starts_with(&file.sha256), "{name}: {output}");
        }
    }
    let curl = world.client.command("curl").current_dir(world.lab.directory());
    let curl =
        curl.args(["--silent", "--show-error", "--ftp-port", "-", "--disable-eprt", "-T", "one"]);
    curl.arg(format!("ftp://{SERVER}/sent")).timeout(LATER).check().unwrap();
    let sums = world.server.command("sha256sum").arg("sent").current_dir(world.lab.directory());
    assert!(sums.check().unwrap().stdout.starts_with(&files[0].sha256));
}

fn all_of_it(mut world: NatNetwork) {
    pings_find_their_way(&world);
    errors_find_their_way(&world);
    a_thousand_downloads_at_once_arrive_whole(&world);
    iperf3_runs_all_ways(&world);
    ftp_brings_its_data(&world);
    world.nat.interrupt();
    assert_eq!(world.nat.wait(SOON).unwrap().code(), Some(0), "{}", world.nat.stderr());
}

#[test]
fn clients_share_an_address() {
    all_of_it(NatNetwork::new("nat", "", Form::Plain));
}

#[test]
fn clients_share_an_address_through_a_built_program() {
    all_of_it(NatNetwork::new("natb", "", Form::Built));
}

#[test]
fn clients_share_an_address_by_packet_sockets() {
    all_of_it(NatNetwork::new("natp", ", METHOD AF_PACKET", Form::Plain));
}
