//! `castanet middlebox` without interfaces: errors in rules, the configuration that it would run,
//! and its clients.

use crate::control::{SocketFile, socket};
use crate::program::{castanet, command, folder, wait_until};
use std::collections::HashSet;
use std::process::{Child, Stdio};

fn file(name: &str, text: &str) -> String {
    let path = folder("middlebox").join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn rules_are_checked_with_lines_and_words() {
    let right =
        file("right.mmb", "# a comment\nadd tcp-dport 80 mod tcp-dport 443\nall drop 0.1\n");
    let result = castanet(&["middlebox", "--check", &right], b"");
    assert_eq!((result.status, result.out.as_str(), result.err.as_str()), (Some(0), "", ""));
    let wrong = file("wrong.mmb", "all dropp\ntcp-dport 99999 drop\n");
    for words in [&["--check"][..], &["--in", "a", "--out", "b"]] {
        let result = castanet(&[&["middlebox"], words, &[wrong.as_str()]].concat(), b"");
        assert_eq!(result.status, Some(1), "{}", result.err);
        for line in
            ["wrong.mmb:1:5", "did you mean `drop`?", "wrong.mmb:2:11", "a number from 0 to 65535"]
        {
            assert!(result.err.contains(line), "no {line} in\n{}", result.err);
        }
    }
    let result = castanet(&["middlebox", "--check", "/nowhere.mmb"], b"");
    assert!(result.status == Some(1) && result.err.contains("/nowhere.mmb"), "{}", result.err);
    for (words, wanted) in [
        (&["middlebox"][..], "two interfaces are missing"),
        (&["middlebox", "--in", "eth0"], "--out"),
        (&["middlebox", "check"], "a file of rules is missing"),
        (&["middlebox", "--in", "a", "--out", "a"], "the same interface"),
        (&["middlebox", "--in", "a", "--out", "b", "x", "y"], "'y' is one file of rules too many"),
        (&["middlebox", "--in", "a", "--out", "b", "x", "--json"], "--connect"),
    ] {
        let result = castanet(words, b"");
        assert_eq!(result.status, Some(2), "{}", result.err);
        assert!(result.err.contains(wanted), "no {wanted} in\n{}", result.err);
    }
}

#[test]
fn check_finds_what_is_wrong_or_doubtful_in_all_files() {
    let list = file("list.txt", "10.0.0.0/8, 192.0.2.1-192.0.2.9 # hosts\n2001:db8::/32\n");
    let right = file(
        "sets.mmb",
        &format!(
            "# Sets.\nip-saddr @lan accept\nset load lan {list}\ntcp-dport 80,443,8000-8100 drop\ntimeout udp 30\n"
        ),
    );
    let result = castanet(&["middlebox", "check", &right], b"");
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
    let doubtful = file("doubt.mmb", "tcp-syn drop\nset add spare 1\nadd tcp-syn drop\n");
    let result = castanet(&["middlebox", "check", &right, &doubtful], b"");
    assert_eq!(result.status, Some(0), "{}", result.err);
    for words in
        ["doubt.mmb:3:1", "warning: the rule of line 1 is the same", "no rule uses the set `spare`"]
    {
        assert!(result.err.contains(words), "no {words} in\n{}", result.err);
    }
    let wrong = file(
        "wrong_sets.mmb",
        "ip-saddr @lna drop\nset add lan 10.0.0.0/8\nset load x /nowhere\ntcp-dport @lan drop\nflush\n",
    );
    let result = castanet(&["middlebox", "check", &wrong, &right], b"");
    assert_eq!(result.status, Some(1), "{}", result.err);
    for words in [
        "wrong_sets.mmb:1:1",
        "there is no set `lna`; did you mean `lan`?",
        "/nowhere: No such file or directory",
        "set `lan` has IP addresses, and tcp-dport wants numbers",
        "a file of rules only adds rules, defines sets and makes settings",
    ] {
        assert!(result.err.contains(words), "no {words} in\n{}", result.err);
    }
}

#[test]
fn options_may_stand_behind_the_file() {
    let rules = file("behind.mmb", "all accept\n");
    let result =
        castanet(&["middlebox", &rules, "--in", "a", "--out", "b", "--show", "--mtu", "900"], b"");
    assert_eq!(result.status, Some(0), "{}", result.err);
    assert!(result.out.contains("MTU 900"), "{}", result.out);
}

/// A rule that no packet can match is an error; one that may be meant otherwise is accepted with a
/// warning.
#[test]
fn rules_that_contradict_themselves_are_errors_and_doubtful_ones_warnings() {
    let check = |name: &str, text: &str| {
        let path = file(name, text);
        let result = castanet(&["middlebox", "--check", &path], b"");
        (result.status, result.err)
    };
    let (status, output) = check("never.mmb", "all accept\ntcp-dport 80 udp-dport 53 drop\n");
    assert_eq!(status, Some(1));
    for words in [
        "error: `udp-dport 53` contradicts `tcp-dport 80`: no packet is both",
        "never.mmb:2:14",
        "help: tcp-dport is about TCP, udp-dport about UDP; make a rule for each",
    ] {
        assert!(output.contains(words), "no {words} in\n{output}");
    }
    let (status, output) = check("doubt.mmb", "all mod ip-ttl 3\nadd ip-proto udp drop\n");
    assert_eq!(status, Some(0), "{output}");
    for words in [
        "warning: IPv6 passes by this rule: ip-proto is about IPv4 alone",
        "doubt.mmb:2:5",
        "`proto udp` is about both, and `net-proto ip4` beside it says that one is meant",
    ] {
        assert!(output.contains(words), "no {words} in\n{output}");
    }
    assert_eq!(check("both.mmb", "ip-proto udp drop\nip6-proto udp drop\n"), (Some(0), "".into()));
    // The same in configurations.
    let check = |rules: &str| {
        let text = format!("Idle -> Middlebox({rules}, INTERFACES eth0) -> Discard");
        let result = castanet(&["check", "-e", &text], b"");
        (result.status, result.err)
    };
    let (status, output) = check("ip-proto udp drop");
    assert!(
        status == Some(0) && output.contains("warning: `ip-proto udp`: IPv6 passes"),
        "{output}"
    );
    for (rules, words) in [
        ("in wlan9 drop", "`in wlan9`: there is no interface `wlan9` that a packet comes in by"),
        ("in wlan9 drop", "there are: eth0"),
        ("in eth1 drop", "did you mean `eth0`?"),
        ("in eth0 out != eth0 drop", "what comes in by eth0 leaves by eth0"),
        ("all lb 10.0.0.1, FORWARDING bridge", "no packet goes to 10.0.0.1: this is a bridge"),
        ("all lb 02:00:00:00:00:01, FORWARDING router", "this is a router"),
        ("ip-ttl > 100 ip-ttl < 50 drop", "`ip-ttl < 50` contradicts `ip-ttl > 100`"),
        ("tcp-dport 80 mod udp-dport 81", "`mod udp-dport` does nothing: the rule is about TCP"),
        ("all accept, FORWARDING hub", "`hub` is not bridge or router"),
    ] {
        let (status, output) = check(rules);
        assert!(status == Some(1) && output.contains(words), "{rules}: no {words} in\n{output}");
    }
}

#[test]
fn it_shows_the_configuration_it_would_run() {
    let rules = file("shown.mmb", "all accept\n");
    let options = [
        "--in",
        "eth0",
        "--out",
        "eth1",
        "--control",
        "/run/it",
        "--connections",
        "9",
        "--mtu",
        "1400",
        "--method",
        "AF_PACKET",
        "-j",
        "2",
        "--affinity",
        "0,1",
        "--quiet",
        "--show",
    ];
    let result = castanet(&[&["middlebox"], &options[..], &[&rules]].concat(), b"");
    let wanted = format!(
        "rules :: Middlebox(FILE \"{rules}\", INTERFACES eth0 eth1, FORWARDING bridge, \
         CONNECTIONS 9, MTU 1400);\n\
         from_in :: FromDevice(eth0, PROMISC true, SNIFFER false, METHOD AF_PACKET);\n\
         to_in :: ToDevice(eth0, METHOD AF_PACKET);\n\
         from_out :: FromDevice(eth1, PROMISC true, SNIFFER false, METHOD AF_PACKET);\n\
         to_out :: ToDevice(eth1, METHOD AF_PACKET);\n\
         from_in -> rules -> to_out;\n\
         from_out -> [1] rules [1] -> to_in;\n\
         ControlSocket(UNIX, \"/run/it\");\n"
    );
    assert_eq!((result.status, result.out), (Some(0), wanted), "{}", result.err);
}

#[test]
fn addresses_make_it_a_router() {
    let sides = ["middlebox", "--in", "lo", "--out", "lo", "--show"];
    let with = |words: &[&str]| castanet(&[&sides[..], words].concat(), b"");
    let (near, far) = (["--in-address", "10.0.1.1/24"], ["--out-address", "10.0.2.1/24"]);
    let more = ["--gateway", "10.0.2.9", "--in-address", "1::1/64", "--out-address", "2::1/64"];
    for words in [[near, far].concat(), [&near[..], &far[..], &more[..]].concat()] {
        let result = with(&words);
        let checked = castanet(&["check", "-e", &result.out], b"");
        assert_eq!(
            (result.status, checked.status),
            (Some(0), Some(0)),
            "{}{}",
            result.err,
            checked.err
        );
        assert!(result.out.contains("0.0.0.0/0 10.0.2.9 1") == words.contains(&"--gateway"));
    }
    for (words, wanted) in [
        (&near[..], "--out-address"),
        (&["--gateway", "10.0.2.9"], "--gateway is for interfaces with addresses"),
        (&["--in-address", "10.0.1.1", "--out-address", "10.0.2.1/24"], "the length of its prefix"),
        (&["--in-address", "1::1/64", "--out-address", "10.0.2.1/24"], "lo has no address of IPv"),
        (
            &[near, far, ["--gateway", "1.2.3.4"]].concat(),
            "1.2.3.4 is on no network of an interface",
        ),
    ] {
        let result = with(words);
        assert!(
            result.status == Some(2) && result.err.contains(wanted),
            "{words:?}: {}",
            result.err
        );
    }
}

/// A middlebox without interfaces that listens.
pub(crate) struct MiddleboxProcess {
    child: Child,
    pub(crate) socket: SocketFile,
}

impl MiddleboxProcess {
    pub(crate) fn new(name: &str) -> MiddleboxProcess {
        MiddleboxProcess::with(name, "Idle")
    }

    /// With a source of packets.
    pub(crate) fn with(name: &str, source: &str) -> MiddleboxProcess {
        let socket = socket(&format!("middlebox-{name}"));
        let config = format!(
            "{source} -> rules :: Middlebox(INTERFACES a b) -> Discard; Idle -> [1] rules [1] -> Discard;
             ControlSocket(UNIX, {})",
            socket.display()
        );
        let mut run = command();
        let files = folder("middlebox").display().to_string();
        let run = run.args(["run", "--handler-files", &files, "-e", &config]).stderr(Stdio::null());
        let served = MiddleboxProcess { child: run.spawn().unwrap(), socket };
        wait_until("nobody listens", || served.socket.exists());
        served
    }

    fn ask(&self, words: &[&str], input: &str) -> (Option<i32>, String, String) {
        let socket = self.socket.display().to_string();
        let result =
            castanet(&[&["middlebox", "--connect", &socket], words].concat(), input.as_bytes());
        (result.status, result.out, result.err)
    }

    fn answer(&self, words: &[&str]) -> String {
        let (status, out, err) = self.ask(words, "");
        assert_eq!(status, Some(0), "{words:?}: {err}");
        out
    }
}

impl Drop for MiddleboxProcess {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn every_command_reaches_one_that_runs() {
    let it = MiddleboxProcess::new("commands");
    assert_eq!(
        it.answer(&["add", "tcp-dport==80", "mod", "tcp-dport", "443"]),
        "1 id1 add tcp-dport 80 mod tcp-dport 443\n"
    );
    assert_eq!(
        it.answer(&["add-stateful in a ip-proto udp accept"]),
        "2 id2 add-stateful in a ip-proto udp accept\n"
    );
    assert_eq!(it.answer(&["all", "drop", "0.5"]), "3 id3 add all drop 0.5\n");
    assert_eq!(it.answer(&["move", "3", "1"]), "1 id3 add all drop 0.5\n");
    assert_eq!(it.answer(&["replace", "id3", "all", "drop"]), "1 id4 add all drop\n");
    assert_eq!(
        it.answer(&["test", "1.0.0.1:5", ">", "2.0.0.2:80", "tcp"]),
        "in a: 1.0.0.1:5 > 2.0.0.2:80 tcp ttl 64 len 40\nrule 1 id4: add all drop\n\
         rule 2 id1: add tcp-dport 80 mod tcp-dport 443\ndropped by rule 1 id4\n"
    );
    assert_eq!(
        it.answer(&["test", "in", "b", "1.0.0.1:5 > 2.0.0.2:80 tcp"]).lines().next(),
        Some("in b: 1.0.0.1:5 > 2.0.0.2:80 tcp ttl 64 len 40")
    );
    assert_eq!(it.answer(&["delete", "1"]), "deleted id4: add all drop\n");
    let list = it.answer(&["list"]);
    let lines: Vec<Vec<&str>> =
        list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..3], ["rule", "id", "l3"]);
    assert_eq!(lines[2][..7], ["2", "id2", "ip4", "any", "a", "any", "yes"]);
    let json: serde_json::Value = serde_json::from_str(&it.answer(&["list", "--json"])).unwrap();
    assert_eq!((&json[0]["id"], &json[0]["packets"]), (&1.into(), &0.into()));
    assert_eq!(json[0]["targets"][0], "mod tcp-dport 443");
    assert_eq!(it.answer(&["show", "connections"]), "");
    assert_eq!(it.answer(&["show", "connections", "verbose"]), "");
    assert!(it.answer(&["show", "tables"]).contains("2 rules"));
    assert!(it.answer(&["show", "tables", "verbose"]).contains("id1 tcp-dport 80"));
    assert_eq!(it.answer(&["disable", "a", "b"]), "disabled a b\n");
    assert_eq!(it.answer(&["enable", "b"]), "enabled b\n");
    assert_eq!(it.answer(&["timeout", "udp", "30"]), "timeout 30 s\n");
    assert_eq!(it.answer(&["reset", "counters"]), "counters begin anew\n");
    let saved = folder("middlebox").join("saved.mmb").display().to_string();
    assert_eq!(it.answer(&["save", &saved]), "saved 2 rules\n");
    assert_eq!(it.answer(&["flush"]), "flushed 2 rules and all connections\n");
    assert_eq!(it.answer(&["load", &saved]), "loaded 2 rules\n");
    assert_eq!(
        std::fs::read_to_string(&saved).unwrap(),
        "timeout udp 30\nadd tcp-dport 80 mod tcp-dport 443\nadd-stateful in a ip-proto udp accept\n"
    );
    assert!(it.answer(&["watch", "1"]).contains("tcp-dport 80"));
    assert!(it.answer(&["help"]).contains("add-stateful MATCH"));
    assert!(it.answer(&["help", "fields"]).contains("tcp-opt-mss"));
    assert_eq!(it.answer(&["set", "add", "lan", "10.0.0.0/8"]), "set lan has 1 value or range\n");
    assert_eq!(
        it.answer(&["ip-saddr @lan drop # not from here"]),
        "3 id7 add ip-saddr @lan drop\n"
    );
    assert_eq!(it.answer(&["show", "sets", "verbose"]), "lan 1 10.0.0.0/8\n");
    assert_eq!(it.answer(&["show", "timeouts"]).lines().next(), Some("udp 30"));
    assert!(it.answer(&["list"]).lines().last().unwrap().ends_with("not from here"));
    let json: serde_json::Value = serde_json::from_str(&it.answer(&["list", "--json"])).unwrap();
    assert_eq!((&json[2]["drops"], &json[2]["comment"]), (&0.into(), &"not from here".into()));
    assert_eq!(it.answer(&["show", "connections", "--json"]), "[\n]\n");
    let (status, _, err) = it.ask(&["delete connection tcp 1.0.0.1:2 > 3.0.0.4:5"], "");
    assert!(status == Some(1) && err.contains("there is no such connection"), "{err}");
    assert!(it.answer(&["help", "timeout"]).starts_with("timeout udp|"));
    assert!(it.answer(&["help", "ip-ttl"]).contains("a number from 0 to 255"));
}

