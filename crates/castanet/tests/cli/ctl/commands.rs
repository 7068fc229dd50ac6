//! Handlers are read, written and listed by `castanet ctl`.

use super::{COUNTING, RuntimeFolder, ends_well, fails, has_members};
use crate::control::talk;
use crate::program::wait_until;
use serde_json::json;

#[test]
fn handlers_are_read_and_written() {
    let it = RuntimeFolder::new("read");
    let _one = it.instance("one", COUNTING);
    assert_eq!(it.output(&["ctl", "one", "read", "q.capacity"]), "7\n");
    let value = json!({ "handler": "q.capacity", "value": "7" });
    assert_eq!(it.json(&["ctl", "one", "read", "q.capacity", "--json"]), value);
    assert_eq!(it.output(&["ctl", "one", "write", "q.capacity", "9"]), "");
    assert_eq!(it.read("one", "q.capacity"), "9");
    // Several words are one value.
    it.output(&["ctl", "one", "write", "s.config", "LENGTH", "61,", "RATE 999"]);
    assert_eq!(it.read("one", "s.rate"), "999");
    let before = it.number("one", "c.count");
    wait_until("the source has stopped", || it.number("one", "c.count") > before);
    // Numbers of elements, and of none.
    assert_eq!(it.read("one", "1.class"), "RatedSource");
    assert_eq!(it.read("one", "0.requirements"), it.read("one", "requirements"));
    let ctl = |words: &[&str]| it.ctl(&[&["one"], words].concat());
    fails(&ctl(&["read", "x.count"]), 1, &["No element named 'x'"]);
    fails(&ctl(&["read", "c.cuont"]), 1, &["No handler named 'c.cuont'"]);
    fails(&ctl(&["read", "c.reset"]), 1, &["c.reset", "write-only"]);
    fails(&ctl(&["write", "c.count", "1"]), 1, &["c.count", "read-only"]);
    fails(&ctl(&["write", "q.capacity", "many"]), 1, &["invalid number"]);
    fails(&ctl(&["read"]), 2, &["<HANDLER>"]);
    // Without the rights that -R gives.
    fails(&ctl(&["write", "hotconfig", "Idle -> Discard"]), 1, &["hotconfig"]);
    assert_eq!(it.read("one", "c.class"), "Counter");
}

#[test]
fn elements_handlers_and_configurations_are_listed() {
    let it = RuntimeFolder::new("handlers");
    let _one = it.instance(
        "one",
        "elementclass Two { input -> a :: Counter -> b :: Counter -> output }
         s :: RatedSource(RATE 10) -> pair :: Two -> d :: Discard;",
    );
    let text = it.output(&["ctl", "one", "elements"]);
    let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split_whitespace().collect()).collect();
    let mut expected =
        [["s", "RatedSource"], ["d", "Discard"], ["pair/a", "Counter"], ["pair/b", "Counter"]];
    assert_eq!(rows, expected);
    let list = it.json(&["ctl", "one", "elements", "--json"]);
    expected.sort_unstable();
    let mut found: Vec<[&str; 2]> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|it| [it["element"].as_str().unwrap(), it["class"].as_str().unwrap()])
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    // Of an element.
    let text = it.output(&["ctl", "one", "handlers", "pair/a"]);
    let kind = |name: &str| {
        let row = text.lines().find(|row| row.split_whitespace().next() == Some(name));
        row.map(|row| row.split_whitespace().nth(1).unwrap_or_default().to_owned())
    };
    assert_eq!((kind("count"), kind("reset")), (Some("r".into()), Some("w".into())), "{text}");
    let list = it.json(&["ctl", "one", "handlers", "pair/a", "--json"]);
    let count = json!({ "handler": "count", "read": true, "write": false });
    let reset = json!({ "handler": "reset", "read": false, "write": true });
    let list = list.as_array().unwrap();
    assert!(list.contains(&count) && list.contains(&reset), "{list:?}");
    fails(&it.ctl(&["one", "handlers", "nobody"]), 1, &["No element named 'nobody'"]);
    // Of the router, with those of the instance.
    let list = it.json(&["ctl", "one", "handlers", "--json"]);
    for (name, read) in [
        ("instance", true),
        ("snapshot", true),
        ("drop_report", true),
        ("log", true),
        ("reload", false),
        ("terminate", false),
        ("list", true),
    ] {
        let handler = json!({ "handler": name, "read": read, "write": !read });
        assert!(list.as_array().unwrap().contains(&handler), "{name}: {list}");
    }
    // The configuration, as it was written and expanded.
    let config = it.output(&["ctl", "one", "config"]);
    assert!(config.contains("elementclass Two") && !config.contains("pair/a"), "{config}");
    let flat = it.output(&["ctl", "one", "config", "--flat"]);
    assert!(flat.contains("pair/a :: Counter") && !flat.contains("elementclass"), "{flat}");
    let value = it.json(&["ctl", "one", "config", "--flat", "--json"]);
    assert_eq!(value["handler"], "flatconfig");
    assert_eq!(value["value"].as_str().unwrap().trim_end(), flat.trim_end());
}

