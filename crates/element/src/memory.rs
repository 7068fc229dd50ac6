//! How much memory this process may use: the machine's, or its control group's if that is less.

use std::path::{Path, PathBuf};

/// Bytes that the process may use at most; no more than the machine has.
pub fn limit() -> u64 {
    limit_in(Path::new("/"))
}

/// Bytes that can be had now without swapping, and no more than the process may use.
pub fn free() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    // Where the system does not say, two gibibytes are few enough.
    entry(&meminfo, "MemAvailable:").unwrap_or(2 << 30).min(limit())
}

/// A number of bytes as people write it.
pub fn in_words(bytes: u64) -> String {
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit < 5 {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let digits = usize::from(unit > 0 && size < 100.0);
    format!("{size:.digits$} {}", units[unit])
}

/// The same, of a machine whose files lie under `root`.
fn limit_in(root: &Path) -> u64 {
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let machine = entry(&read(root.join("proc/meminfo")), "MemTotal:");
    let groups = read(root.join("proc/self/cgroup"));
    let files = groups.lines().flat_map(|line| limits(root, line));
    let limits = files.filter_map(|file| read(file).trim().parse().ok());
    limits.chain(machine).min().unwrap_or(u64::MAX)
}

/// An entry of `/proc/meminfo`, in bytes.
fn entry(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The files with the limits of a control group, which a line of `/proc/self/cgroup` names, and of
/// those around it.
fn limits(root: &Path, line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|it| it == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let groups = Path::new(path.trim_start_matches('/')).ancestors();
    groups.map(|group| root.join(mount).join(group).join(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of 8 GiB in a folder of its own, with these files beside.
    fn machine(name: &str, files: &[(&str, &str)]) -> u64 {
        let root = std::env::temp_dir().join(format!("castanet-{}-{name}", std::process::id()));
        for (file, text) in files.iter().chain(&[("proc/meminfo", "MemTotal:  8388608 kB\n")]) {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let limit = limit_in(&root);
        std::fs::remove_dir_all(root).unwrap();
        limit
    }

    #[test]
    fn the_least_of_machine_and_control_groups_counts() {
        let own = ("proc/self/cgroup", "0::/a/b\n");
        assert_eq!(machine("bare", &[]), 8 << 30);
        let max = ("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(machine("max", &[own, max]), 8 << 30);
        let inner = ("sys/fs/cgroup/a/b/memory.max", "1073741824\n");
        assert_eq!(machine("inner", &[own, inner]), 1 << 30);
        let outer = ("sys/fs/cgroup/a/memory.max", "536870912\n");
        assert_eq!(machine("outer", &[own, inner, outer]), 512 << 20);
        let old = ("proc/self/cgroup", "3:cpu,memory:/x\n2:pids:/y\n");
        let limit = ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "268435456\n");
        assert_eq!(machine("old", &[old, limit]), 256 << 20);
    }

    #[test]
    fn sizes_read_well() {
        let said = [0, 1023, 1536, 150 << 20, 8 << 30, 9 << 40].map(in_words);
        assert_eq!(said, ["0 bytes", "1023 bytes", "1.5 KiB", "150 MiB", "8.0 GiB", "9.0 TiB"]);
    }
}
