//! State that elements keep when another configuration replaces theirs.

use super::{SwapRouter, run};
use crate::program::{click, folder};

#[test]
fn handlers_that_elements_call_must_be_in_the_next_configuration_too() {
    let path = "s :: InfiniteSource(LIMIT 10, BURST 4, ACTIVE false) -> sw :: Switch -> Null
        -> c :: Counter(COUNT_CALL 7 x.switch 1) -> x :: Switch -> a :: Counter -> Discard;";
    let mut it = run("calls", &[], &format!("{path} x[1] -> b :: Counter -> Discard"));
    // `c` would go on as it is.
    let refused = it.swap(&path.replace("x ::", "y ::")).unwrap_err();
    assert!(refused.contains("c :: Counter: no element named 'x'"), "{refused}");
    let refused = it.swap(&path.replace("x :: Switch", "x :: Paint(1)")).unwrap_err();
    assert!(refused.contains("no write handler 'switch'"), "{refused}");
    it.client.write("s.active", "true");
    it.client.wait_for("b.count", "4");
    assert_eq!(it.client.read("a.count"), "6");
    it.end();
}

#[test]
fn a_call_that_a_handler_has_set_goes_over() {
    let text = |more| {
        format!(
            "s :: InfiniteSource(LIMIT 10, ACTIVE false, BURST 10) -> first :: Switch {more}
             -> c :: Counter -> Discard; first[1] -> b :: Counter -> Discard"
        )
    };
    let mut it = run("set-calls", &["-j", "2"], &text(""));
    it.client.write("c.count_call", "7 first.switch 1");
    it.swap(&text("-> x :: Null")).unwrap();
    it.client.write("s.active", "true");
    it.client.wait_for("b.count", "3");
    assert_eq!(it.client.read("c.count"), "7");
    it.end();
}

#[test]
fn elements_of_the_same_name_and_class_keep_their_state() {
    let arp = "arp :: ARPQuerier(10.0.0.1, 2:0:0:0:0:1) -> Discard; Idle -> [0]arp; Idle -> [1]arp;
               sw :: Switch(0); Idle -> sw; sw[0] -> Discard; sw[1] -> Discard;";
    let first = format!(
        "s :: InfiniteSource(LIMIT 700) -> c :: Counter -> q :: Queue(1000) -> Idle; {arp}"
    );
    let mut it = run("stay", &[], &first);
    it.client.wait_for("q.length", "700");
    it.client.write("arp.insert", "10.0.0.9 2:0:0:0:0:9");
    it.client.write("sw.switch", "1");
    // The queue gets other arguments, and somebody who empties it; an element comes between.
    let second = format!(
        "s :: InfiniteSource(LIMIT 700) -> x :: Null -> c :: Counter -> q :: Queue(2000)
         -> u :: Unqueue -> d :: Counter -> Discard; {arp}"
    );
    it.swap(&second).unwrap();
    it.client.wait_for("d.count", "700");
    for (handler, value) in
        [("c.count", "700"), ("q.capacity", "2000"), ("q.length", "0"), ("sw.switch", "1")]
    {
        assert_eq!(it.client.read(handler), value, "{handler}");
    }
    assert_eq!(it.client.read("q.highwater_length"), "700");
    assert!(it.client.read("arp.table").contains("10.0.0.9"));
    assert!(it.client.read("config").contains("x :: Null"), "the new text is shown");
    assert!(it.client.read("list").contains("\nx\n"));
    // Another name, another class, another argument: those begin anew.
    let third = "s :: InfiniteSource(LIMIT 700) -> e :: Counter -> c :: Paint(1) -> Discard;
                 sw :: Switch(0, 1); Idle -> sw; sw[0] -> Discard; sw[1] -> Discard;";
    let refused = it.swap(third).unwrap_err();
    assert!(refused.contains("one argument too many"), "{refused}");
    it.swap(&third.replace(", 1)", ")")).unwrap();
    assert_eq!(it.client.read("e.count"), "0");
    assert_eq!(it.client.read("c.color"), "1");
    assert_eq!(it.client.read("s.count"), "700");
    it.end();
}