#[test]
fn an_instance_describes_itself_and_stops() {
    let it = RuntimeFolder::new("info");
    let one = it.instance("one", COUNTING);
    let text = it.output(&["ctl", "one", "info"]);
    let value = |name: &str| {
        let row = text.lines().find_map(|row| row.strip_prefix(name));
        row.unwrap_or_else(|| panic!("no {name} in {text}")).trim().to_owned()
    };
    assert_eq!((value("name"), value("process")), ("one".into(), one.id().to_string()));
    assert_eq!((value("configuration"), value("hot swaps")), ("one.click".into(), "0".into()));
    assert_eq!(value("version"), env!("CARGO_PKG_VERSION"));
    let info = it.json(&["ctl", "one", "info", "--json"]);
    assert_eq!((&info["name"], &info["pid"]), (&"one".into(), &one.id().into()));
    assert_eq!(info["workers"], 1);
    let elements = it.json(&["ctl", "one", "elements", "--json"]);
    assert_eq!(info["elements"].as_u64().unwrap() as usize, elements.as_array().unwrap().len());
    assert_eq!(it.output(&["ctl", "one", "stop"]), "");
    ends_well(one);
    assert!(!it.socket("one").exists());
    fails(&it.ctl(&["one", "stop"]), 1, &["there is no instance 'one'"]);
}

#[test]
fn cycles_are_counted_for_an_interval() {
    let it = RuntimeFolder::new("cycles");
    let _one = it.instance("one", COUNTING);
    let list = it.json(&["ctl", "one", "cycles", "--interval", "0.5", "--json"]);
    let row = list.as_array().unwrap().iter().find(|row| row["element"] == "c");
    let row = row.unwrap_or_else(|| panic!("{list}"));
    has_members(row, &["element", "class", "cycles", "calls"]);
    assert_eq!(row["class"], "Counter");
    assert!(row["cycles"].as_u64().unwrap() > 0 && row["calls"].as_u64().unwrap() > 0);
    assert_eq!(it.read("one", "count_cycles"), "false");
    let text = it.output(&["ctl", "one", "cycles", "--interval", "0.2"]);
    let title: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(title, ["ELEMENT", "CLASS", "CYCLES", "SHARE", "CALLS", "CYCLES/CALL"]);
    for interval in ["-1", "nan", "x"] {
        let result = it.ctl(&["one", "cycles", &format!("--interval={interval}")]);
        assert_eq!(result.status, Some(2), "{interval}: {}", result.err);
    }
}

#[test]
fn a_middlebox_of_any_name_obeys_its_language() {
    let it = RuntimeFolder::new("middlebox");
    let _one = it.instance("one", "Idle -> m :: Middlebox(all mod ip-ttl 9) -> Discard;");
    let middlebox = |words: &[&str]| it.output(&[&["ctl", "one", "middlebox"], words].concat());
    assert!(middlebox(&["list"]).contains("mod ip-ttl 9"));
    assert!(middlebox(&["add", "tcp-dport", "80", "drop"]).contains("add tcp-dport 80 drop"));
    assert!(middlebox(&["list"]).contains("tcp-dport 80"));
    fails(&it.ctl(&["one", "middlebox", "add", "all", "dorp"]), 1, &["did you mean `drop`?"]);
    fails(&it.ctl(&["one", "middlebox"]), 2, &["<WORDS>"]);
    let _none = it.instance("none", COUNTING);
    fails(&it.ctl(&["none", "middlebox", "list"]), 1, &["this configuration has no Middlebox"]);
}

