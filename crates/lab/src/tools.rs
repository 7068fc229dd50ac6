//! Checks that the machine can run test networks: root rights and the programs that tests use.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Error, Result};

/// Programs and the Debian packages that contain them.
const PACKAGES: &[(&str, &str)] = &[
    ("aha", "aha"),
    ("arping", "iputils-arping"),
    ("base64", "coreutils"),
    ("chromedriver", "chromium-driver"),
    ("curl", "curl"),
    ("dpdk-testpmd", "dpdk-dev"),
    ("ethtool", "ethtool"),
    ("ip", "iproute2"),
    ("iperf3", "iperf3"),
    ("iptables-legacy-restore", "iptables"),
    ("iptables-nft-restore", "iptables"),
    ("nc", "netcat-openbsd"),
    ("nfcapd", "nfdump"),
    ("nfdump", "nfdump"),
    ("nft", "nftables"),
    ("ping", "iputils-ping"),
    ("prometheus", "prometheus"),
    ("promtool", "prometheus"),
    ("python3", "python3"),
    ("scapy", "python3-scapy"),
    ("sha256sum", "coreutils"),
    ("tcpdump", "tcpdump"),
    ("tmux", "tmux"),
    ("traceroute", "traceroute"),
    ("tshark", "tshark"),
    ("unshare", "util-linux"),
];

/// Directories of system programs, which the `PATH` of an ordinary user leaves out.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";

/// Whether a program is installed.
pub fn is_installed(tool: &str) -> bool {
    let path = env::var("PATH").unwrap_or_default();
    path.split(':').chain(SYSTEM_PATH.split(':')).any(|dir| {
        Path::new(dir)
            .join(tool)
            .metadata()
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    })
}

/// Fails unless the user is root and every program is installed; the error names the packages to
/// install.
///
/// Tests fail with this error, because a suite that skips tests would succeed on a machine without
/// any program. The demo has a fallback instead (see [`Error::is_unsupported`]).
pub fn require(tools: &[&str]) -> Result<()> {
    let missing: Vec<&str> = tools.iter().copied().filter(|tool| !is_installed(tool)).collect();
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

/// Returns the search path for the lab's commands: the user's, then that of the system.
pub(crate) fn search_path() -> String {
    match env::var("PATH") {
        Ok(path) => format!("{path}:{SYSTEM_PATH}"),
        Err(_) => SYSTEM_PATH.to_owned(),
    }
}

/// Returns the Debian package of a program; most packages have the program's name.
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
        assert!(is_installed("sh"));
        assert!(!is_installed("no-such-tool"));
    }
}