#[test]
fn an_invalid_command_is_an_error_and_changes_nothing() {
    let it = MiddleboxProcess::new("wrong");
    it.answer(&["add", "all", "accept"]);
    let elsewhere = file("elsewhere.mmb", "all accept\nout wlan9 drop\n");
    let broken = file("broken.mmb", "all accept\nall what\nflush\n");
    for (words, wanted) in [
        (&["add", "tcp-dprot", "80", "drop"][..], "did you mean `tcp-dport`?"),
        (&["delete", "7"], "there is no rule 7: there is one"),
        (&["delete", "id9"], "there is no rule id9"),
        (&["enable", "a"], "a is enabled already"),
        (&["enable", "c"], "there is no interface c"),
        (&["load", &broken], "line 2: there is no field `what`"),
        (&["load", "/nowhere"], "/nowhere"),
        (&["load", "/dev/zero"], "/dev/zero"),
        (&["add", "in", "c", "drop"], "there is no interface `c` that a packet comes in by"),
        (&["replace", "1", "in", "a", "out", "a", "drop"], "what comes in by a leaves by b"),
        (&["load", &elsewhere], "line 2: `out wlan9`: there is no interface `wlan9`"),
        (&["save", "/nowhere/at/all"], "/nowhere/at/all"),
        (&["test", "nonsense"], "nonsense"),
        (&["test", "in", "c", "1.0.0.1 > 2.0.0.2 udp"], "there is no interface c"),
        (&["test", "in", "a"], "such as `test in eth0 1.0.0.1:1000 > 2.0.0.2:80 tcp syn`"),
        (&["watch", "long"], "a number of seconds"),
    ] {
        let (status, out, err) = it.ask(words, "");
        assert!(status == Some(1) && out.is_empty() && err.contains(wanted), "{words:?}: {err}");
    }
    assert_eq!(it.answer(&["list"]).lines().count(), 2);
}

