//! A configuration file is read again: by `castanet ctl reload`, and at SIGHUP.

use super::{COUNTING, RuntimeFolder, ends_well, fails, hang_up};
use crate::control::PATIENCE;
use crate::program::wait_until;

/// Five packets are counted.
const FIVE: &str = "s :: InfiniteSource(LIMIT 5, DATA abc) -> c :: Counter -> d :: Discard;\n";
/// No packet comes, and another element is there.
const MORE: &str = "i :: Idle -> c :: Counter -> more :: Null -> d :: Discard;\n";
const BROKEN: &str = "i :: Idle -> c :: Counter -> Bluh(1) -> d :: Discard;\n";
/// The error about it.
const ERROR: &[&str] = &[
    "error: undeclared element 'Bluh'",
    "one.click:1:30",
    "\n1 | i :: Idle -> c :: Counter -> Bluh(1) -> d :: Discard;\n",
    "\n  |                              ^^^^",
];

/// An instance that has counted five packets.
fn counted(it: &RuntimeFolder) -> castanet_lab::Process {
    let process = it.instance("one", FIVE);
    wait_until("the packets do not come", || it.number("one", "c.count") == 5);
    process
}

#[test]
fn a_changed_file_replaces_the_configuration_and_keeps_its_state() {
    let it = RuntimeFolder::new("reload");
    let mut one = counted(&it);
    it.write("one.click", MORE);
    assert_eq!(it.output(&["ctl", "one", "reload"]), "");
    assert_eq!(it.read("one", "more.class"), "Null");
    assert_eq!(it.number("one", "c.count"), 5);
    assert_eq!(it.json(&["ctl", "one", "info", "--json"])["replaced"], 1);
    assert!(it.output(&["ctl", "one", "config"]).contains("more :: Null"));
    one.wait_for("castanet: one.click runs anew", PATIENCE).unwrap();
    // A broken file replaces nothing.
    it.write("one.click", BROKEN);
    let result = it.ctl(&["one", "reload"]);
    fails(&result, 1, ERROR);
    assert_eq!((it.number("one", "c.count"), it.read("one", "more.class")), (5, "Null".into()));
    assert_eq!(it.json(&["ctl", "one", "info", "--json"])["replaced"], 1);
    std::fs::remove_file(it.0.join("one.click")).unwrap();
    fails(&it.ctl(&["one", "reload"]), 1, &["one.click", "No such file or directory"]);
    assert_eq!(it.number("one", "c.count"), 5);
    it.output(&["ctl", "one", "stop"]);
    ends_well(one);
}

#[test]
fn a_file_that_an_element_cannot_open_refuses_the_configuration() {
    let it = RuntimeFolder::new("open");
    let mut one = counted(&it);
    let file = it.0.join("nowhere/file");
    let config = format!("{MORE}Idle -> p :: IPPrint(OUTFILE {}) -> Discard;\n", file.display());
    it.write("one.click", &config);
    let told = ["p :: IPPrint: OUTFILE: ", "nowhere/file: No such file or directory"];
    fails(&it.ctl(&["one", "reload"]), 1, &told);
    hang_up(&one);
    one.wait_for("castanet: the running configuration stays", PATIENCE).unwrap();
    told.iter().for_each(|words| assert!(one.stderr().contains(words), "{}", one.stderr()));
    fails(&it.ctl(&["one", "read", "more.class"]), 1, &["No element named 'more'"]);
    assert_eq!(it.number("one", "c.count"), 5);
}

#[test]
fn another_file_is_named_from_the_directory_of_the_client() {
    let it = RuntimeFolder::new("relative");
    let _one = counted(&it);
    let elsewhere = it.0.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    it.write("elsewhere/two.click", MORE);
    let reload =
        |words: &[&str]| it.client_in(&elsewhere, &[&["ctl", "one", "reload"], words].concat(), "");
    let result = reload(&["two.click"]);
    assert_eq!((result.status, result.err.as_str()), (Some(0), ""));
    assert_eq!((it.number("one", "c.count"), it.read("one", "more.class")), (5, "Null".into()));
    let runs = |name: &str| {
        it.json(&["ctl", "one", "info", "--json"])["configuration"]
            .as_str()
            .unwrap()
            .ends_with(name)
    };
    assert!(runs("elsewhere/two.click"));
    fails(&reload(&["one.click"]), 1, &["elsewhere/one.click", "No such file or directory"]);
    it.write("elsewhere/bad.click", BROKEN);
    fails(&reload(&["bad.click"]), 1, &["elsewhere/bad.click:1:30", "^^^^"]);
    fails(&reload(&["two.click", "more"]), 2, &["more"]);
    // Without a name it is the file of the command line again.
    assert_eq!(reload(&[]).status, Some(0));
    fails(&it.ctl(&["one", "read", "more.class"]), 1, &["No element named 'more'"]);
    assert!(runs("one.click") && !runs("elsewhere/one.click"));
}

