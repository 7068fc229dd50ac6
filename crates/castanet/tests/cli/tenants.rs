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
        let mut client = command();
        client.args(["ctl", "it"]).args(words).env("RUNTIME_DIRECTORY", self.path(""));
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