/// A warning is for a person: what is answered stays what it was.
#[test]
fn warnings_come_beside_answers() {
    let it = MiddleboxProcess::new("warnings");
    let ask = |words: &[&str]| it.ask(words, "");
    let warning = "warning: `ip-proto udp`: IPv6 passes by this rule: ip-proto is about IPv4 alone; \
                   `proto udp` is about both, and `net-proto ip4` beside it says that one is meant\n";
    let answer = "1 id1 add ip-proto udp drop\n";
    assert_eq!(ask(&["add", "ip-proto", "udp", "drop"]), (Some(0), answer.into(), warning.into()));
    let json: serde_json::Value = serde_json::from_str(&it.answer(&["list", "--json"])).unwrap();
    let output = json[0]["warnings"][0].as_str().unwrap();
    assert_eq!(format!("warning: {output}\n"), warning);
    // With the rule for the other version nothing is left to be said.
    let answer = "2 id2 add ip6-proto udp drop\n";
    assert_eq!(ask(&["add", "ip6-proto", "udp", "drop"]), (Some(0), answer.into(), "".into()));
    let json: serde_json::Value = serde_json::from_str(&it.answer(&["list", "--json"])).unwrap();
    for rule in [&json[0], &json[1]] {
        assert_eq!(rule["warnings"], serde_json::json!([]));
    }
    let doubtful = file("doubtful.mmb", "# one\nproto tcp drop\nall drop 0\n");
    let warning = "warning: line 3: `drop 0` drops nothing; leave the rule out, or the 0\n";
    assert_eq!(ask(&["load", &doubtful]), (Some(0), "loaded 2 rules\n".into(), warning.into()));
}