/// Rules that came by a handler stay, with what they have counted and their connections; so do
/// those that say the same under other arguments, with their identifiers.
#[test]
fn rules_keep_their_connections() {
    let text = |rules: &str, more: &str| {
        format!(
            "s :: InfiniteSource(LIMIT 9, STOP false, ACTIVE false) -> UDPIPEncap(1.0.0.1, 5, 2.0.0.2, 6)
                -> m :: Middlebox({rules}) -> c :: Counter -> Discard; {more}"
        )
    };
    for threads in ["1", "2"] {
        let first = "ip-proto tcp drop, ip-proto icmp drop";
        let mut it = run(&format!("rules{threads}"), &["-j", threads], &text(first, ""));
        it.client.write("m.command", "add-stateful udp-dport 6 accept");
        it.client.write("m.delete", "1");
        it.client.write("s.active", "true");
        it.client.wait_for("c.count", "9");
        let events = "1\tadded\n0\texpired\n0\tevicted\n0\trefused\n";
        let connection = |position: u32, it: &mut SwapRouter| {
            assert_eq!(it.client.read("m.connection_events"), events);
            assert_eq!(it.client.read(&format!("m.packets{position}")), "9");
            let listed = it.client.read("m.connections");
            assert_eq!(listed, "udp 1.0.0.1:5 > 2.0.0.2:6 id3\n");
        };
        connection(2, &mut it);
        // The same arguments: what handlers have changed stays changed.
        it.swap(&text(first, "Idle -> x :: Discard")).unwrap();
        it.client.wait_for("x.class", "Discard");
        connection(2, &mut it);
        // Other arguments, and the same rule elsewhere.
        it.swap(&text("add-stateful udp-dport 6 accept, all accept", "")).unwrap();
        it.client.wait_for("m.packets2", "0");
        connection(1, &mut it);
        // Others still, of this element alone.
        it.client.write("m.config", "all drop, add-stateful udp-dport 6 accept");
        connection(2, &mut it);
        it.end();
    }
}

#[test]
fn shared_state_stays_shared() {
    let config = |more: &str| {
        format!(
            "r :: RecordTimestamp(N 64);
             InfiniteSource(LIMIT 10, LENGTH 60) -> n :: NumberPacket {more} -> r
               -> q :: Queue -> u :: Unqueue(ACTIVE false) -> d :: TimestampDiff(r) -> c :: Counter -> Discard"
        )
    };
    let mut it = run("shared", &[], &config(""));
    it.client.wait_for("q.length", "10");
    it.swap(&config("-> Null")).unwrap();
    // Flows recorded before the swap are found after it: none counts as unknown.
    it.client.write("u.active", "true");
    it.client.wait_for("c.count", "10");
    assert_ne!(it.client.read("d.max"), "0");
    it.end();
}

#[test]
fn an_element_takes_other_arguments_while_it_runs() {
    let dump = folder("hot-swap").join("arguments.pcap");
    let config = format!(
        "s :: InfiniteSource(LIMIT 40) -> c :: Counter -> q :: Queue(100) -> u :: Unqueue(ACTIVE false)
           -> p :: Paint(1) -> d :: ToDump({}, ENCAP IP)",
        dump.display()
    );
    let mut it = run("arguments", &["-j", "2"], &config);
    it.client.wait_for("q.length", "40");
    it.client.write("q.config", "50");
    it.client.write("p.config", "COLOR 7");
    for (handler, value) in
        [("q.capacity", "50"), ("q.config", "50"), ("q.length", "40"), ("p.color", "7")]
    {
        assert_eq!(it.client.read(handler), value, "{handler}");
    }
    assert!(it.client.read("flatconfig").contains("q :: Queue(50);"));
    assert!(it.client.read("q.handlers").contains("config\trw\n"));
    for (handler, value, words) in [
        ("q.config", "many", "CAPACITY: invalid number"),
        ("p.config", "1, 2, 3", "too many arguments"),
        ("d.config", "/nowhere/at/all", "cannot go on under other arguments"),
        ("cs.config", "UNIX, /tmp/elsewhere", "read-only"),
    ] {
        it.client.say(&format!("WRITE {handler} {value}\n"));
        let (code, output) = it.client.answer();
        assert!(code != 200 && output.contains(words), "{handler}: {output}");
    }
    it.client.write("u.config", "ACTIVE true");
    it.client.wait_for("d.count", "40");
    it.end();
    // At once, for a script that goes on.
    let script = "Script(write q.config 7, print $(q.capacity), write q.config none, stop)";
    let result = click(&["--simtime", "-e", &format!("Idle -> q :: Queue -> Idle; {script}")], b"");
    assert_eq!(result.out, "7\n");
    assert!(result.err.contains("  CAPACITY: invalid number"), "{}", result.err);
}
