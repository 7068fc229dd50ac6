//! Tenants that move from one instance to another with their state, while clients use them.
//!
//! ```text
//!              ┌── lan  box a  wan ──┐
//! client ── inside      │ mgmt       outside ── server
//!              └── lan  box b  wan ──┘
//! ```

use castanet_lab::{Command, Lab, Namespace, Output, Port, Process, Router, require};
use std::path::PathBuf;

use crate::tenants::HOST;
use crate::testbed::{LATER, SOON, conf, finish_pings, program, until};

const ENDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/system/tenants_move_ends.py");

/// Passes a connection on, and cuts it.
const CUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/system/tenants_move_cut.py");

/// Sends random bytes to the second box's address for tenants, which must answer nothing. The box may have reset the
/// connection before the client closes its side: `shutdown` then says ENOTCONN.
const GARBAGE: &str = "
import errno, os, socket, sys
s = socket.create_connection(('172.16.0.2', 4790))
try:
    s.sendall(os.urandom(int(sys.argv[1])))
    s.shutdown(socket.SHUT_WR)
    assert s.recv(100) == b''
except OSError as error:
    assert error.errno in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN), error
";

/// Sockets of the client, and ports of the server, each of which has a mapping with each of the others.
const SOCKETS: usize = 100;
const PORTS: usize = 100;
const MAPPINGS: usize = SOCKETS * PORTS;
const DOWNLOADS: usize = 100;

/// Two boxes with tenants between a client and a server, which see one network each.
struct MoveNetwork {
    lab: Lab,
    client: Namespace,
    server: Namespace,
    boxes: [Namespace; 2],
    processes: Vec<Process>,
    _switches: [Namespace; 2],
}

/// The address at which a box takes tenants in.
fn listen(number: usize) -> String {
    format!("172.16.0.{}:4790", number + 1)
}

/// The system file of a box, which begins with this text: the NAT `red`, which runs in the first box, and a
/// neighbour.
fn system(number: usize, begin: &str) -> String {
    let standby = number > 0;
    format!(
        "{begin}[migration]\nlisten = \"{}\"\nkey = \"move.key\"\n[device.lan]\n[device.wan]\n\
         [tenant.red]\nfile = \"{}\"\nstandby = {standby}\ncpu = {{ guarantee = \"50%\" }}\n\
         [tenant.red.device.eth0]\ndevice = \"lan\"\n\
         [tenant.red.device.eth1]\non = \"wan\"\naddress = \"10.0.2.1\"\n\
         [tenant.blue]\nfile = \"{HOST}\"\n\
         variables = {{ ip = \"10.0.2.{}\", mac = \"02:00:00:00:09:0{number}\" }}\n\
         [tenant.blue.device.eth1]\non = \"wan\"\naddress = \"10.0.2.{}\"\n",
        listen(number),
        conf("nat.click").display(),
        90 + number,
        90 + number,
    )
}

impl MoveNetwork {
    fn new(name: &str) -> MoveNetwork {
        MoveNetwork::with_systems(name, "")
    }

    /// Boxes whose system files begin with this text.
    fn with_systems(name: &str, begin: &str) -> MoveNetwork {
        require(&["curl", "ip", "ping", "python3", "sha256sum"]).unwrap();
        let lab = Lab::new(name).unwrap();
        let [client, server, a, b] =
            ["client", "server", "a", "b"].map(|it| lab.namespace(it).unwrap());
        let port = |place: &Namespace, device: &str| Port::new(place, device);
        let inner = port(&client, "eth0").address("10.0.1.2/24").route("default via 10.0.1.1");
        let outer = port(&server, "eth0").address("10.0.2.2/24");
        let inside = vec![inner, port(&a, "lan"), port(&b, "lan")];
        let outside = vec![outer, port(&a, "wan"), port(&b, "wan")];
        let switches =
            [lab.switch("inside", inside).unwrap(), lab.switch("outside", outside).unwrap()];
        let near = port(&a, "mgmt").address("172.16.0.1/24");
        lab.link(near, port(&b, "mgmt").address("172.16.0.2/24")).unwrap();
        let (boxes, processes, _switches) = ([a, b], Vec::new(), switches);
        let mut it = MoveNetwork { lab, client, server, boxes, processes, _switches };
        let key = it.boxes[0].command(program()).args(["tenants", "key"]);
        key.arg(it.lab.directory().join("move.key")).check().unwrap();
        for number in 0..2 {
            std::fs::create_dir(it.lab.directory().join(format!("store{number}"))).unwrap();
            std::fs::create_dir(it.runtime(number)).unwrap();
            it.processes.push(it.start(number, begin));
        }
        it
    }

