//! `castanet middlebox` between real interfaces: every example rule, as scapy sees it.

use castanet_lab::{Lab, Namespace, Port, Process, require};

use crate::bed::{LATER, SOON, program, root};

/// A middlebox between two hosts.
struct Between {
    lab: Lab,
    left: Namespace,
    right: Namespace,
    process: Process,
}

impl Between {
    fn new(name: &str) -> Between {
        require(&["ip", "python3", "scapy"]).unwrap_or_else(|error| panic!("{error}"));
        let lab = Lab::new(name).unwrap();
        let [left, middle, right] =
            ["left", "middle", "right"].map(|name| lab.namespace(name).unwrap());
        for (outer, name, n) in [(&left, "left", 1), (&right, "right", 2)] {
            let port = Port::new(outer, name)
                .mac(&format!("06:00:00:00:00:0{n}"))
                .address(&format!("10.9.0.{n}/24"));
            lab.link(port, Port::new(&middle, &format!("to-{name}"))).unwrap();
            for which in ["all", name] {
                outer.sysctl(&format!("net/ipv6/conf/{which}/disable_ipv6"), "0").unwrap();
            }
            outer.ip(&format!("address add fd09::{n}/64 dev {name} nodad")).unwrap();
        }
        // Who is behind the translated address.
        right.ip("neigh add 10.9.0.77 lladdr 06:00:00:00:00:01 dev right").unwrap();
        let socket = lab.directory().join("control");
        let words = ["middlebox", "--in", "to-left", "--out", "to-right", "--control"];
        // Where tests put the files that they load.
        let files = ["--handler-files", lab.directory().to_str().unwrap()];
        let command = middle.command(program()).args(words).arg(&socket).args(files);
        let mut process = command.spawn().unwrap();
        process.wait_for(castanet_lab::Router::READY, SOON).unwrap();
        Between { lab, left, right, process }
    }
}

#[test]
fn rules_do_on_the_wire_what_they_say() {
    let mut between = Between::new("rules");
    let script = root().join("crates/castanet/tests/system/rules.py");
    let other = format!("/run/netns/{}", between.right.name());
    // Debian puts scapy beside its own Python.
    let check = between.left.command("/usr/bin/python3").arg(script).arg(program());
    let check = check.arg(between.lab.directory().join("control")).arg(other);
    let said = check.timeout(LATER * 3).output().unwrap().printed();
    assert!(said.contains("cases are right"), "{said}\n{}", between.process.stderr());
    // Not a frame is missing, and nothing panicked, or it would not end like this.
    between.process.interrupt();
    let status = between.process.wait(SOON).unwrap();
    assert_eq!(status.code(), Some(0), "{}", between.process.stderr());
}

/// Answers with what it hears.
const SERVER: &str = r#"
import socket
listener = socket.create_server(("10.9.0.2", 7000))
print("ready")
it, peer = listener.accept()
print("peer", peer[0], ".")
while data := it.recv(99): it.sendall(data)
"#;

/// Sends each line that it is told, and says what came back.
const CLIENT: &str = r#"
import socket, sys
it = socket.create_connection(("10.9.0.2", 7000), timeout=30)
print("connected")
for line in sys.stdin:
    it.sendall(line.encode())
    print("heard", it.recv(99).decode().strip(), ".")
"#;

/// A real TCP connection through translated addresses goes on while files of rules are loaded that
/// still have its rules, and these keep their identifiers and go on counting.
#[test]
fn a_translated_connection_goes_on_while_rules_are_loaded() {
    let between = Between::new("reload");
    let control = between.lab.directory().join("control");
    let command = |words: &[&str]| {
        let command = between.left.command(program()).args(["middlebox", "--connect"]);
        command.arg(&control).args(words).check().unwrap().stdout
    };
    let load = |lines: &[&str]| {
        let path = between.lab.directory().join("rules.mmb");
        std::fs::write(&path, lines.join("\n")).unwrap();
        command(&["load", path.to_str().unwrap()])
    };
    let nat = "add-stateful in to-left proto tcp map ip-saddr 10.9.0.77 shuffle tcp-sport";
    let [accept, drop] =
        ["add-stateful in to-left proto tcp accept", "add in to-right proto tcp drop"];
    // The identifiers of rules and how many packets they have counted, in order.
    let listed = || {
        let json: serde_json::Value = serde_json::from_str(&command(&["list", "--json"])).unwrap();
        let rules = json.as_array().unwrap().iter();
        let numbers =
            |it: &serde_json::Value| ["id", "packets"].map(|key| it[key].as_u64().unwrap());
        rules.map(numbers).collect::<Vec<_>>()
    };
    assert_eq!(load(&[nat, accept, drop]), "loaded 3 rules\n");
    let python = |namespace: &Namespace, script| {
        namespace.command("python3").args(["-u", "-c", script]).listens().spawn().unwrap()
    };
    let mut server = python(&between.right, SERVER);
    server.wait_for("ready", SOON).unwrap();
    let mut client = python(&between.left, CLIENT);
    client.wait_for("connected", SOON).unwrap();
    server.wait_for("peer 10.9.0.77 .", SOON).unwrap();
    let mut talk = |word: &str| {
        client.say(word).unwrap();
        client.wait_for(&format!("heard {word} ."), LATER).unwrap();
    };
    talk("one");
    let connection = command(&["show", "connections"]);
    let is_its = connection.contains("10.9.0.2:7000 id1 id2\n") && connection.lines().count() == 1;
    assert!(is_its, "{connection}");
    let before = listed();
    // The same file; another order, others beside and between; without the rule that drops.
    for (lines, ids) in [
        (&[nat, accept, drop][..], &[1, 2, 3][..]),
        (&["all mod ip-ttl 9", drop, accept, nat, "proto icmp drop"], &[4, 3, 2, 1, 5]),
        (&[accept, nat], &[2, 1]),
    ] {
        load(lines);
        assert_eq!(listed().iter().map(|[id, _]| *id).collect::<Vec<_>>(), ids);
        talk(&format!("after{}", lines.len()));
        assert_eq!(command(&["show", "connections"]).matches("10.9.0.2:7000 id1 id2\n").count(), 1);
        for [id, packets] in listed() {
            let counted = before.iter().find(|[it, _]| *it == id).map_or(0, |[_, n]| *n);
            assert!(packets > counted || id == 5, "id{id}: {counted}, then {packets}");
        }
    }
    // A file with something wrong in it changes nothing.
    let path = between.lab.directory().join("wrong.mmb");
    std::fs::write(&path, "all accept\nin wlan9 drop\n").unwrap();
    let words = ["load", path.to_str().unwrap()];
    let failed = between.left.command(program()).args(["middlebox", "--connect"]).arg(&control);
    let said = failed.args(words).output().unwrap().printed();
    assert!(said.contains("line 2: `in wlan9`: there is no interface `wlan9`"), "{said}");
    talk("last");
    assert_eq!(listed().len(), 2);
}
