//! One network namespace: the place where commands run.

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

/// A network namespace of a [`Lab`](crate::Lab); clones name the same one.
#[derive(Debug, Clone)]
pub struct Namespace {
    name: String,
    directory: PathBuf,
}

impl Namespace {
    pub(crate) fn new(name: String, directory: PathBuf) -> Namespace {
        Namespace { name, directory }
    }

    /// The name that `ip netns` knows it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lab's directory for files, removed with it.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A command to run inside.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        // `ip netns exec` becomes the command itself, so signals reach it and nothing between.
        let mut enter = process::Command::new("ip");
        enter.args(["netns", "exec", &self.name]).env("PATH", search_path());
        // Clients must speak to the lab and in one language.
        for proxy in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"] {
            enter.env_remove(proxy);
        }
        enter.env("LC_ALL", "C");
        Command::new(enter, program.as_ref())
    }

    /// Runs a function on a thread of its own that is inside.
    pub fn enter<T: Send + 'static>(
        &self,
        run: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> JoinHandle<Result<T>> {
        let path = Path::new(registry::NETNS).join(&self.name);
        thread::spawn(move || {
            let doing = || Error::io(format!("enter {}", path.display()));
            let namespace = File::open(&path).map_err(doing())?;
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind)
                .map_err(|error| doing()(error.into()))?;
            run()
        })
    }

    /// Runs `ip` with words separated by spaces, inside: `ns.ip("route add default via 10.0.1.1")`.
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

    /// Turns all offloads of an interface off, so that its packets leave as they travel on a wire:
    /// checksums in place, no segment larger than the MTU.
    pub fn offloads_off(&self, device: &str) -> Result<()> {
        let switches = ["tx", "off", "rx", "off", "tso", "off", "gso", "off", "gro", "off"];
        self.command("ethtool").args(["-K", device]).args(switches).check()?;
        Ok(())
    }

    /// The bytes and packets that an interface has received so far.
    pub fn received(&self, device: &str) -> Result<(u64, u64)> {
        let read = |what: &str| -> Result<u64> {
            let file = format!("/sys/class/net/{device}/statistics/rx_{what}");
            let output = self.command("cat").arg(file).check()?;
            Ok(output.stdout.trim().parse().unwrap_or(0))
        };
        Ok((read("bytes")?, read("packets")?))
    }
}