#[test]
fn a_control_socket_of_an_element_reads_and_writes_and_no_more() {
    let it = RuntimeFolder::new("element");
    let path = it.0.join("plain");
    let path = path.to_str().unwrap();
    let config = format!("{COUNTING} ControlSocket(UNIX, {path});");
    let _one = it.instance("one", &config);
    it.output(&["ctl", "one", "write", "count_cycles", "true"]);
    wait_until("no cycles are counted", || {
        it.read("one", "element_cycles.csv").contains("\nc,Counter,")
    });
    // A global handler with a point in its name.
    for socket in [path, it.socket("one").to_str().unwrap()] {
        let table = it.read(socket, "element_cycles.csv");
        assert!(table.starts_with("name,class,") && table.contains("\nc,Counter,"), "{table}");
        let answer = talk(socket.as_ref(), "READ element_cycles.csv\nCHECKREAD class_cycles.csv\n");
        assert!(
            answer.starts_with("200 Read handler 'element_cycles.csv' OK\r\nDATA "),
            "{answer}"
        );
        assert!(answer.ends_with("200 Read handler 'class_cycles.csv' OK\r\n"), "{answer}");
        let answer = talk(socket.as_ref(), "READ nobody.csv\n");
        assert_eq!(answer, "510 No element named 'nobody'\r\n");
    }
    it.output(&["ctl", path, "write", "q.capacity", "11"]);
    assert_eq!(it.read("one", "q.capacity"), "11");
    for words in [&["info"][..], &["stop"], &["reload"], &["log"], &["drops"], &["top", "--once"]] {
        let result = it.ctl(&[&[path], words].concat());
        fails(&result, 1, &["this control socket belongs to an element"]);
    }
    let answer = talk(path.as_ref(), "CHECKREAD instance\nWRITE terminate\nREAD snapshot\n");
    assert_eq!(answer.matches("511 No handler named").count(), 3, "{answer}");
    assert_eq!(it.read("one", "c.class"), "Counter");
}

#[test]
fn handlers_of_the_instance_are_global_ones() {
    let it = RuntimeFolder::new("global");
    let one = it.instance("one", COUNTING);
    let socket = it.socket("one");
    for name in ["instance", "0.instance", ".instance"] {
        let said = talk(&socket, &format!("CHECKREAD {name}\nREAD {name}\n"));
        let ok = format!("200 Read handler '{name}' OK\r\n");
        assert!(said.starts_with(&format!("{ok}{ok}DATA ")), "{said}");
        let (_, value) = said.rsplit_once("\r\n").unwrap();
        let value: serde_json::Value = serde_json::from_str(value).unwrap();
        assert_eq!(value["pid"], one.id());
    }
    for name in ["snapshot", "drop_report", "log"] {
        let said = talk(&socket, &format!("CHECKREAD {name}\n"));
        assert_eq!(said, format!("200 Read handler '{name}' OK\r\n"));
    }
    for name in ["reload", "terminate", "0.terminate"] {
        let said = talk(&socket, &format!("CHECKWRITE {name}\n"));
        assert_eq!(said, format!("200 Write handler '{name}' OK\r\n"));
    }
    // Not of an element, and not in the other direction.
    for said in [
        "CHECKREAD 1.instance",
        "READ 1.instance",
        "READ c.instance",
        "CHECKREAD reload",
        "READ terminate",
        "CHECKWRITE snapshot",
        "WRITE instance x",
    ] {
        let answer = talk(&socket, &format!("{said}\n"));
        assert!(answer.starts_with("511 "), "{said}: {answer}");
    }
    let answer = talk(&socket, "READ log x\n");
    assert!(answer.starts_with("590-") && answer.contains("the number of a line"), "{answer}");
}
