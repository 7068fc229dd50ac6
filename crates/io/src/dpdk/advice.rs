//! Explains why DPDK did not start, and names a remedy.

use super::options::value;
use crate::sys::dpdk as sys;
use rustix::process::{FlockType, fcntl_getlk, geteuid};
use std::path::{Path, PathBuf};

/// The likely cause and its remedy; DPDK's own reason `why` where neither other processes nor huge
/// pages explain the failure.
pub(super) fn advice(why: String, words: &[String]) -> String {
    let has = |option: &str| words.iter().any(|word| word == option);
    if !sys::BUILT_IN {
        return why;
    }
    let alone = has("--no-shconf") || has("--in-memory");
    let others = if alone { None } else { others(words) };
    // DPDK reports its last step, which often is not the one that failed first.
    if let Some(reason) = others {
        return reason;
    }
    if has("--no-huge") {
        return why;
    }
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let huge = huge_pages(&read("/proc/meminfo"), &read("/proc/mounts"), has("--in-memory"));
    huge.unwrap_or(why)
}

/// The file by which processes of one `--file-prefix` find each other.
fn config_file(prefix: &str) -> PathBuf {
    let base = match std::env::var_os("RUNTIME_DIRECTORY") {
        Some(folder) => PathBuf::from(folder),
        None if geteuid().is_root() => PathBuf::from("/var/run"),
        None => std::env::var_os("XDG_RUNTIME_DIR").map_or_else(|| "/tmp".into(), PathBuf::from),
    };
    base.join("dpdk").join(prefix).join("config")
}

/// The problem with other processes of the same prefix, if there is one.
fn others(words: &[String]) -> Option<String> {
    let prefix = value(words, "--file-prefix").unwrap_or("rte");
    let file = config_file(prefix);
    let secondary = value(words, "--proc-type") == Some("secondary");
    match (secondary, holder(&file)) {
        (true, None) => Some(format!(
            "there is no primary process whose --file-prefix is `{prefix}`; start that first"
        )),
        (true, Some(process)) => Some(format!(
            "{process}, the primary, lets nobody attach; its configuration must have a \
             FromDPDKRing or ToDPDKRing, it must be of the same version, and give the same --file-prefix"
        )),
        (false, Some(process)) => Some(format!(
            "{process} has the --file-prefix `{prefix}`; give this one another \
             (--file-prefix NAME), or attach it to that (--proc-type=secondary)"
        )),
        (false, None) => None,
    }
}

/// The process that has locked a file, as text for a message.
fn holder(file: &Path) -> Option<String> {
    let file = std::fs::File::options().read(true).write(true).open(file).ok()?;
    let lock = fcntl_getlk(file, &FlockType::WriteLock.into()).ok()??;
    Some(match lock.pid {
        Some(pid) => format!("process {}", pid.as_raw_nonzero()),
        None => "another process".to_owned(),
    })
}

/// The problem with the machine's huge pages, if there is one.
fn huge_pages(memory: &str, mounts: &str, in_memory: bool) -> Option<String> {
    let count = |name: &str| {
        let line = memory.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let (total, free) = (count("HugePages_Total:"), count("HugePages_Free:"));
    let mounted = mounts.lines().any(|line| line.split(' ').nth(2) == Some("hugetlbfs"));
    let what = match (total, free) {
        (0, _) => "there are no huge pages; have some (echo 512 > /proc/sys/vm/nr_hugepages)",
        (_, 0) => "all huge pages are in use; have more (/proc/sys/vm/nr_hugepages)",
        _ if !mounted && !in_memory => {
            "huge pages are mounted nowhere; mount them (mount -t hugetlbfs nodev /dev/hugepages), or \
             say --in-memory"
        }
        _ => return None,
    };
    Some(format!("{what}, or do without (--no-huge -m 512)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_missing_in_use_or_not_mounted() {
        let memory = |total: u32, free: u32| {
            format!("MemTotal: 1 kB\nHugePages_Total:     {total}\nHugePages_Free:   {free}\n")
        };
        let mount = "nodev /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0\n";
        let said = |memory: String, mounts, in_memory| huge_pages(&memory, mounts, in_memory);
        let starts = |said: Option<String>, with: &str| {
            let said = said.unwrap();
            assert!(said.starts_with(with), "{said}");
            assert!(said.ends_with(", or do without (--no-huge -m 512)"), "{said}");
        };
        starts(said(memory(0, 0), mount, false), "there are no huge pages;");
        starts(said(String::new(), mount, false), "there are no huge pages;");
        starts(said(memory(8, 0), mount, false), "all huge pages are in use;");
        starts(
            said(memory(8, 8), "tmpfs /tmp tmpfs rw 0 0\n", false),
            "huge pages are mounted nowhere;",
        );
        assert_eq!(said(memory(8, 8), "", true), None);
        assert_eq!(said(memory(8, 8), mount, false), None);
    }
}
