//! `castanet run --confine` and `castanet explain --privileges`: a router keeps what its configuration
//! needs, and nothing else.

use crate::program::{castanet, command, folder, run, wait_until};
use castanet_lab::Process;
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// A folder with a configuration, a runtime directory, and files beside them.
struct ConfinedFolder(PathBuf);

impl ConfinedFolder {
    fn new(name: &str) -> ConfinedFolder {
        let folder = folder(&format!("confined-{name}-{}", std::process::id()));
        ["conf", "run", "out", "elsewhere"].iter().for_each(|it| {
            std::fs::create_dir_all(folder.join(it)).unwrap();
        });
        std::fs::write(folder.join("elsewhere/secret"), "secret").unwrap();
        ConfinedFolder(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes the configuration as an editor does: a new file takes the old one's name.
    fn write(&self, text: &str) {
        std::fs::write(self.0.join("conf/new"), text).unwrap();
        std::fs::rename(self.0.join("conf/new"), self.0.join("conf/it.click")).unwrap();
    }

    fn start(&self, text: &str, words: &[&str]) -> Process {
        self.write(text);
        let program = castanet_lab::Command::on_host(env!("CARGO_BIN_EXE_castanet"));
        let program = program.args(["run", &self.path("conf/it.click"), "--confine"]).args(words);
        let mut process = program.env("RUNTIME_DIRECTORY", self.path("run")).spawn().unwrap();
        process.wait_for("castanet: running", Duration::from_secs(60)).unwrap();
        process
    }

    fn ctl(&self, words: &[&str]) -> crate::program::RunResult {
        let mut client = command();
        client.args(["ctl", "it"]).args(words).env("RUNTIME_DIRECTORY", self.path("run"));
        run(&mut client, b"")
    }
}

impl Drop for ConfinedFolder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A line of `/proc/PID/status`.
fn status(process: &Process, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
    line.unwrap().to_owned()
}

/// Number of threads.
fn tasks(process: &Process) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", process.id())).map_or(0, Iterator::count)
}

#[test]
fn a_confined_router_reaches_the_files_of_its_configuration_only() {
    let it = ConfinedFolder::new("files");
    let config = format!(
        "InfiniteSource(LIMIT 3) -> ToDump({}, UNBUFFERED true);
         secret :: Script(TYPE PASSIVE, return $(cat {}));
         a :: AggregateCounter; Idle -> a -> Discard;",
        it.path("elsewhere/dump"),
        it.path("elsewhere/secret")
    );
    for (words, is_open) in [(&[][..], false), (&["--no-landlock"], true)] {
        let out = it.path("out");
        let all = [&["--handler-files", &out], words].concat();
        let mut process = it.start(&config, &all);
        let answer = it.ctl(&["read", "secret.run"]);
        assert_eq!(answer.out.contains("secret"), is_open, "{}{}", answer.out, answer.err);
        assert!(is_open || answer.err.contains("Permission denied"), "{}", answer.err);
        // Its own files, and those below the folder of handlers, are in reach.
        let length = || std::fs::metadata(it.0.join("elsewhere/dump")).map_or(0, |it| it.len());
        wait_until("the packets are not written", || length() > 3 * 64);
        let counts = it.path("out/counts");
        let answer = it.ctl(&["write", "a.write_ascii_file", &counts]);
        assert_eq!((answer.status, answer.err.as_str()), (Some(0), ""));
        assert!(std::fs::metadata(&counts).is_ok());
        std::fs::remove_file(&counts).unwrap();
        // A file that took the place of the first one is read, too.
        it.write(&config.replace("Idle ->", "Idle -> Null ->"));
        let id = nix::unistd::Pid::from_raw(i32::try_from(process.id()).unwrap());
        kill(id, Signal::SIGHUP).unwrap();
        process.wait_for(" runs anew", Duration::from_secs(60)).unwrap();
        process.interrupt();
        let ended = process.wait(Duration::from_secs(60)).unwrap();
        assert_eq!(ended.code(), Some(0), "{}", process.stderr());
        assert!(!it.0.join("run/it.sock").exists());
    }
}

#[test]
fn a_reload_that_needs_more_is_refused_with_the_reason() {
    let it = ConfinedFolder::new("reload");
    let process = it.start("Idle -> Discard;", &[]);
    it.write(&format!("Idle -> ToDump({});", it.path("elsewhere/dump")));
    let answer = it.ctl(&["reload"]);
    assert_eq!(answer.status, Some(1));
    let told = &answer.err;
    assert!(told.contains("Permission denied") && told.contains("under --confine"), "{told}");
    assert!(!it.0.join("elsewhere/dump").exists());
    assert_eq!(it.ctl(&["read", "list"]).status, Some(0));
    drop(process);
}

#[test]
fn system_calls_are_filtered_and_no_privilege_comes_back() {
    let it = ConfinedFolder::new("calls");
    for (words, mode) in [(&[][..], "2"), (&["--no-seccomp"], "0")] {
        let chatter = it.path("run/chatter");
        let process = it.start(&format!("Idle -> Discard; ChatterSocket(UNIX, {chatter});"), words);
        // Its thread runs with the first step of the element.
        wait_until("no thread", || tasks(&process) > 4);
        assert_eq!((status(&process, "Seccomp").as_str(), mode), (mode, mode));
        assert_eq!(status(&process, "NoNewPrivs"), "1");
        assert_eq!(status(&process, "CapEff"), "0000000000000000");
        assert!(process.stderr().contains("castanet: confined: "), "{}", process.stderr());
    }
    // As a user without capabilities, there are none to keep.
    let process = it.start("Idle -> Discard;", &["--keep-capabilities"]);
    assert_eq!(status(&process, "CapEff"), "0000000000000000");
    // The others say nothing without --confine.
    for option in ["--keep-capabilities", "--no-landlock", "--no-seccomp"] {
        let result = castanet(&["run", "-e", "Idle -> Discard", option], b"");
        assert_eq!(result.status, Some(2), "{option}");
        assert!(result.err.contains("--confine"), "{}", result.err);
    }
}

#[test]
fn explain_names_each_privilege_with_its_element_and_reason() {
    let config = "FromDump(/in.pcap) -> t :: ToDump(/out.pcap);
        Idle -> IPPrint(OUTFILE /lines) -> Discard; r :: RawSocket(icmp) -> Discard;
        ControlSocket(TCP, 80, LOCALHOST true); ChatterSocket(UNIX, /run/c.sock);
        FromDevice(nosuch0, METHOD AF_PACKET) -> Discard;
        Idle -> ToDump(-); Idle -> KernelTun(10.9.0.1/24) -> Discard;";
    let result = castanet(&["explain", "--privileges", "-e", config], b"");
    assert_eq!(result.status, Some(0), "{}", result.err);
    for line in [
        "  CAP_NET_RAW: r :: RawSocket opens a raw socket\n",
        "  CAP_NET_BIND_SERVICE: ControlSocket@",
        " binds TCP port 80, which is below 1024\n",
        "  CAP_NET_ADMIN: KernelTun@",
        "  nosuch0: FromDevice@",
        "  TCP 127.0.0.1:80: ControlSocket@",
        "  UNIX /run/c.sock: ChatterSocket@",
        "  raw IP, icmp: r :: RawSocket receives and sends such packets\n",
        "  /in.pcap: FromDump@",
        "  /out.pcap: t :: ToDump writes packets to it\n",
        "  /lines: IPPrint@",
        "  /dev/net/tun: KernelTun@",
        "AmbientCapabilities=CAP_NET_ADMIN CAP_NET_BIND_SERVICE CAP_NET_RAW\n",
    ] {
        assert!(result.out.contains(line), "{line} is not in\n{}", result.out);
    }
    // A packet socket takes neither BPF nor memory.
    assert!(!result.out.contains("CAP_BPF") && !result.out.contains("  -: "), "{}", result.out);
    let result = castanet(&["explain", "--privileges", "--json", "-e", config], b"");
    let value: Value = serde_json::from_str(&result.out).unwrap();
    let members: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(members, ["capabilities", "interfaces", "reads", "sockets", "writes"]);
    let written = &value["writes"].as_array().unwrap()[2];
    assert_eq!(written["name"], "/out.pcap");
    assert_eq!(written["needed_by"], "t :: ToDump");
    assert_eq!(written["reason"], "writes packets to it");
    let none = castanet(&["explain", "--privileges", "-e", "Idle -> Discard"], b"").out;
    assert!(none.starts_with("capabilities\n  none\ninterfaces\n  none\n"), "{none}");
}
