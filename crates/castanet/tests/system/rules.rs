//! `castanet middlebox` between real interfaces: every example rule, as scapy sees it.

use castanet_lab::Namespace;

use crate::middlebox_network::MiddleboxNetwork;
use crate::testbed::{LATER, SOON, program};

#[test]
fn rules_act_on_the_wire_as_documented() {
    MiddleboxNetwork::new("rules").check("rules.py", "cases are right");
}

/// Echoes all data.
const SERVER: &str = r#"
import socket
listener = socket.create_server(("10.9.0.2", 7000))
print("ready")
it, peer = listener.accept()
print("peer", peer[0], ".")
while data := it.recv(99): it.sendall(data)
"#;

/// Sends each line of its input, and prints the answer.
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
    let between = MiddleboxNetwork::new("reload");
    let command = |words: &[&str]| between.command(words);
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
        namespace.command("python3").args(["-u", "-c", script]).pipe_stdin().spawn().unwrap()
    };
    let mut server = python(&between.right, SERVER);
    server.wait_for("ready", SOON).unwrap();
    let mut client = python(&between.left, CLIENT);
    client.wait_for("connected", SOON).unwrap();
    server.wait_for("peer 10.9.0.77 .", SOON).unwrap();
    let mut talk = |word: &str| {
        client.write_line(word).unwrap();
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
    let control = between.lab.directory().join("control");
    let failed = between.left.command(program()).args(["middlebox", "--connect"]).arg(&control);
    let output = failed.args(words).output().unwrap().printed();
    assert!(output.contains("line 2: `in wlan9`: there is no interface `wlan9`"), "{output}");
    talk("last");
    assert_eq!(listed().len(), 2);
}

/// Tries to connect to each address, and sends a datagram to each: prints the error that comes.
const KNOCKER: &str = r#"
import socket
for family, address in [(socket.AF_INET, "10.9.0.2"), (socket.AF_INET6, "fd09::2")]:
    for port in [8001, 8002]:
        it = socket.socket(family, socket.SOCK_STREAM)
        it.settimeout(20)
        try:
            it.connect((address, port))
            print("open")
        except OSError as error:
            print(address, port, type(error).__name__, error.errno)
    it = socket.socket(family, socket.SOCK_DGRAM)
    it.settimeout(20)
    it.connect((address, 8001))
    it.send(b"hello")
    try:
        it.recv(9)
    except OSError as error:
        print(address, "udp", type(error).__name__)
"#;

/// Hosts hear at once that they are rejected, as the kernel reports resets and ICMP errors.
#[test]
fn rejected_hosts_hear_it_at_once() {
    let between = MiddleboxNetwork::new("reject");
    let command = |words: &[&str]| between.command(words);
    command(&["set", "add", "closed", "8001", "8500-8600"]);
    for rule in
        ["tcp-dport @closed reject", "tcp-dport 8002 reject host", "udp-dport 8000-8100 reject"]
    {
        command(&[rule]);
    }
    let output = between.left.command("python3").args(["-u", "-c", KNOCKER]).timeout(LATER);
    let heard = output.check().unwrap().stdout;
    // 111: connection refused; 113: no route to host.
    let wanted = "10.9.0.2 8001 ConnectionRefusedError 111\n10.9.0.2 8002 OSError 113\n\
                  10.9.0.2 udp ConnectionRefusedError\n\
                  fd09::2 8001 ConnectionRefusedError 111\nfd09::2 8002 OSError 113\n\
                  fd09::2 udp ConnectionRefusedError\n";
    assert_eq!(heard, wanted);
    let json: serde_json::Value = serde_json::from_str(&command(&["list", "--json"])).unwrap();
    let drops: Vec<_> = (0..3).map(|at| json[at]["drops"].as_u64().unwrap()).collect();
    assert_eq!(drops, [2, 2, 2], "{json}");
}
