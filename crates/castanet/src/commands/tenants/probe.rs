//! `castanet tenants probe`: what a confined process can still do on this machine.

use crate::commands::{CommandError, CommandResult, write_out};
use crate::confine::tenant::is_refused;
use castanet_tenants::sandbox::probe;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, getppid, setuid};
use std::fmt::Write;
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// Time that the probe may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a process confined as that of a tenant, and prints what it finds.
pub(super) fn main() -> CommandResult {
    let report = probe(PATIENCE).map_err(|error| format!("no process: {error}"))?;
    write_out(None, &report.text)?;
    match report.is_tight() {
        true => Ok(()),
        false => Err(CommandError::REPORTED),
    }
}

/// Tries, in the confined process, what it must not be able to do, and prints the answers; once without
/// and once with the filter of system calls, which hides the other protections.
pub(super) fn report(is_filtered: bool) -> CommandResult {
    let none: Option<&str> = None;
    let prefix = if is_filtered { "" } else { "without seccomp: " };
    let mut text = String::new();
    let mut tell = |action: &str, tried: io::Result<()>| {
        let answer = match tried {
            Ok(()) => "DONE".to_owned(),
            Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                Some(errno) if is_refused(errno) => "refused".to_owned(),
                _ => format!("refused: {error}"),
            },
        };
        _ = writeln!(text, "{prefix}{action}: {answer}");
    };
    tell("read /etc/passwd", std::fs::read("/etc/passwd").map(drop));
    tell("read /proc/self/status", std::fs::read("/proc/self/status").map(drop));
    tell("list /", std::fs::read_dir("/").map(drop));
    tell("write /castanet-probe", std::fs::write("/castanet-probe", "x"));
    let outside = |socket: UdpSocket| socket.send_to(b"probe", "192.0.2.1:9").map(drop);
    tell("UDP packet", UdpSocket::bind("0.0.0.0:0").and_then(outside));
    tell("TCP connection", TcpStream::connect("127.0.0.1:22").map(drop));
    tell("another program", std::process::Command::new("/proc/self/exe").spawn().map(drop));
    let by_nix = |tried: nix::Result<()>| tried.map_err(io::Error::from);
    tell("trace its parent", by_nix(nix::sys::ptrace::attach(getppid())));
    let all = nix::unistd::Pid::from_raw(-1);
    tell("a signal to all processes", by_nix(nix::sys::signal::kill(all, None)));
    tell("mount", by_nix(mount(Some("proc"), "/", Some("proc"), MsFlags::empty(), none)));
    if is_filtered {
        tell("become root", by_nix(setuid(Uid::from_raw(0))));
        tell("Unix socket", UnixDatagram::unbound().map(drop));
        tell("user namespace", by_nix(unshare(CloneFlags::CLONE_NEWUSER)));
    }
    let sees = match getppid().as_raw() {
        0 => "refused",
        _ => "DONE",
    };
    _ = writeln!(text, "{prefix}see its parent: {sees}");
    write_out(None, &text)
}
