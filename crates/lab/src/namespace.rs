//! A network namespace, in which commands run.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process;
use std::thread::{self, JoinHandle};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::{Error, Result};
use crate::process::Command;
use crate::registry;
use crate::tools::search_path;

/// A network namespace of a [`Lab`](crate::Lab); clones refer to the same namespace.
#[derive(Debug, Clone)]
pub struct Namespace {
    name: String,
    directory: PathBuf,
}

impl Namespace {
    pub(crate) fn new(name: String, directory: PathBuf) -> Namespace {
        Namespace { name, directory }
    }

    /// Its name for `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lab's directory for files, which is removed with the lab.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes a command that runs in the namespace.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        // `ip netns exec` replaces itself by the command, so that signals reach the command.
        let mut enter = process::Command::new("ip");
        enter.args(["netns", "exec", &self.name]).env("PATH", search_path());
        // Clients must connect to the lab directly, and print English messages.
        for proxy in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"] {
            enter.env_remove(proxy);
        }
        enter.env("LC_ALL", "C");
        Command::new(enter, program.as_ref())
    }

    /// Runs a function on a new thread in the namespace.
    pub fn enter<T: Send + 'static>(
        &self,
        run: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> JoinHandle<Result<T>> {
        let path = Path::new(registry::NETNS).join(&self.name);
        thread::spawn(move || {
            let io_error = || Error::io(format!("enter {}", path.display()));
            let namespace = File::open(&path).map_err(io_error())?;
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind)
                .map_err(|error| io_error()(error.into()))?;
            run()
        })
    }

    /// Runs `ip` in the namespace and returns its output; spaces separate the arguments:
    /// `ns.ip("route add default via 10.0.1.1")`.
    pub fn ip(&self, words: &str) -> Result<String> {
        let output = self.command("ip").args(words.split_whitespace()).check()?;
        Ok(output.stdout)
    }

    /// Sets a kernel variable of this namespace: `ns.sysctl("net/ipv4/ip_forward", "1")`.
    pub fn sysctl(&self, name: &str, value: &str) -> Result<()> {
        let file = format!("/proc/sys/{name}");
        self.command("sh").args(["-c", "echo \"$1\" > \"$2\"", "sh", value, &file]).check()?;
        Ok(())
    }

    /// Disables all offloads of an interface, so that its packets leave as on a real link: with
    /// checksums, and no segment larger than the MTU.
    pub(crate) fn disable_offloads(&self, device: &str) -> Result<()> {
        let switches = ["tx", "off", "rx", "off", "tso", "off", "gso", "off", "gro", "off"];
        self.command("ethtool").args(["-K", device]).args(switches).check()?;
        Ok(())
    }

    /// Returns the bytes and packets that an interface has received so far.
    pub fn received(&self, device: &str) -> Result<(u64, u64)> {
        let read = |what: &str| -> Result<u64> {
            let file = format!("/sys/class/net/{device}/statistics/rx_{what}");
            let output = self.command("cat").arg(file).check()?;
            Ok(output.stdout.trim().parse().unwrap_or(0))
        };
        Ok((read("bytes")?, read("packets")?))
    }
}
