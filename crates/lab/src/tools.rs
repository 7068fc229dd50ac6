//! Checks that the machine can have test networks: root, namespaces, and the programs that tests run.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Error, Result};

/// Programs and the Debian packages that hold them.
const PACKAGES: &[(&str, &str)] = &[
    ("arping", "iputils-arping"),
    ("curl", "curl"),
    ("dpdk-testpmd", "dpdk-dev"),
    ("ethtool", "ethtool"),
    ("ip", "iproute2"),
    ("iperf3", "iperf3"),
    ("iptables-legacy-restore", "iptables"),
    ("iptables-nft-restore", "iptables"),
    ("nc", "netcat-openbsd"),
    ("nft", "nftables"),
    ("ping", "iputils-ping"),
    ("python3", "python3"),
    ("scapy", "python3-scapy"),
    ("sha256sum", "coreutils"),
    ("tcpdump", "tcpdump"),
    ("traceroute", "traceroute"),
];

/// Where administrators' programs live, which an ordinary `PATH` leaves out.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";

/// Whether a program is installed.
pub fn have(tool: &str) -> bool {
    let path = env::var("PATH").unwrap_or_default();
    path.split(':').chain(SYSTEM_PATH.split(':')).any(|dir| {
        Path::new(dir)
            .join(tool)
            .metadata()
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    })
}

/// Fails, saying what to install, unless the user is root and every program named is there.
///
/// Tests call this and fail: a suite that skips what it cannot check would be green on an empty
/// machine. The demo falls back instead (see [`Error::is_unsupported`]).
pub fn require(tools: &[&str]) -> Result<()> {
    let missing: Vec<&str> = tools.iter().copied().filter(|tool| !have(tool)).collect();
    if !missing.is_empty() {
        let mut packages: Vec<String> = missing.iter().map(|tool| package(tool)).collect();
        packages.sort();
        packages.dedup();
        let tools = missing.into_iter().map(str::to_owned).collect();
        return Err(Error::MissingTools { tools, packages });
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    Ok(())
}

/// The search path for what the lab runs: the user's, then the administrator's.
pub(crate) fn search_path() -> String {
    match env::var("PATH") {
        Ok(path) => format!("{path}:{SYSTEM_PATH}"),
        Err(_) => SYSTEM_PATH.to_owned(),
    }
}

/// The Debian package of a program; most bear its name.
fn package(tool: &str) -> String {
    PACKAGES
        .iter()
        .find(|(name, _)| *name == tool)
        .map_or_else(|| tool.to_owned(), |(_, package)| (*package).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_packages_of_missing_tools() {
        let error = require(&["sh", "no-such-tool-b", "no-such-tool-a"]).unwrap_err();
        assert!(error.is_unsupported());
        assert_eq!(
            error.to_string(),
            "not installed: no-such-tool-b, no-such-tool-a; \
             on Debian: apt-get install no-such-tool-a no-such-tool-b"
        );
    }

    #[test]
    fn knows_where_programs_come_from() {
        assert_eq!(package("ping"), "iputils-ping");
        assert_eq!(package("jq"), "jq");
        assert!(have("sh"));
        assert!(!have("no-such-tool"));
    }
}
