//! `castanet run` under a service manager: the messages that it sends to `$NOTIFY_SOCKET`; and the unit of
//! `castanet install-service`.

use crate::program::{castanet, command, folder, wait_until};
use std::io::Read;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time for which no message may come from a router that hangs: several watchdog intervals.
const SILENCE: Duration = Duration::from_millis(1500);
/// The watchdog interval, in microseconds.
const WATCHDOG: &str = "300000";

/// The socket of a service manager, and the file of a configuration.
struct ServiceManager {
    socket: UnixDatagram,
    folder: PathBuf,
}

impl ServiceManager {
    fn new(name: &str) -> ServiceManager {
        let folder = folder(&format!("service-{name}-{}", std::process::id()));
        let path = folder.join("notify");
        _ = std::fs::remove_file(&path);
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        ServiceManager { socket, folder }
    }

    fn write(&self, text: &str) -> PathBuf {
        let path = self.folder.join("it.click");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `castanet run` of this text, which sends messages to this socket.
    fn command(&self, text: &str) -> Command {
        let mut command = command();
        command.arg("run").arg(self.write(text)).env("NOTIFY_SOCKET", self.folder.join("notify"));
        command.env("RUNTIME_DIRECTORY", &self.folder).stderr(Stdio::null());
        command
    }

    /// The next message.
    fn message(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("a message comes");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// The next message that is no `WATCHDOG=1`.
    fn change(&self) -> String {
        loop {
            let message = self.message();
            if message != "WATCHDOG=1\n" {
                return message;
            }
        }
    }

    /// Whether a message has come.
    fn has_message(&self) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let has = self.socket.recv(&mut [0; 4096]).is_ok();
        self.socket.set_nonblocking(false).unwrap();
        has
    }
}

impl Drop for ServiceManager {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn signal(child: &Child, signal: nix::sys::signal::Signal) {
    let id = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(id, signal).unwrap();
}

fn ends_well(mut child: Child) {
    signal(&child, nix::sys::signal::Signal::SIGTERM);
    wait_until("SIGTERM does not end it", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_router_reports_that_it_is_ready_reloads_and_stops() {
    let manager = ServiceManager::new("states");
    let child = manager.command("Idle -> Counter -> Discard;").args(["-j", "2"]).spawn().unwrap();
    assert_eq!(manager.message(), "READY=1\nSTATUS=3 elements run on 2 workers\n");
    for (text, status) in [
        ("Idle -> Discard;", "2 elements run on 2 workers"),
        ("Idle -> Bluh;", "the reload was refused; 2 elements run on 2 workers"),
        ("Idle -> Null -> Null -> Discard;", "4 elements run on 2 workers"),
    ] {
        manager.write(text);
        signal(&child, nix::sys::signal::Signal::SIGHUP);
        let begun = manager.message();
        let time = begun.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect(&begun);
        assert!(time.split('\n').next().and_then(|it| it.parse().ok()) > Some(0_u64), "{begun}");
        assert_eq!(manager.message(), format!("READY=1\nSTATUS={status}\n"));
    }
    ends_well(child);
    assert_eq!(manager.message(), "STOPPING=1\nSTATUS=lets the last packets out\n");
}

#[test]
fn a_configuration_that_cannot_run_is_never_ready() {
    let manager = ServiceManager::new("broken");
    let status = manager.command("FromDevice(nosuchdevice) -> Discard;").status().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(!manager.has_message());
}

#[test]
fn a_worker_that_hangs_withholds_the_watchdogs_message() {
    let manager = ServiceManager::new("watchdog");
    // The worker waits for the reader of standard output once the pipe is full.
    let text = "InfiniteSource(LENGTH 1000) -> ToDump(-, SNAPLEN 0);";
    let mut command = manager.command(text);
    command.env("WATCHDOG_USEC", WATCHDOG).env_remove("WATCHDOG_PID").stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    assert!(manager.message().starts_with("READY=1"));
    let silent_for = |silence: Duration| {
        let since = Instant::now();
        while since.elapsed() < silence {
            if manager.has_message() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    };
    wait_until("the watchdog's messages go on", || silent_for(SILENCE));
    let mut out = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 20];
        while out.read(&mut bytes).is_ok_and(|length| length > 0) {}
    });
    // Turns come again, and several intervals have a message each.
    (0..5).for_each(|_| assert_eq!(manager.message(), "WATCHDOG=1\n"));
    signal(&child, nix::sys::signal::Signal::SIGTERM);
    assert!(manager.change().starts_with("STOPPING=1"));
    child.wait().unwrap();
    reader.join().unwrap();
}

/// A folder that is removed.
struct Root(PathBuf);

impl Drop for Root {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn root(name: &str) -> Root {
    Root(folder(&format!("root-{name}-{}", std::process::id())))
}

#[test]
fn the_unit_and_a_configuration_are_installed_once() {
    let root = root("install");
    let at = root.0.to_str().unwrap();
    let install =
        |words: &[&str]| castanet(&[&["install-service", "--root", at][..], words].concat(), b"");
    let first = install(&["--program", "/usr/bin/castanet"]);
    assert_eq!((first.status, first.err.as_str()), (Some(0), ""));
    assert!(first.out.contains("systemd-sysusers"), "{}", first.out);
    let unit = root.0.join("etc/systemd/system/castanet@.service");
    let text = std::fs::read_to_string(&unit).unwrap();
    assert!(text.contains("\nExecStart=/usr/bin/castanet run /etc/castanet/%i.click "), "{text}");
    assert!(text.contains("\nUser=castanet\n"), "{text}");
    // The user's own configuration stays.
    let example = root.0.join("etc/castanet/example.click");
    let result = castanet(&["check", example.to_str().unwrap()], b"");
    assert_eq!(result.status, Some(0), "{}", result.err);
    std::fs::write(&example, "mine").unwrap();
    std::fs::remove_file(&unit).unwrap();
    let second = install(&[]);
    assert_eq!(second.status, Some(1));
    assert!(second.err.contains("example.click is there, and stays"), "{}", second.err);
    assert!(!unit.exists());
    assert_eq!(std::fs::read_to_string(&example).unwrap(), "mine");
    let third = install(&["--force", "--user", "packets"]);
    assert_eq!(third.status, Some(0), "{}", third.err);
    assert!(std::fs::read_to_string(&unit).unwrap().contains("\nUser=packets\nGroup=packets\n"));
    assert_ne!(std::fs::read_to_string(&example).unwrap(), "mine");
    for (option, value) in [("--user", "a b"), ("--program", "castanet"), ("--program", "/a b")] {
        assert_eq!(install(&["--force", option, value]).status, Some(2), "{option} {value}");
    }
}

#[test]
fn nothing_is_installed_outside_of_the_root() {
    let outside = root("outside");
    let root = root("links");
    std::os::unix::fs::symlink(&outside.0, root.0.join("etc")).unwrap();
    let result = castanet(&["install-service", "--root", root.0.to_str().unwrap()], b"");
    assert_eq!(result.status, Some(1));
    assert!(result.err.contains("links are not followed"), "{}", result.err);
    assert_eq!(std::fs::read_dir(&outside.0).unwrap().count(), 0);
}

#[test]
fn systemd_takes_the_unit_and_finds_little_exposed() {
    /// Ten times the exposure level of `systemd-analyze security`: up to 5 is "OK", 10 is the worst.
    const MOST_EXPOSED: &str = "25";
    let root = root("verify");
    let unit = castanet(&["install-service", "--print"], b"").out;
    let path = root.0.join("castanet@.service");
    std::fs::write(&path, &unit).unwrap();
    let analyze = |words: &[&str]| {
        let output = Command::new("systemd-analyze").args(words).output();
        let output = output.expect("systemd-analyze is installed (.ci/packages)");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    let instance = root.0.join("castanet@example.service");
    std::os::unix::fs::symlink("castanet@.service", &instance).unwrap();
    let instance = instance.to_str().unwrap();
    let (is_right, told) = analyze(&["verify", "--man=no", instance]);
    assert!(is_right && !told.contains("castanet@"), "{told}");
    let words = ["security", "--offline=true", "--threshold", MOST_EXPOSED, instance];
    let (is_tight, told) = analyze(&words);
    let level = told.lines().find(|line| line.contains("Overall exposure level"));
    println!("{}", level.unwrap_or_default());
    assert!(is_tight && level.is_some(), "{told}");
    // The check can fail.
    std::fs::write(&path, unit.replace("\nExecStart=", "\nExecStart=/nowhere")).unwrap();
    assert!(!analyze(&["verify", "--man=no", instance]).0);
}
