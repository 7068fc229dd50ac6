//! Access to the socket of an instance, and addresses at which it cannot listen.

use super::{COUNTING, RuntimeFolder, fails};
use crate::control::PATIENCE;
use nix::unistd::{Group, getegid, geteuid};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// A configuration that says when it runs.
const TELLING: &str = "Idle -> Discard; Script(print \"it has started\");";

/// Permissions, owner and group of a socket.
fn access(path: &Path) -> (u32, u32, u32) {
    let it = path.symlink_metadata().unwrap();
    assert!(it.file_type().is_socket());
    (it.mode() & 0o7777, it.uid(), it.gid())
}

/// Insists that `castanet run` with these words fails with this status and these words, and did not
/// run.
#[track_caller]
fn is_refused(it: &RuntimeFolder, words: &[&str], status: i32, told: &[&str]) {
    let result = it.client(&[&["run"], words].concat(), "");
    fails(&result, status, told);
    let said = result.out + &result.err;
    assert!(!said.contains("started") && !said.contains(super::RUNNING), "{said}");
}

#[test]
fn only_the_user_and_a_group_may_connect() {
    let it = RuntimeFolder::new("mode");
    let _one = it.instance("one", COUNTING);
    let own = (geteuid().as_raw(), getegid().as_raw());
    assert_eq!(access(&it.socket("one")), (0o600, own.0, own.1));
    let folder = it.0.join("run").metadata().unwrap();
    assert_eq!(folder.mode() & 0o022, 0, "others may not replace sockets");
    // Root can give a socket to any group.
    let daemon = Group::from_name("daemon").unwrap().filter(|_| geteuid().is_root());
    let (name, number) = daemon.map_or((own.1.to_string(), own.1), |it| (it.name, it.gid.as_raw()));
    for (instance, group) in [("by-name", name), ("by-number", number.to_string())] {
        let _one = it.run(&["--name", instance, "--control-group", &group, "one.click"]);
        assert_eq!(access(&it.socket(instance)), (0o660, own.0, number));
        assert_eq!(it.read(instance, "c.class"), "Counter");
    }
    let elsewhere = it.0.join("elsewhere");
    let path = elsewhere.to_str().unwrap();
    let _two = it.run(&["--control", path, "--control-group", &number.to_string(), "one.click"]);
    assert_eq!(access(&elsewhere), (0o660, own.0, number));
    is_refused(&it, &["--control-group", "no-such-group", "one.click"], 2, &["no-such-group"]);
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    let it = RuntimeFolder::new("taken");
    let _one = it.instance("one", COUNTING);
    it.write("two.click", TELLING);
    let path = it.socket("one");
    let taken = format!("{}: another instance listens there", path.display());
    is_refused(&it, &["--control", path.to_str().unwrap(), "two.click"], 1, &[&taken]);
    is_refused(&it, &["--name", "one", "two.click"], 1, &[&taken]);
    assert_eq!(it.read("one", "c.class"), "Counter");
    // A file that is no socket stays as it is.
    let file = it.write("run/file.sock", "mine");
    for words in [&["--control", file.to_str().unwrap()][..], &["--name", "file"]] {
        let told = ["file.sock: ", "no socket"];
        is_refused(&it, &[words, &["two.click"]].concat(), 1, &told);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    }
    // Clients leave it alone, too.
    it.ctl(&[]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    let long = it.0.join("x".repeat(120));
    let told = ["may have 107 bytes", long.to_str().unwrap()];
    is_refused(&it, &["--control", long.to_str().unwrap(), "two.click"], 1, &told);
    let nowhere = it.0.join("nowhere/socket");
    let told = ["nowhere/socket", "No such file or directory"];
    is_refused(&it, &["--control", nowhere.to_str().unwrap(), "two.click"], 1, &told);
}

#[test]
fn a_killed_instance_leaves_a_socket_that_the_next_takes_over() {
    let it = RuntimeFolder::new("killed");
    let elsewhere = it.0.join("elsewhere");
    let path = elsewhere.to_str().unwrap();
    let kill = |mut process: castanet_lab::Process| {
        process.kill();
        process.wait(PATIENCE).unwrap();
    };
    kill(it.instance("one", COUNTING));
    kill(it.run(&["--control", path, "one.click"]));
    assert!(it.socket("one").exists() && elsewhere.exists());
    fails(&it.ctl(&[path, "info"]), 1, &[path, "Connection refused"]);
    let one = it.run(&["one.click"]);
    let two = it.run(&["--control", path, "one.click"]);
    assert_eq!(it.json(&["ctl", "one", "info", "--json"])["pid"], one.id());
    assert_eq!(it.json(&["ctl", path, "info", "--json"])["pid"], two.id());
    // Clients do not list the dead.
    kill(one);
    assert_eq!(it.output(&["ctl", "--json"]), "[]\n");
    fails(&it.ctl(&["one", "info"]), 1, &["there is no instance 'one'"]);
}

#[test]
fn a_directory_that_cannot_be_used_matters_only_to_a_user_who_asks() {
    let it = RuntimeFolder::new("unwritable");
    it.write("one.click", COUNTING);
    let file = it.write("file", "mine");
    let nowhere = it.0.join("nowhere/nowhere");
    for directory in ["/proc/self", file.to_str().unwrap(), nowhere.to_str().unwrap()] {
        let command = |words: &[&str]| {
            it.command(&[&["run"], words, &["one.click"]].concat())
                .env("RUNTIME_DIRECTORY", directory)
        };
        let mut one = command(&[]).spawn().unwrap();
        one.wait_for(super::RUNNING, PATIENCE).unwrap();
        let said = one.stderr();
        let warning = "castanet: no control socket for `castanet ctl`: ";
        assert!(said.contains(warning) && said.contains(directory), "{said}");
        one.interrupt();
        super::ends_well(one);
        let refused = command(&["--name", "one"]).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{}", refused.printed());
        assert!(refused.stderr.contains(directory), "{}", refused.stderr);
        assert!(!refused.stderr.contains(super::RUNNING), "{}", refused.stderr);
        // A path needs no directory.
        let path = it.0.join("elsewhere");
        let mut two = command(&["--control", path.to_str().unwrap()]).spawn().unwrap();
        two.wait_for(super::RUNNING, PATIENCE).unwrap();
        assert!(!two.stderr().contains(warning), "{}", two.stderr());
        two.interrupt();
        super::ends_well(two);
    }
}

#[test]
fn there_is_no_socket_where_none_is_wanted() {
    let it = RuntimeFolder::new("no-control");
    it.write("one.click", COUNTING);
    let entries = || std::fs::read_dir(it.0.join("run")).unwrap().count();
    let one = it.run(&["--no-control", "one.click"]);
    assert_eq!((entries(), it.output(&["ctl", "--json"]).as_str()), (0, "[]\n"));
    one.interrupt();
    super::ends_well(one);
    // Simulated time has no clients.
    it.write("two.click", TELLING);
    it.write("three.click", "Idle -> Discard; Script(print \"it has started\", stop);");
    for words in [&["--name", "one"][..], &["--control", "elsewhere"]] {
        is_refused(&it, &[&["--simtime"], words, &["two.click"]].concat(), 2, &["--simtime"]);
        is_refused(&it, &[&["--no-control"], words, &["two.click"]].concat(), 2, &["--no-control"]);
    }
    assert_eq!(it.output(&["run", "--simtime", "three.click"]), "it has started\n");
    assert!(!it.0.join("elsewhere").exists() && entries() == 0);
    for name in ["", ".one", "../one", "a b", &"x".repeat(65)] {
        is_refused(&it, &["--name", name, "two.click"], 2, &["--name"]);
    }
}
