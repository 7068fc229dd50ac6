//! Instances are listed and found.

use super::{COUNTING, RuntimeFolder, ends_well, fails, has_members};
use crate::control::PATIENCE;
use castanet_lab::Process;

/// Members of an instance in the list.
const MEMBERS: &[&str] = &[
    "control_version",
    "name",
    "pid",
    "version",
    "configuration",
    "workers",
    "elements",
    "started",
    "uptime",
    "replaced",
];

#[test]
fn two_instances_of_one_file_are_listed_under_two_names() {
    let it = RuntimeFolder::new("list");
    let first = it.instance("router", COUNTING);
    let second = it.run(&["-j", "2", "router.click"]);
    let text = it.output(&["ctl"]);
    let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split_whitespace().collect()).collect();
    let title = ["NAME", "PID", "UP", "WORKERS", "ELEMENTS", "VERSION", "CONFIGURATION"];
    assert_eq!((rows.len(), &rows[0][..]), (3, &title[..]), "{text}");
    for (row, name, process, workers) in
        [(&rows[1], "router", &first, "1"), (&rows[2], "router-2", &second, "2")]
    {
        let id = process.id().to_string();
        // The time has a unit behind it.
        assert_eq!((row[0], row[1], row[4]), (name, id.as_str(), workers), "{text}");
        assert_eq!((row[6], row[7]), (env!("CARGO_PKG_VERSION"), "router.click"), "{text}");
    }
    assert_eq!(it.output(&["ctl", "list"]).lines().count(), 3);
    for words in
        [&["ctl", "--json"][..], &["ctl", "list", "--json"], &["ctl", "router", "list", "--json"]]
    {
        let list = it.json(words);
        let list = list.as_array().unwrap();
        assert_eq!(list.len(), 2);
        list.iter().for_each(|instance| has_members(instance, MEMBERS));
        assert_eq!((&list[0]["name"], &list[1]["name"]), (&"router".into(), &"router-2".into()));
        assert_eq!(list[0]["pid"], first.id());
        assert_eq!((&list[1]["workers"], &list[1]["replaced"]), (&2.into(), &0.into()));
        assert!(list[0]["uptime"].as_f64().unwrap() > 0.0);
        assert_eq!(list[0]["elements"], list[1]["elements"]);
    }
    // The name of one that has ended is free.
    it.output(&["ctl", "router", "stop"]);
    ends_well(first);
    let _third = it.run(&["router.click"]);
    let names = it.json(&["ctl", "--json"]);
    assert_eq!((&names[0]["name"], &names[1]["name"]), (&"router".into(), &"router-2".into()));
}

#[test]
fn instances_that_start_at_once_have_names_of_their_own() {
    const COUNT: usize = 8;
    let it = RuntimeFolder::new("many");
    it.write("same.click", "Idle -> Discard;");
    let start = |_| it.command(&["run", "same.click"]).spawn().unwrap();
    let mut all: Vec<Process> = (0..COUNT).map(start).collect();
    all.iter_mut().for_each(|it| it.wait_for(super::RUNNING, PATIENCE).unwrap());
    let list = it.json(&["ctl", "--json"]);
    let mut ids: Vec<u64> =
        list.as_array().unwrap().iter().map(|it| it["pid"].as_u64().unwrap()).collect();
    let mut expected: Vec<u64> = all.iter().map(|it| u64::from(it.id())).collect();
    ids.sort_unstable();
    expected.sort_unstable();
    assert_eq!(ids, expected, "{list}");
}

#[test]
fn one_is_found_by_name_by_path_and_alone() {
    let it = RuntimeFolder::new("find");
    let one = it.instance("one", COUNTING);
    let path = it.socket("one").display().to_string();
    for target in [&[][..], &["one"], &[&path], &["run/one.sock"]] {
        let words = [&["ctl"], target, &["read", "c.class"]].concat();
        assert_eq!(it.output(&words), "Counter\n", "{target:?}");
    }
    assert!(it.output(&["top", "--once", "--interval", "0.1"]).contains("Counter"));
    assert_eq!(it.output(&["drops", "one", "--interval", "0"]), "No packet was dropped.\n");
    // The user names it.
    let named = it.run(&["--name", "other.name", "one.click"]);
    let elsewhere = it.0.join("elsewhere");
    let third = it.run(&["--control", elsewhere.to_str().unwrap(), "one.click"]);
    assert_eq!(it.read("other.name", "c.class"), "Counter");
    assert_eq!(it.read(elsewhere.to_str().unwrap(), "c.class"), "Counter");
    assert_eq!(it.json(&["ctl", "--json"]).as_array().unwrap().len(), 2);
    assert_eq!(it.json(&["ctl", "./elsewhere", "info", "--json"])["pid"], third.id());
    assert_eq!(it.json(&["ctl", "other.name", "info", "--json"])["pid"], named.id());
    // Several, and no name.
    for words in [&["ctl", "info"][..], &["top", "--once"], &["drops"]] {
        let all = "several instances run here: name one of one, other.name";
        fails(&it.client(words, ""), 2, &[all]);
    }
    for name in ["one", "other.name", "./elsewhere"] {
        it.output(&["ctl", name, "stop"]);
    }
    for process in [one, named, third] {
        ends_well(process);
    }
    assert!(!it.socket("one").exists() && !elsewhere.exists());
}

#[test]
fn names_that_no_instance_has_are_told_with_a_suggestion() {
    let it = RuntimeFolder::new("none");
    let none = "no instance runs here; `castanet run` starts one";
    fails(&it.ctl(&["info"]), 1, &[none]);
    fails(&it.client(&["top", "--once"], ""), 1, &[none]);
    fails(&it.client(&["drops"], ""), 1, &[none]);
    fails(&it.ctl(&["router", "info"]), 1, &["there is no instance 'router'", "none runs here"]);
    assert_eq!(it.output(&["ctl"]), "No instance runs here. `castanet run` starts one.\n");
    assert_eq!(it.output(&["ctl", "--json"]), "[]\n");
    let _one = it.instance("router", COUNTING);
    let near = "there is no instance 'ruoter', and no command of this name; did you mean 'router'?";
    fails(&it.ctl(&["ruoter", "info"]), 1, &[near]);
    fails(&it.ctl(&["ruoter"]), 1, &[near]);
    fails(&it.client(&["top", "ruoter", "--once"], ""), 1, &["did you mean 'router'?"]);
    fails(&it.ctl(&["zzzzzzzz", "info"]), 1, &["there is no instance 'zzzzzzzz'", "router"]);
    fails(&it.ctl(&["./nothing", "info"]), 1, &["./nothing: No such file or directory"]);
    fails(&it.ctl(&["router", "raed", "c.count"]), 2, &["raed", "read"]);
    fails(&it.ctl(&["--bogus"]), 2, &["--bogus"]);
}

#[test]
fn the_name_click_listens_too() {
    let it = RuntimeFolder::new("click");
    it.write("old.click", COUNTING);
    let program = crate::program::link("click");
    let process = castanet_lab::Command::on_host(&program)
        .current_dir(&it.0)
        .env("RUNTIME_DIRECTORY", it.0.join("run"))
        .arg("old.click")
        .timeout(PATIENCE)
        .spawn()
        .unwrap();
    crate::program::wait_until("nobody listens", || it.socket("old").exists());
    assert_eq!(it.json(&["ctl", "old", "info", "--json"])["pid"], process.id());
    assert_eq!(it.read("old", "c.class"), "Counter");
    it.output(&["ctl", "old", "stop"]);
    process.finish(PATIENCE).unwrap();
    assert!(!it.socket("old").exists());
}
