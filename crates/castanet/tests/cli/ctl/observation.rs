//! Rates, drops and the log of an instance.

use super::{RuntimeFolder, fails, has_members};
use crate::control::PATIENCE;
use crate::program::wait_until;
use serde_json::Value;

/// Packets that expire behind a compound element, and a queue that is full.
const DROPPING: &str = "
    elementclass Pair { input -> a :: Counter -> b :: Counter -> output }
    s :: RatedSource(\\<4500001c00000000011100000a000001 0a0000020009000900080000>, 500)
        -> MarkIPHeader -> pair :: Pair -> ttl :: DecIPTTL -> sink :: Discard;
    f :: RatedSource(LENGTH 60, RATE 1000) -> full :: Queue(10) -> idle :: Idle -> Discard;
    n :: Idle -> none :: Counter -> Discard;\n";

/// Members of one element in `top --json`.
const RATES: &[&str] = &[
    "element",
    "class",
    "argument",
    "packets",
    "packets_per_second",
    "bytes_per_second",
    "drops",
    "drops_per_second",
    "reasons",
    "reasons_per_second",
    "nanoseconds_per_packet",
    "share",
    "burst",
    "queue",
    "kernel_drops",
    "kernel_drops_per_second",
];

/// An instance of the configuration above that has dropped packets of both kinds.
fn dropping(it: &RuntimeFolder) -> castanet_lab::Process {
    let process = it.instance("one", DROPPING);
    wait_until("no packet is dropped", || {
        it.json(&["drops", "one", "--interval", "0", "--json"]).as_array().unwrap().len() == 2
    });
    process
}

/// The record of an element.
#[track_caller]
fn of<'v>(list: &'v Value, element: &str) -> &'v Value {
    let found = list.as_array().unwrap().iter().find(|it| it["element"] == element);
    found.unwrap_or_else(|| panic!("no {element} in {list}"))
}

/// The names in the first column of a table, without its title.
fn names(text: &str) -> Vec<&str> {
    let rows = text.lines().skip_while(|line| !line.starts_with("ELEMENT")).skip(1);
    let rows = rows.take_while(|line| !line.contains(" dropped "));
    rows.filter_map(|row| row.split_whitespace().next()).collect()
}