#[test]
fn lines_of_a_pipe_are_commands() {
    let it = MiddleboxProcess::new("lines");
    let lines = "# rules\nadd all mod ip-ttl 3\n\nadd udp-dport 53 drop\nlits\nquit\nflush\n";
    let (status, out, err) = it.ask(&[], lines);
    assert_eq!(out, "1 id1 add all mod ip-ttl 3\n2 id2 add udp-dport 53 drop\n");
    assert!(status == Some(1) && err.contains("did you mean `list`?"), "{err}");
    assert_eq!(it.answer(&["list"]).lines().count(), 3, "what stands behind `quit` is not read");
    let result = castanet(&["middlebox", "--connect", "/nowhere/socket"], b"");
    assert!(result.status == Some(1) && result.err.contains("/nowhere/socket"), "{}", result.err);
}

#[test]
fn rules_come_and_go_while_packets_flow() {
    // A rule's packets are counted completely, whatever happens to others beside it.
    let packet = "4500001c00000000401100000a000001 0a0000020009000900080000".replace(' ', "");
    let config = format!(
        "m :: Middlebox(all mod ip-ttl 9, MTU 1400);
         a :: InfiniteSource(DATA \\<{packet}>, LIMIT 100000, STOP false, ACTIVE false) -> MarkIPHeader -> [0] m;
         b :: InfiniteSource(DATA \\<{packet}>, LIMIT 100000, STOP false, ACTIVE false) -> MarkIPHeader -> [1] m;
         m[0] -> c :: Counter -> Discard; m[1] -> d :: Counter -> Discard;
         StaticThreadSched(a 0, b 1);
         Script(write a.active true, write b.active true, set n 0, label again,
             write m.add udp-dport 9 mod udp-dport 10, write m.move 2 1, write m.add tcp-dport 9 drop,
             write m.delete 1, write m.delete 2, set n $(add $n 1), goto again $(lt $n 100),
             label wait, wait 5ms, goto wait $(lt $(add $(c.count) $(d.count)) 200000),
             print $(m.packets1) $(m.rules), stop)"
    );
    let result = castanet(&["run", "-q", "-j", "2", "-e", &config], b"");
    assert_eq!(
        (result.status, result.out.as_str()),
        (Some(0), "200000 add all mod ip-ttl 9\n"),
        "{}",
        result.err
    );
}

