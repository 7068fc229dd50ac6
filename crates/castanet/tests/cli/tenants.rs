//! `castanet tenants` without devices: names of addresses, which each tenant has for itself.

use crate::program::{RunResult, castanet, command, folder, run};
use castanet_lab::Process;
use std::path::PathBuf;
use std::time::Duration;

/// A folder with a system file of the tenants `red` and `blue`.
struct SystemFolder(PathBuf);

impl SystemFolder {
    /// The folder; `keys` are further keys of both tenants.
    fn new(name: &str, keys: &str) -> SystemFolder {
        let it = SystemFolder(folder(&format!("tenants-{name}-{}", std::process::id())));
        let table = |tenant| format!("[tenant.{tenant}]\nfile = \"{tenant}.click\"\n{keys}\n");
        it.write("it.toml", &(table("red") + &table("blue")));
        it
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    fn write_both(&self, red: &str, blue: &str) {
        self.write("red.click", red);
        self.write("blue.click", blue);
    }

    fn check(&self) -> RunResult {
        castanet(&["tenants", "check", &self.path("it.toml")], b"")
    }

    fn start(&self) -> Process {
        let program = castanet_lab::Command::on_host(env!("CARGO_BIN_EXE_castanet"));
        let program = program.args(["tenants", "run", &self.path("it.toml")]);
        let mut process = program.env("RUNTIME_DIRECTORY", self.path("")).spawn().unwrap();
        process.wait_for("castanet: running", Duration::from_secs(60)).unwrap();
        process
    }

    fn ctl(&self, words: &[&str]) -> RunResult {
        self.client(&[&["ctl", "it"], words].concat())
    }

    /// A client of the running system, in the folder.
    fn client(&self, words: &[&str]) -> RunResult {
        let mut client = command();
        client.args(words).current_dir(&self.0).env("RUNTIME_DIRECTORY", self.path(""));
        run(&mut client, b"")
    }

    /// The value of a read handler.
    fn read(&self, handler: &str) -> String {
        let answer = self.ctl(&["read", handler]);
        assert_eq!(answer.status, Some(0), "{}", answer.err);
        answer.out.trim_end().to_owned()
    }
}

impl Drop for SystemFolder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A tenant with the name `gate`.
fn tenant(address: &str) -> String {
    format!(
        "AddressInfo(gate {address}); PortInfo(web 80); AnnotationInfo(MINE 40);
         IPRewriterPatterns(out gate 1024-65535# - -);
         InfiniteSource(LIMIT 3, STOP false) -> c :: Counter -> Paint(1, MINE) -> Discard;
         Idle -> e :: IPEncap(4, gate, 1.0.0.1) -> x :: IPRewriter(pattern out 0 0) -> Discard;"
    )
}

#[test]
fn tenants_know_no_names_of_the_host_and_of_each_other() {
    // Loopback has this address on every machine.
    let plain = "Idle -> EtherEncap(0x0800, lo:eth, 0:0:0:0:0:1) -> Discard";
    let known = castanet(&["check", "-e", plain], b"");
    assert_eq!(known.status, Some(0), "{}", known.err);
    for keys in ["", "isolation = \"process\""] {
        let it = SystemFolder::new("check", keys);
        it.write_both(&tenant("10.0.0.1"), &tenant("10.7.0.1"));
        let right = it.check();
        assert_eq!(right.status, Some(0), "{keys}: {}", right.err);
        for (red, wanted) in [
            (plain, "`lo:eth` is not an Ethernet address"),
            ("Idle -> IPEncap(4, lo:ip, 1.0.0.1) -> Discard", "`lo:ip` is not an IPv4 address"),
            ("Idle -> IPEncap(4, gate, 1.0.0.1) -> Discard", "`gate` is not an IPv4 address"),
        ] {
            it.write("red.click", red);
            let wrong = it.check();
            assert_eq!(wrong.status, Some(1), "{keys} {red}");
            assert!(wrong.err.contains(wanted), "{keys} {red}: {}", wrong.err);
            assert!(wrong.err.contains("red.click:1"), "{keys} {red}: {}", wrong.err);
        }
    }
}

#[test]
fn a_reload_with_other_names_of_one_tenant_leaves_the_other_alone() {
    let it = SystemFolder::new("reload", "");
    it.write_both(&tenant("10.0.0.1"), &tenant("10.7.0.1"));
    let process = it.start();
    assert_eq!(
        (it.read("red/e.src"), it.read("blue/e.src")),
        ("10.0.0.1".into(), "10.7.0.1".into())
    );
    for tenant in ["red", "blue"] {
        let handler = format!("{tenant}/e.src");
        assert_eq!(it.ctl(&["write", &handler, "1.2.3.4"]).status, Some(0));
        // A name of this tenant, and one of no tenant.
        assert_eq!(it.ctl(&["write", &format!("{tenant}/e.dst"), "gate"]).status, Some(0));
        let refused = it.ctl(&["write", &handler, "lo:ip"]);
        assert_ne!(refused.status, Some(0));
        assert!(refused.err.contains("invalid IP address"), "{}", refused.err);
    }
    assert_eq!(
        (it.read("red/e.dst"), it.read("blue/e.dst")),
        ("10.0.0.1".into(), "10.7.0.1".into())
    );
    it.write("red.click", &tenant("10.0.0.2"));
    let reloaded = it.ctl(&["reload"]);
    assert_eq!(reloaded.status, Some(0), "{}", reloaded.err);
    crate::program::wait_until("no reload", || it.read("red/e.src") == "10.0.0.2");
    assert_eq!(
        (it.read("blue/e.src"), it.read("blue/e.dst")),
        ("1.2.3.4".into(), "10.7.0.1".into())
    );
    assert_eq!(it.read("blue/c.count"), "3");
    drop(process);
}

#[test]
fn elements_work_with_others_of_their_own_tenant_only() {
    let it = SystemFolder::new("partners", "");
    let host = "Idle -> TCPDemux -> [0] c :: TCPConn -> Discard; c [2] -> Discard;
                Idle -> Queue -> [1] c [1] -> Unqueue -> Discard;";
    let bridge = "t :: EtherSpanTree(0:0:0:0:0:1, i, o, s); Idle -> t -> Discard;
                  Idle -> i :: Suppressor -> s :: EtherSwitch -> o :: Suppressor -> Discard;";
    it.write_both(&host.replace("TCPDemux -> ", ""), host);
    let error = it.check();
    assert_eq!(error.status, Some(1));
    assert!(error.err.contains("there is no TCPDemux before input 0"), "{}", error.err);
    it.write_both(bridge, &bridge.replace("(0:0:0:0:0:1, i,", "(0:0:0:0:0:1, red/i,"));
    let error = it.check();
    assert_eq!(error.status, Some(1));
    assert!(error.err.contains("no element named 'red/i'"), "{}", error.err);
    let both = format!("{host}\n{bridge}");
    it.write_both(&both, &both);
    let router = it.start();
    for tenant in ["red", "blue"] {
        assert_eq!(it.read(&format!("{tenant}/t.states")), "0 listen");
        assert_eq!(it.read(&format!("{tenant}/i.active0")), "false");
    }
    let listens = it.ctl(&["write", "red/c.ctrl", "listen 1.0.0.1 80"]);
    assert_eq!(listens.status, Some(0), "{}", listens.err);
    assert_eq!(
        (it.read("red/c.state"), it.read("blue/c.state")),
        ("listen".into(), "closed".into())
    );
    // Each tenant has a table of connections of its own.
    let listens = it.ctl(&["write", "blue/c.ctrl", "listen 1.0.0.1 80"]);
    assert_eq!(listens.status, Some(0), "{}", listens.err);
    drop(router);
}

/// A tenant whose elements are named as it says.
fn counter(name: &str) -> String {
    format!("InfiniteSource(LIMIT 3, STOP false) -> {name} :: Counter -> Discard;")
}

/// The system file of `red` and `blue` with these control sockets.
fn with_sockets(red: &str, blue: &str) -> String {
    let table = |tenant: &str, control: &str| {
        format!("[tenant.{tenant}]\nfile = \"{tenant}.click\"\ncontrol = {{ {control} }}\n")
    };
    table("red", red) + &table("blue", blue)
}

impl SystemFolder {
    /// Asserts that these tenants answer at these sockets, each with its own elements.
    fn assert_answers(&self, sockets: [&str; 2]) {
        for (socket, tenant) in sockets.into_iter().zip(["red", "blue"]) {
            let answer =
                self.client(&["ctl", &format!("./{socket}"), "read", &format!("{tenant}.count")]);
            assert_eq!((answer.out.trim(), answer.status), ("3", Some(0)), "{}", answer.err);
        }
    }
}

#[test]
fn a_control_socket_that_cannot_be_made_is_refused_before_anything_changes() {
    let it = SystemFolder::new("sockets", "");
    it.write_both(&counter("red"), &counter("blue"));
    let (red, blue) = ("socket = \"red.sock\"", "socket = \"blue.sock\"");
    it.write("it.toml", &with_sockets(red, blue));
    let router = it.start();
    it.assert_answers(["red.sock", "blue.sock"]);
    it.write("file.sock", "no socket");
    let long = format!("socket = \"{}.sock\"", "x".repeat(120));
    let other = "socket = \"red.sock\", group = \"nobody-has-this-name\"";
    for (control, wanted, is_checked) in [
        ("socket = \"missing/red.sock\"", "missing/red.sock: No such file or directory", false),
        ("socket = \"file.sock\"", "a file has this name", false),
        (other, "there is no group 'nobody-has-this-name'", true),
        (&*long, "the name of a socket may have 107 bytes", true),
        ("socket = \"\"", "is not a path in quotation marks, and not empty", true),
    ] {
        it.write("it.toml", &with_sockets(control, "socket = \"new.sock\""));
        it.write("red.click", &counter("other"));
        let refused = it.ctl(&["reload"]);
        assert_eq!(refused.status, Some(1), "{control}: {}", refused.err);
        for part in [wanted, "it.toml:3"] {
            assert!(refused.err.contains(part), "{control}: {}", refused.err);
        }
        it.assert_answers(["red.sock", "blue.sock"]);
        assert!(!it.0.join("new.sock").exists(), "{control}");
        let checked = it.check();
        assert_eq!(checked.err.contains(wanted), is_checked, "{control}: {}", checked.err);
    }
    // Each has the other's socket, and other quotas.
    it.write("red.click", &counter("red"));
    let quota = format!("{red}, commands_per_second = 50");
    it.write("it.toml", &with_sockets(blue, &quota));
    let reloaded = it.ctl(&["reload"]);
    assert_eq!(reloaded.status, Some(0), "{}", reloaded.err);
    it.assert_answers(["blue.sock", "red.sock"]);
    it.write("it.toml", &with_sockets(&format!("{blue}, group = \"0\""), &quota));
    assert_eq!(it.ctl(&["reload"]).status, Some(0));
    it.assert_answers(["blue.sock", "red.sock"]);
    let sockets = std::fs::read_dir(&it.0).unwrap().map(|file| file.unwrap().file_name());
    let mut sockets: Vec<_> = sockets.filter_map(|name| name.into_string().ok()).collect();
    sockets.retain(|name| name.contains("soc"));
    sockets.sort();
    assert_eq!(sockets, ["blue.sock", "file.sock", "it.sock", "red.sock"]);
    drop(router);
    it.write("it.toml", &with_sockets("socket = \"missing/red.sock\"", blue));
    let refused = it.client(&["tenants", "run", "it.toml"]);
    assert_eq!(refused.status, Some(1), "{}", refused.err);
    for part in ["missing/red.sock: No such file or directory", "it.toml:3", "make its folder"] {
        assert!(refused.err.contains(part), "{}", refused.err);
    }
}

#[test]
fn sockets_are_exchanged_whatever_their_files_are_called() {
    let it = SystemFolder::new("socket-files", "");
    it.write_both(&counter("red"), &counter("blue"));
    it.write("it.toml", &with_sockets("socket = \"s1\"", "socket = \"s2\""));
    let router = it.start();
    let reload = |red: &str, blue: &str| {
        it.write("it.toml", &with_sockets(red, blue));
        it.ctl(&["reload"])
    };
    // Names that differ in their last letter only.
    let reloaded = reload("socket = \"s2\"", "socket = \"s1\"");
    assert_eq!(reloaded.status, Some(0), "{}", reloaded.err);
    it.assert_answers(["s2", "s1"]);
    // Another name of a file that stays another tenant's.
    let refused = reload("socket = \"s2\"", "socket = \"./s2\"");
    assert_eq!(refused.status, Some(1), "{}", refused.out);
    assert!(refused.err.contains("another program listens there"), "{}", refused.err);
    it.assert_answers(["s2", "s1"]);
    // A file that somebody has removed.
    std::fs::remove_file(it.0.join("s2")).unwrap();
    let reloaded = reload("socket = \"s2\", group = \"0\"", "socket = \"s1\"");
    assert_eq!(reloaded.status, Some(0), "{}", reloaded.err);
    it.assert_answers(["s2", "s1"]);
    drop(router);
}

#[test]
fn a_socket_in_this_folder_needs_no_slash_unless_an_instance_has_its_name() {
    let it = SystemFolder::new("socket-names", "");
    it.write_both(&counter("red"), &counter("blue"));
    it.write("it.toml", &with_sockets("socket = \"it\"", "socket = \"blue.sock\""));
    let router = it.start();
    assert_eq!(it.client(&["ctl", "blue.sock", "read", "blue.count"]).out.trim(), "3");
    assert_eq!(it.client(&["ctl", "it", "read", "red/red.count"]).out.trim(), "3");
    assert_eq!(it.client(&["ctl", "./it", "read", "red.count"]).out.trim(), "3");
    let missing = it.client(&["ctl", "green.sock", "info"]);
    assert!(missing.err.contains("there is no instance 'green.sock'"), "{}", missing.err);
    drop(router);
}

#[test]
fn a_variable_that_an_installed_configuration_does_not_have_is_an_error() {
    let it = SystemFolder::new("variables", "");
    it.write_both(&counter("red"), &counter("blue"));
    it.write(
        "new.click",
        "InfiniteSource(LIMIT $many, STOP false) -> red :: Counter -> Discard(BURST $burst);",
    );
    let router = it.start();
    let install = |words: &[&str]| {
        it.client(&[&["tenants", "install", "red", "new.click", "burst=4"], words].concat())
    };
    let refused = install(&["many=5", "limit=5"]);
    assert_eq!(refused.status, Some(1), "{}", refused.err);
    let wanted = "limit=5: the configuration has no variable 'limit'";
    assert!(refused.err.contains(wanted), "{}", refused.err);
    assert!(refused.err.contains("it has burst, many"), "{}", refused.err);
    assert_eq!(it.read("red/red.count"), "3");
    let installed = install(&["many=5"]);
    assert_eq!(installed.status, Some(0), "{}", installed.err);
    drop(router);
}

#[test]
fn check_looks_for_the_key_and_the_store() {
    let it = SystemFolder::new("places", "");
    it.write_both(&counter("red"), &counter("blue"));
    let tenants = std::fs::read_to_string(it.path("it.toml")).unwrap();
    it.write("short.key", "0123");
    it.write("file", "");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(it.path("short.key"), private).unwrap();
    std::fs::create_dir(it.path("kept")).unwrap();
    assert_eq!(it.client(&["tenants", "key", "right.key"]).status, Some(0));
    for (key, store, wanted) in [
        ("right.key", "kept", ""),
        ("missing.key", "kept", "missing.key: No such file or directory"),
        ("short.key", "kept", "short.key: a key is 64 hexadecimal digits"),
        ("kept", "kept", "kept: "),
        ("right.key", "nowhere", "the store nowhere: No such file or directory"),
        ("right.key", "file", "the store file: "),
    ] {
        let head = format!("store = \"{store}\"\n[migration]\nkey = \"{key}\"\n");
        it.write("it.toml", &(head + &tenants));
        let checked = it.check();
        let status = if wanted.is_empty() { Some(0) } else { Some(1) };
        assert_eq!(checked.status, status, "{key} {store}: {}", checked.err);
        assert!(checked.err.contains(wanted), "{key} {store}: {}", checked.err);
        assert_eq!(checked.err.matches("error").count(), usize::from(!wanted.is_empty()));
    }
}

#[test]
fn the_help_of_tenants_is_about_system_files() {
    for command in ["check", "explain", "run"] {
        let help = castanet(&["tenants", command, "--help"], b"").out;
        assert!(
            help.contains(&format!("castanet tenants {command} [OPTIONS] SYSTEM.toml")),
            "{help}"
        );
        assert!(help.contains("The system file (TOML)"), "{help}");
        assert!(!help.contains("VAR=value") && !help.contains("--expression"), "{help}");
    }
    let help = castanet(&["tenants", "install", "--help"], b"").out;
    assert!(help.contains("in the Click language"), "{help}");
    // The first Ctrl-C ends a system in good order.
    let it = SystemFolder::new("ends", "");
    it.write_both(&counter("red"), &counter("blue"));
    let mut router = it.start();
    router.interrupt();
    assert_eq!(router.wait(Duration::from_secs(60)).unwrap().code(), Some(0));
    let help = castanet(&["tenants", "run", "--help"], b"").out;
    assert!(help.contains("0 ended in good order, as by Ctrl-C"), "{help}");
}