    fn system_path(&self, number: usize) -> PathBuf {
        self.lab.directory().join(format!("system{number}.toml"))
    }

    /// Runs the system of a box.
    fn start(&self, number: usize, begin: &str) -> Process {
        let begin = begin.replace("NUMBER", &number.to_string());
        std::fs::write(self.system_path(number), system(number, &begin)).unwrap();
        let command = self.boxes[number].command(program()).args(["tenants", "run"]);
        let command = command.arg(self.system_path(number)).args(["--threads", "2"]);
        // A confined instance takes tenants in and hands them over like any other.
        let confined: &[&str] = if number == 1 { &["--confine"] } else { &[] };
        let command = command.args(confined).env("RUNTIME_DIRECTORY", self.runtime(number));
        let mut process = command.spawn().unwrap();
        process.wait_for(Router::READY, SOON).unwrap();
        process
    }

    /// The folder of a box's control socket.
    fn runtime(&self, number: usize) -> PathBuf {
        self.lab.directory().join(format!("run{number}"))
    }

    fn control(&self, number: usize) -> PathBuf {
        self.runtime(number).join(format!("system{number}.sock"))
    }

    /// A command about the tenants of a box.
    fn tenants(&self, number: usize, words: &[&str]) -> Command {
        let command = self.boxes[number].command(program()).arg("tenants").args(words);
        command.arg("--instance").arg(self.control(number)).timeout(LATER)
    }

    fn move_red(&self, from: usize, to: usize) -> Output {
        self.tenants(from, &["move", "red", &listen(to)]).output().unwrap()
    }

    /// Moves `red` over a connection that is cut after so many messages of one side.
    fn move_red_cut(&self, from: usize, to: usize, side: &str, messages: u32) -> Output {
        let here = format!("172.16.0.{}:4791", from + 1);
        let cut = self.boxes[from].command("/usr/bin/python3").arg(CUT);
        let cut = cut.args([&here, &listen(to), side, &messages.to_string()]);
        let mut cut = cut.spawn().unwrap();
        cut.wait_for("ready", SOON).unwrap();
        let moved = self.tenants(from, &["move", "red", &here]).output().unwrap();
        cut.wait(LATER).unwrap();
        moved
    }

    fn ctl(&self, number: usize, words: &[&str]) -> Output {
        let command = self.boxes[number].command(program()).arg("ctl").arg(self.control(number));
        command.args(words).output().unwrap()
    }

    /// A number that a handler of a box reads.
    fn read(&self, number: usize, handler: &str) -> u64 {
        let output = self.ctl(number, &["read", handler]);
        output.stdout.trim().parse().unwrap_or_else(|_| panic!("{handler}: {}", output.printed()))
    }

    fn configuration(&self, number: usize) -> String {
        let output = self.tenants(number, &["list", "--json"]).check().unwrap().stdout;
        let reports: serde_json::Value = serde_json::from_str(&output).unwrap();
        let red = reports.as_array().unwrap().iter().find(|it| it["tenant"] == "red").unwrap();
        red["configuration"].as_str().unwrap().to_owned()
    }

    /// One of the two ends.
    fn end(&self, place: &Namespace, words: &[&str]) -> Process {
        let command = place.command("/usr/bin/python3").args(["-u", ENDS]).args(words);
        command.current_dir(self.lab.directory()).pipe_stdin().spawn().unwrap()
    }

    fn ping_red(&self) {
        self.client.ping(&["-i", "0.2"], 3, "10.0.2.2").unwrap();
    }
}

impl Drop for MoveNetwork {
    /// A failing check shows the output of the boxes.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (number, it) in self.processes.iter().enumerate() {
                eprintln!("== box {number} said ==\n{}{}", it.stdout(), it.stderr());
            }
        }
    }
}