/// Files of many rules, one in place of the other, and then none: each worker goes by what was
/// said last, and counts from then on.
#[test]
fn files_are_loaded_on_several_workers() {
    let others = |port: u16| {
        (1..=300).fold(String::new(), |text, n| {
            text + &format!("add tcp-dport {} ip-daddr 10.0.{port}.{} drop\n", n + port, n % 250)
        })
    };
    let first = file("first.mmb", &(others(1) + "add udp-dport 9 drop\n"));
    let second = file("second.mmb", &(others(2) + "add udp-dport 9 mod udp-dport 10\n"));
    let packet = "4500001c00000000401100000a000001 0a0000020009000900080000".replace(' ', "");
    let source = format!(
        "InfiniteSource(DATA \\<{packet}>, LIMIT 1000, STOP false, ACTIVE false) -> MarkIPHeader"
    );
    let again = "write a.reset, write b.reset, write a.active true, write b.active true";
    let config = format!(
        "m :: Middlebox(INTERFACES lan wan);
         a :: {source} -> [0] m; b :: {source} -> [1] m;
         m[0] -> c :: Counter -> Discard; m[1] -> d :: Counter -> Discard;
         StaticThreadSched(a 0, b 1);
         Script(write m.load {first}, {again},
             label one, wait 2ms, goto one $(lt $(m.drops.rule) 2000), print $(m.packets301),
             write m.load {second}, print $(m.packets301), {again},
             label two, wait 2ms, goto two $(lt $(add $(c.count) $(d.count)) 2000),
             print $(m.packets301), write m.flush, print $(m.rules), {again},
             label three, wait 2ms, goto three $(lt $(add $(c.count) $(d.count)) 4000),
             print $(m.drops.rule) $(c.count) $(d.count), stop)"
    );
    let result = castanet(&["run", "-q", "-j", "2", "-e", &config], b"");
    assert_eq!(result.out, "2000\n0\n2000\n\n2000 2000 2000\n", "{}", result.err);
}