#[test]
fn drops_are_explained_with_an_example() {
    let it = RuntimeFolder::new("drops");
    let _one = dropping(&it);
    // A read has the next packet of each reason kept.
    let example = "10.0.0.1:9 > 10.0.0.2:9 udp ttl 1";
    wait_until("no example", || it.output(&["drops", "--interval", "0"]).contains(example));
    let text = it.output(&["drops", "one", "--interval", "0.2"]);
    for words in [
        "ttl :: DecIPTTL: expired  ",
        " packets, ",
        "/s\n    Packets whose TTL has expired",
        "(28 bytes, ",
        "full :: Queue: full  ",
        "    Packets that find the queue full, or",
        "(60 bytes, ",
        " ago)\n",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    // The element with the higher rate comes first.
    assert!(text.find("full :: Queue") < text.find("ttl :: DecIPTTL"), "{text}");
    for only in ["ttl", "expired"] {
        let text = it.output(&["ctl", "one", "drops", "--interval", "0", "--only", only]);
        assert!(text.starts_with("ttl :: DecIPTTL: expired") && !text.contains("Queue"), "{text}");
        assert!(!text.contains("/s\n"), "{text}");
    }
    let none = it.output(&["drops", "--interval", "0", "--only", "nobody"]);
    assert_eq!(none, "No packet was dropped.\n");
    for interval in ["-1", "inf", "many"] {
        let result = it.client(&["drops", &format!("--interval={interval}")], "");
        assert_eq!(result.status, Some(2), "{interval}: {}", result.err);
    }
}

#[test]
fn drops_are_told_as_json() {
    let it = RuntimeFolder::new("drops-json");
    let _one = dropping(&it);
    let report = || it.json(&["drops", "one", "--interval", "0", "--json"]);
    wait_until("no example", || !of(&report(), "ttl")["example"].is_null());
    let list = report();
    for (element, class, reason, length) in
        [("ttl", "DecIPTTL", "expired", 28), ("full", "Queue", "full", 60)]
    {
        let drop = of(&list, element);
        has_members(
            drop,
            &["element", "class", "reason", "packets", "meaning", "example", "packets_per_second"],
        );
        assert_eq!((&drop["class"], &drop["reason"]), (&class.into(), &reason.into()));
        assert!(drop["packets"].as_u64().unwrap() > 0 && drop["packets_per_second"].is_null());
        assert!(drop["meaning"].as_str().unwrap().starts_with("Packets "), "{drop}");
        has_members(&drop["example"], &["time", "length", "text"]);
        assert_eq!(drop["example"]["length"], length);
        assert!(drop["example"]["time"].as_i64().unwrap() > 1_600_000_000_000_000_000);
    }
    assert!(of(&list, "ttl")["example"]["text"].as_str().unwrap().contains("udp ttl 1"));
    // Rates, and examples that are not older than the read before.
    let later = it.json(&["ctl", "one", "drops", "--interval", "0.5", "--json"]);
    let (before, after) = (of(&list, "ttl"), of(&later, "ttl"));
    assert!(after["packets"].as_u64() > before["packets"].as_u64());
    let rate = after["packets_per_second"].as_f64().unwrap();
    assert!((50.0..5000.0).contains(&rate), "{rate}");
    wait_until("the example stays", || {
        of(&report(), "ttl")["example"]["time"].as_i64() > after["example"]["time"].as_i64()
    });
}

#[test]
fn top_prints_a_table_once() {
    let it = RuntimeFolder::new("top");
    let _one = dropping(&it);
    let top = |words: &[&str]| {
        it.output(&[&["top", "one", "--once", "--interval", "0.3"], words].concat())
    };
    let text = top(&[]);
    let mut lines = text.lines();
    assert!(lines.next().unwrap().starts_with("Load of workers: "), "{text}");
    let title: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(
        title,
        "ELEMENT CLASS PACKETS/S BITS/S DROPS/S DROPS NS/PACKET SHARE BURST QUEUE"
            .split(' ')
            .collect::<Vec<_>>()
    );
    assert!(text.contains("ttl dropped ") && text.contains(" packets: expired, "), "{text}");
    assert!(text.contains("full dropped ") && text.contains(" packets: full, "), "{text}");
    let row = text.lines().find(|row| row.starts_with("full (10)")).unwrap();
    assert!(row.ends_with("10/10"), "{text}");
    // In the order of the configuration; those without packets are not shown unless all are.
    let shown = names(&text);
    assert_eq!(shown, ["s", "MarkIPHeader@2", "ttl", "f", "full", "pair/a", "pair/b"], "{text}");
    let all = top(&["--all"]);
    assert!(names(&all).contains(&"none") && names(&all).contains(&"idle"), "{all}");
    let sorted = top(&["--sort", "name"]);
    let mut expected = shown.clone();
    expected.sort_unstable();
    assert_eq!(names(&sorted), expected);
    // These have twice the packets of the others.
    let sorted = top(&["--sort", "packets"]);
    let mut first = names(&sorted)[..2].to_vec();
    first.sort_unstable();
    assert_eq!(first, ["f", "full"], "{sorted}");
    let sorted = top(&["--sort", "drops"]);
    assert_eq!(names(&sorted)[..2], ["full", "ttl"], "{sorted}");
    let sorted = top(&["--sort", "queue"]);
    assert_eq!(names(&sorted)[0], "full", "{sorted}");
    // By a part of the name or of the class.
    assert_eq!(names(&top(&["--filter", "PAIR/"])), ["pair/a", "pair/b"]);
    assert_eq!(names(&top(&["--filter", "ratedsource"])), ["s", "f"]);
    assert_eq!(names(&top(&["--filter", "nobody"])), [""; 0]);
    let folded = top(&["--fold"]);
    let row = folded.lines().find(|row| row.starts_with("pair ")).unwrap();
    assert!(row.contains("(compound)") && !folded.contains("pair/"), "{folded}");
    fails(&it.client(&["top", "one", "--once", "--sort", "colour"], ""), 2, &["colour", "packets"]);
}

#[test]
fn top_tells_rates_as_json() {
    let it = RuntimeFolder::new("top-json");
    let _one = dropping(&it);
    let top = || it.json(&["top", "one", "--once", "--json", "--interval", "0.5"]);
    let record = top();
    has_members(&record, &["instance", "interval", "workers", "elements"]);
    assert_eq!(record["instance"], "one");
    assert!(record["interval"].as_f64().unwrap() >= 0.5);
    let workers = record["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 1);
    has_members(&workers[0], &["worker", "load"]);
    let load = workers[0]["load"].as_f64().unwrap();
    assert!(workers[0]["worker"] == 0 && load > 0.0 && load <= 1.0, "{load}");
    let elements = &record["elements"];
    elements.as_array().unwrap().iter().for_each(|it| has_members(it, RATES));
    let full = of(elements, "full");
    assert_eq!((&full["class"], &full["argument"]), (&"Queue".into(), &"10".into()));
    let rate = full["packets_per_second"].as_f64().unwrap();
    assert!((100.0..10_000.0).contains(&rate), "{rate}");
    assert!(full["drops_per_second"].as_f64().unwrap() > 0.0);
    assert!(full["reasons"]["full"].as_u64() > Some(0), "{full}");
    assert!(full["reasons_per_second"]["full"].as_f64() > Some(0.0), "{full}");
    assert_eq!((&full["queue"]["length"], &full["queue"]["capacity"]), (&10.into(), &10.into()));
    // None is none, and not negative.
    let none = of(elements, "none");
    let zero = none["drops_per_second"].as_f64().unwrap();
    assert!(none["packets"] == 0 && zero == 0.0 && zero.is_sign_positive(), "{none}");
    assert!(none["nanoseconds_per_packet"].is_null() && none["queue"].is_null(), "{none}");
    // Samples are taken in some of the tasks only.
    let is_sampled = |it: &Value| {
        it["nanoseconds_per_packet"].as_f64() > Some(0.0)
            && it["share"].as_f64() > Some(0.0)
            && it["burst"].as_f64() >= Some(1.0)
            && it["bytes_per_second"].as_f64() > Some(0.0)
    };
    wait_until("no element is sampled", || {
        top()["elements"].as_array().unwrap().iter().any(is_sampled)
    });
}

#[test]
fn top_tells_each_interval_in_a_line_of_json() {
    let it = RuntimeFolder::new("top-lines");
    let _one = dropping(&it);
    let words = ["top", "one", "--json", "--interval", "0.1"];
    let mut stream = it.command(&words).spawn().unwrap();
    wait_until("no lines", || stream.stdout().lines().count() > 3);
    assert!(stream.is_running());
    stream.kill();
    let text = stream.stdout();
    let mut last = 0;
    for line in text.lines().take(3) {
        let record: Value = serde_json::from_str(line).unwrap();
        has_members(&record, &["instance", "interval", "workers", "elements"]);
        let packets = of(&record["elements"], "f")["packets"].as_u64().unwrap();
        assert!(packets > last, "{line}");
        last = packets;
    }
}

#[test]
fn top_ends_with_its_instance() {
    let it = RuntimeFolder::new("top-end");
    let one = dropping(&it);
    let mut stream = it.command(&["top", "one", "--json", "--interval", "0.1"]).spawn().unwrap();
    wait_until("no lines", || stream.stdout().lines().count() > 1);
    one.interrupt();
    super::ends_well(one);
    let status = stream.wait(PATIENCE).unwrap();
    assert_eq!(status.code(), Some(1), "{}", stream.stderr());
    assert!(stream.stderr().contains("the router has gone"), "{}", stream.stderr());
}

#[test]
fn the_log_is_shown_and_followed() {
    let it = RuntimeFolder::new("log");
    let config =
        "s :: RatedSource(LENGTH 60, RATE 20) -> p :: Print(tick, ACTIVE false) -> Discard;
                  Script(print >>/dev/stderr one, label more);";
    let mut one = it.instance("one", config);
    let text = it.output(&["ctl", "one", "log"]);
    let line = text.lines().find(|line| line.ends_with(" castanet: running"));
    let (time, _) = line.unwrap_or_else(|| panic!("{text}")).split_once(' ').unwrap();
    assert!(time.len() == 24 && time.contains('T') && time.ends_with('Z'), "{text}");
    assert!(!text.contains("tick"), "{text}");
    // Lines of packets come while a client follows.
    let mut follower = it.command(&["ctl", "one", "log", "--follow"]).spawn().unwrap();
    follower.wait_for("castanet: running", PATIENCE).unwrap();
    it.output(&["ctl", "one", "write", "p.active", "true"]);
    one.wait_for("tick", PATIENCE).unwrap();
    wait_until("no later line", || follower.stdout().matches("tick: ").count() > 3);
    it.output(&["ctl", "one", "write", "p.active", "false"]);
    follower.kill();
    let told = follower.stdout();
    assert_eq!(told.matches("castanet: running").count(), 1, "{told}");
    assert!(it.output(&["ctl", "one", "log"]).matches("tick: ").count() > 3);
    // The last ones, and JSON.
    assert_eq!(it.output(&["ctl", "one", "log", "-n", "2"]).lines().count(), 2);
    assert_eq!(it.output(&["ctl", "one", "log", "-n", "0"]), "");
    let text = it.output(&["ctl", "one", "log", "-n", "3", "--json"]);
    let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    lines.iter().for_each(|line| has_members(line, &["level", "number", "text", "time"]));
    let numbers: Vec<u64> = lines.iter().map(|it| it["number"].as_u64().unwrap()).collect();
    assert_eq!([numbers[0] + 1, numbers[0] + 2], [numbers[1], numbers[2]]);
    assert!(lines[2]["text"].as_str().unwrap().contains("tick: "), "{text}");
}