#[test]
fn sighup_reads_the_file_again() {
    let it = RuntimeFolder::new("sighup");
    let mut one = counted(&it);
    let anew = |times: usize, one: &castanet_lab::Process| {
        wait_until("SIGHUP does nothing", || {
            one.stderr().matches("castanet: one.click runs anew\n").count() == times
        });
    };
    it.write("one.click", MORE);
    hang_up(&one);
    anew(1, &one);
    assert_eq!((it.number("one", "c.count"), it.read("one", "more.class")), (5, "Null".into()));
    it.write("one.click", BROKEN);
    hang_up(&one);
    one.wait_for("castanet: the running configuration stays\n", PATIENCE).unwrap();
    let said = one.stderr();
    ERROR.iter().for_each(|words| assert!(said.contains(words), "no {words:?} in {said}"));
    assert_eq!((it.number("one", "c.count"), it.read("one", "more.class")), (5, "Null".into()));
    // It goes on as before.
    it.write("one.click", FIVE);
    hang_up(&one);
    anew(2, &one);
    fails(&it.ctl(&["one", "read", "more.class"]), 1, &["No element named 'more'"]);
    one.interrupt();
    let said = ends_well(one);
    assert_eq!(said.matches("the running configuration stays").count(), 1, "{said}");
}

#[test]
fn sighup_reads_the_file_again_without_a_control_socket() {
    let it = RuntimeFolder::new("sighup-alone");
    it.write("one.click", COUNTING);
    let mut one = it.run(&["--no-control", "one.click"]);
    assert!(!it.socket("one").exists());
    it.write("one.click", &format!("{COUNTING} Script(print \"it is new\");"));
    hang_up(&one);
    one.wait_for("it is new\n", PATIENCE).unwrap();
    one.wait_for("castanet: one.click runs anew\n", PATIENCE).unwrap();
    one.interrupt();
    ends_well(one);
}

#[test]
fn sighup_ends_a_router_without_a_file() {
    let it = RuntimeFolder::new("sighup-text");
    let one = it.run(&["-e", COUNTING, "--name", "one"]);
    fails(&it.ctl(&["one", "reload"]), 1, &["did not come from a file"]);
    assert!(one.id() > 0 && it.read("one", "c.class") == "Counter");
    hang_up(&one);
    let said = ends_well(one);
    assert!(!said.contains("anew") && !it.socket("one").exists(), "{said}");
    // Another file may replace it.
    let two = it.run(&["-e", COUNTING, "--name", "two"]);
    it.write("two.click", MORE);
    it.output(&["ctl", "two", "reload", "two.click"]);
    assert_eq!(it.read("two", "more.class"), "Null");
    drop(two);
}

#[test]
fn hotconfig_takes_the_option_that_allows_it() {
    let it = RuntimeFolder::new("hotconfig");
    let _one = it.instance("one", COUNTING);
    let socket = it.socket("one");
    for said in ["CHECKWRITE hotconfig\n", "WRITE hotconfig Idle -> Discard\n"] {
        let answer = crate::control::talk(&socket, said);
        assert!(answer.starts_with('5') && answer.contains("hotconfig"), "{answer}");
    }
    assert_eq!(it.read("one", "c.class"), "Counter");
    let _two = it.run(&["-R", "--name", "two", "one.click"]);
    it.output(&["ctl", "two", "write", "hotconfig", MORE]);
    assert_eq!(it.read("two", "more.class"), "Null");
    // It came from elsewhere than the file, which is still there to be read.
    it.output(&["ctl", "two", "reload"]);
    fails(&it.ctl(&["two", "read", "more.class"]), 1, &["No element named 'more'"]);
}