/// Loading the same file, or one with some changes, is no matter for rules that stay: identifiers,
/// counters and connections are theirs.
#[test]
fn rules_that_a_load_leaves_as_they_are_go_on() {
    let nat = "add-stateful udp-dport 9 map ip-saddr 9.9.9.9\n";
    let ttl = "add all mod ip-ttl 9\n";
    let dscp = |n: u8| format!("add udp-dport 9 mod ip-dscp {n}\n");
    let first = file("stays1.mmb", &format!("{nat}{ttl}{}", dscp(1)));
    // Another order, one that is new, one that is gone, one that is there twice.
    let second = file("stays2.mmb", &format!("{}{ttl}{nat}{ttl}", dscp(2)));
    let third = file("stays3.mmb", &format!("{ttl}add-stateful ip-proto 99 accept\n"));
    let packet = "4500001c00000000401100000a000001 0a0000020009000900080000".replace(' ', "");
    for threads in ["1", "2"] {
        let ten = |n: u8| {
            format!(
                "write a.reset, write a.active true, label s{n}, wait 1ms, goto s{n} $(lt $(c.count) {n}0)"
            )
        };
        let counts = "print $(m.packets1) $(m.packets2) $(m.packets3) $(m.packets4)";
        let config = format!(
            "m :: Middlebox(FILE {first}, INTERFACES lan wan);
             a :: InfiniteSource(DATA \\<{packet}>, LIMIT 10, STOP false, ACTIVE false)
                 -> MarkIPHeader -> [0] m; Idle -> [1] m; m[1] -> Discard;
             m[0] -> c :: Counter -> Discard; StaticThreadSched(a $(sub {threads} 1));
             Script({}, {counts}, write m.load {first}, {counts}, print $(m.connections),
                 write m.load {second}, {counts}, print $(m.connections), {}, {counts},
                 write m.load {third}, {counts}, print $(m.connections), {},
                 print $(m.connection_count) $(m.connection_events),
                 write m.command delete 1, print $(m.said), stop)",
            ten(1),
            ten(2),
            ten(3)
        );
        let config = config.replace("$(sub 1 1)", "0").replace("$(sub 2 1)", "1");
        let result = castanet(&["run", "-q", "-j", threads, "-e", &config], b"");
        let wanted = "10 10 10 0\n10 10 10 0\nudp 10.0.0.1:9 > 10.0.0.2:9 id1\n\
                      0 10 10 0\nudp 10.0.0.1:9 > 10.0.0.2:9 id1\n10 20 20 10\n\
                      20 0 0 0\nudp 10.0.0.1:9 > 10.0.0.2:9\n\
                      0 1\tadded\n0\texpired\n0\tevicted\n0\trefused\n\
                      deleted id2: add all mod ip-ttl 9\n";
        let squeezed = result.out.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>();
        assert_eq!(squeezed.join("\n") + "\n", wanted, "{}", result.err);
    }
}