/// Milliseconds of the stop that a move has printed.
fn stop(said: &str) -> f64 {
    let rest = said.split("it stood still for ").nth(1);
    let number = rest.and_then(|it| it.split(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("{said}"))
}

#[test]
fn a_nat_moves_with_its_mappings_and_open_downloads() {
    let it = MoveNetwork::new("tenants-move");
    let [downloads, ports] = [DOWNLOADS, PORTS].map(|it| it.to_string());
    let mut server = it.end(&it.server, &["server", "10.0.2.2", &downloads, &ports]);
    server.wait_for("ready", SOON).unwrap();
    let mut client = it.end(&it.client, &["client", "10.0.2.2", &SOCKETS.to_string(), &ports]);
    client.wait_for("mapped", LATER).unwrap();
    let wish = |n| format!("url = \"http://10.0.2.2:8000/file{n}\"\noutput = \"got{n}\"\n");
    let wishes: String = (0..DOWNLOADS).map(wish).collect();
    std::fs::write(it.lab.directory().join("wishes"), wishes).unwrap();
    let curl = it.client.command("curl").current_dir(it.lab.directory());
    let curl = curl.args(["--silent", "--show-error", "--fail", "--noproxy", "*", "--http1.0"]);
    let curl = curl.args(["--parallel", "--parallel-immediate", "--parallel-max", "100"]);
    let curl = curl.args(["--config", "wishes"]).timeout(LATER).spawn().unwrap();
    server.wait_for("open", LATER).unwrap();
    assert!(it.read(0, "red/flows.table_size") >= (MAPPINGS + DOWNLOADS) as u64);
    let mappings = it.ctl(0, &["read", "red/flows.table"]).stdout.lines().count();
    let neighbour = it.server.command("ping").args(["-n", "-i", "0.01", "10.0.2.90"]);
    let mut neighbour = neighbour.timeout(LATER).spawn().unwrap();
    let moved = it.move_red(0, 1);
    println!("{}", moved.printed());
    assert!(moved.success(), "{}", moved.printed());
    assert!(stop(&moved.stdout) > 0.0);
    assert_eq!((it.configuration(0), it.configuration(1)), ("removed".into(), "installed".into()));
    let there = it.ctl(1, &["read", "red/flows.table"]).stdout.lines().count();
    assert!(there + 5 >= mappings, "{there} mappings of {mappings}");
    // All downloads finish, and what they have fetched is right.
    let fetched = curl.finish(LATER).unwrap();
    assert!(fetched.success(), "{}", fetched.printed());
    let sums = it.client.command("sha256sum").args(["--quiet", "-c", "sums"]);
    sums.current_dir(it.lab.directory()).check().unwrap();
    // Every mapping leads back to its socket.
    client.write_line("listen").unwrap();
    server.write_line("answer").unwrap();
    client.wait_for(&format!("answers {MAPPINGS}"), LATER).unwrap();
    finish_pings(&mut neighbour, 300);
}

/// The reason for which a move was refused.
fn refused(moved: &Output) -> &str {
    assert!(!moved.success(), "{}", moved.printed());
    assert!(moved.stderr.contains("goes on here"), "{}", moved.printed());
    &moved.stderr
}

#[test]
fn a_move_that_fails_leaves_the_tenant_where_it_is() {
    let mut it = MoveNetwork::new("tenants-move-failed");
    let expect = |it: &MoveNetwork, to: &str, reason: &str| {
        let moved = it.tenants(0, &["move", "red", to]).output().unwrap();
        assert!(refused(&moved).contains(reason), "{}", moved.printed());
        it.ping_red();
        assert_eq!(it.configuration(0), "file");
    };
    expect(&it, "172.16.0.2:4791", "172.16.0.2:4791: Connection refused");
    expect(&it, "nonsense", "`nonsense` is no address such as 192.0.2.1:4790");
    // A client without the key gets no answer.
    for length in ["1", "50", "70000"] {
        let command = it.boxes[0].command("python3").args(["-c", GARBAGE, length]);
        command.timeout(LATER).check().unwrap();
    }
    it.tenants(1, &["install", "red", HOST]).check().unwrap();
    expect(
        &it,
        &listen(1),
        "the other instance says: it runs here already; `castanet tenants remove` makes room here",
    );
    it.tenants(1, &["remove", "red"]).check().unwrap();
    let unknown = it.tenants(0, &["move", "rde", &listen(1)]).output().unwrap();
    let said = unknown.printed();
    assert!(said.contains("there is no tenant 'rde'; did you mean 'red'?"), "{said}");
    // The other box ends before it runs the tenant: a box that stands still answers nothing.
    let id = nix::unistd::Pid::from_raw(it.processes[1].id().cast_signed());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGSTOP).unwrap();
    let waiting = it.tenants(0, &["move", "red", &listen(1)]).spawn().unwrap();
    let phase = || it.ctl(0, &["read", "tenant_moves"]).stdout;
    until("the move did not begin", || phase().contains("\"phase\":\"offer\""));
    let again = it.tenants(0, &["move", "red", &listen(1)]).output().unwrap();
    assert!(again.stderr.contains("tenant red is being moved"), "{}", again.printed());
    let reload = it.ctl(0, &["reload"]);
    assert!(reload.stderr.contains("a tenant is being moved"), "{}", reload.printed());
    it.processes[1].kill();
    let moved = waiting.finish(LATER).unwrap();
    refused(&moved);
    it.ping_red();
    // Another key.
    std::fs::remove_file(it.lab.directory().join("move.key")).unwrap();
    let key = it.boxes[1].command(program()).args(["tenants", "key"]);
    key.arg(it.lab.directory().join("move.key")).check().unwrap();
    it.processes[1] = it.start(1, "");
    expect(&it, &listen(1), "the other instance has another key");
}