/// Connections that two workers begin at once, whose packets come back by the other: none is
/// lost, none twice, and each packet is counted by one of the workers.
#[test]
fn workers_share_connections() {
    let flows = |name: &str, src: &str| {
        format!(
            "{name} :: FastUDPFlows(0, 40000, 60, 0:0:0:0:0:1, {src}, 0:0:0:0:0:2, 2.0.0.2, 500, \
             1000000)\n -> Strip(14) -> CheckIPHeader -> [0] m;\n"
        )
    };
    let config = format!(
        "m :: Middlebox(add-stateful in lan map ip-saddr 9.9.9.9 shuffle udp-sport,
             add-stateful in lan accept, in wan drop,
             INTERFACES lan wan);
         {} {}
         m[0] -> sent :: IPClassifier(src host 9.9.9.9, -)
             -> IPMirror -> q :: Queue(100000) -> u :: Unqueue -> [1] m;
         sent[1] -> wrong :: Counter -> Discard;
         m[1] -> CheckUDPHeader -> home :: IPClassifier(dst host 1.0.0.1, dst host 1.0.0.2, -);
         home[0] -> one :: Counter -> Discard; home[1] -> two :: Counter -> Discard;
         home[2] -> wrong;
         StaticThreadSched(a 0, b 1, u 2);
         Script(label wait, wait 5ms, goto wait $(lt $(add $(one.count) $(two.count)) 80000),
             print $(one.count) $(two.count) $(wrong.count) $(m.packets1) $(m.packets3),
             print $(m.connection_count), print $(m.connection_events), print $(m.connections),
             stop)",
        flows("a", "1.0.0.1"),
        flows("b", "1.0.0.2"),
    );
    let result = castanet(&["run", "-q", "-j", "3", "-e", &config], b"");
    let mut lines = result.out.lines();
    assert_eq!(lines.next(), Some("40000 40000 0 160000 80000"), "{} {}", result.out, result.err);
    let count: usize = lines.next().and_then(|line| line.parse().ok()).expect("is a number");
    assert_eq!(lines.next(), Some(format!("{count}\tadded").as_str()));
    let listed: HashSet<&str> = lines.filter(|line| line.starts_with("udp ")).collect();
    assert!((900..=1000).contains(&count), "{count}");
    assert_eq!(listed.len(), count);
}

/// A configuration that rules for three interfaces come to, with these words.
fn of_three(words: &[&str]) -> String {
    let result = castanet(&[&["middlebox", "--show"], words].concat(), b"");
    assert_eq!(result.status, Some(0), "{}", result.err);
    let checked = castanet(&["check", "-e", &result.out], b"");
    assert_eq!(checked.status, Some(0), "{}{}", checked.err, result.out);
    result.out
}

#[test]
fn more_than_two_interfaces_have_a_way_from_each_to_each() {
    let bridge = of_three(&["-i", "lo", "-i", "b", "-i", "c"]);
    for words in
        ["INTERFACES lo lo b b c c, OUT b c lo c lo b,", "came1[2] -> [5] rules [5] -> to_1;"]
    {
        assert!(bridge.contains(words), "{words}: {bridge}");
    }
    let mut words = vec!["-i", "lo=10.0.1.1/24,1::1/64", "-i", "lo=10.0.2.1/24,2::1/64"];
    words.extend(["-i", "lo=10.0.3.1/24,3::1/64"]);
    let router = of_three(&words);
    let without = of_three(&[&words[..], &["--gateway", "10.0.3.9"]].concat());
    assert!(router.contains("routes[4] -> nowhere") && !without.contains("routes[4]"), "{router}");
    assert!(without.contains("0.0.0.0/0 10.0.3.9 2"), "{without}");
    for (words, wanted) in [
        (&["-i", "a"][..], "two interfaces are missing"),
        (&["-i", "a", "-i", "b", "-i", "a"], "a is there twice"),
        (&["-i", "a", "-i", "b", "-i", "router"], "the name of the router itself"),
        (&["-i", "a", "-i", "=10.0.0.1/8"], "it takes a name"),
        (&["-i", "a", "--in", "b", "--out", "c"], "cannot be used with"),
        (&["--show"], "--show wants --in and --out, or --interface"),
    ] {
        let result = castanet(&[&["middlebox"], words].concat(), b"");
        assert!(
            result.status == Some(2) && result.err.contains(wanted),
            "{words:?}: {}",
            result.err
        );
    }
}