/// Cuts moves after each message of one side, the next time one later, until one leaves the tenant held where it
/// was; returns how many messages got through then, and what was said.
fn cut_until_held(it: &MoveNetwork, from: usize, to: usize, side: &str) -> (u32, Output) {
    let before = it.configuration(from);
    let elsewhere = it.configuration(to);
    for messages in 0..100 {
        let moved = it.move_red_cut(from, to, side, messages);
        assert!(!moved.success(), "{side} {messages}: {}", moved.printed());
        if moved.stderr.contains("It is held here") {
            return (messages, moved);
        }
        refused(&moved);
        it.ping_red();
        assert_eq!(it.configuration(from), before, "{side} {messages}");
        until("the other box keeps the tenant", || it.configuration(to) == elsewhere);
    }
    panic!("{side}: no move came to its last message");
}

#[test]
fn a_tenant_runs_in_one_place_whenever_the_connection_of_its_move_breaks() {
    let it = MoveNetwork::new("tenants-move-cut");
    it.ping_red();
    // The other box runs it, and its answer is lost: offer, one round at least.
    let (messages, moved) = cut_until_held(&it, 0, 1, "to");
    assert!(messages >= 3, "{messages}: {}", moved.printed());
    assert!(moved.stderr.contains("has not said that it runs"), "{}", moved.printed());
    assert_eq!(it.read(1, "red/pings.table_size"), it.read(0, "red/pings.table_size"));
    it.ping_red();
    let (here, there) = (it.read(0, "red/pings.table_size"), it.read(1, "red/pings.table_size"));
    assert!(there > here, "pings went through the box that the tenant has left: {here}, {there}");
    it.tenants(0, &["remove", "red"]).check().unwrap();
    it.ping_red();
    assert_eq!((it.configuration(0), it.configuration(1)), ("removed".into(), "installed".into()));
    // The word to run it is lost: it goes on where it was, as the command says.
    let (_, moved) = cut_until_held(&it, 1, 0, "from");
    let says = "castanet ctl write red_account.held false";
    assert!(moved.stderr.contains(says), "{}", moved.printed());
    until("the other box keeps the tenant", || it.configuration(0) == "removed");
    let goes_on = it.ctl(1, &["write", "red_account.held", "false"]);
    assert!(goes_on.success(), "{}", goes_on.printed());
    it.ping_red();
    let moved = it.move_red(1, 0);
    assert!(moved.success(), "{}", moved.printed());
    it.ping_red();
}

#[test]
fn a_tenant_that_has_moved_stays_there_through_kill_and_comes_back() {
    let begin = "store = \"storeNUMBER\"\n";
    let mut it = MoveNetwork::with_systems("tenants-move-back", begin);
    it.ping_red();
    let mappings = it.read(0, "red/pings.table_size");
    assert!(mappings > 0);
    let inside = it.client.capture_arriving("eth0", "rarp").unwrap();
    let outside = it.server.capture_arriving("eth0", "rarp").unwrap();
    let moved = it.move_red(0, 1);
    assert!(moved.success(), "{}", moved.printed());
    // Switches learn where its addresses are.
    for (mut capture, mac) in [(inside, "02:00:00:00:01:01"), (outside, "02:00:00:00:02:01")] {
        capture.wait_for(&format!("Reverse Request who-is {mac} tell {mac}"), SOON).unwrap();
    }
    it.ping_red();
    assert!(it.read(1, "red/pings.table_size") > mappings);
    // Neither box forgets who has it.
    for number in 0..2 {
        it.processes[number].kill();
        it.processes[number].wait(LATER).unwrap();
        it.processes[number] = it.start(number, begin);
    }
    assert_eq!((it.configuration(0), it.configuration(1)), ("removed".into(), "installed".into()));
    it.ping_red();
    let mappings = it.read(1, "red/pings.table_size");
    let back = it.tenants(1, &["move", "red", &listen(0), "--json"]).check().unwrap();
    let report: serde_json::Value = serde_json::from_str(&back.stdout).unwrap();
    assert_eq!(report["phase"], "done");
    assert!(report["stop_seconds"].as_f64().unwrap() > 0.0 && report["error"].is_null());
    assert_eq!(it.read(0, "red/pings.table_size"), mappings);
    it.ping_red();
}
