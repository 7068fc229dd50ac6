//! Control groups that limit the memory and the processor time of a tenant's process.

use super::Protection;
use super::cgroup_places::{CgroupPlace, CgroupPlaces, CgroupVersion};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Period in which processor time is limited: short, so that a process that has used its part waits for
/// milliseconds only.
const PERIOD: Duration = Duration::from_millis(10);
/// The least time in a period that the kernel accepts.
const SHORTEST: Duration = Duration::from_millis(1);
/// Weights of a group in version 1 and 2 for the whole of a processor.
const SHARES: f64 = 1024.0;
const WEIGHT: f64 = 100.0;

/// Limits of a tenant's process; none where `None`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Part of one processor that it never exceeds, from 0 to 1.
    pub cpu: Option<f64>,
    /// Part of one processor that it has beside others, from 0 to 1.
    pub cpu_guarantee: f64,
}

/// The groups of one process. They are removed when the value is dropped; the process has ended then.
#[derive(Debug, Default)]
pub(super) struct Cgroup {
    memory: Option<CgroupPlace>,
    cpu: Option<CgroupPlace>,
}

impl Cgroup {
    /// Makes groups below those of this process, as far as there is something to limit and the kernel
    /// lets it; the rest is in the second result.
    pub(super) fn create(
        name: &str,
        limits: Limits,
        places: &CgroupPlaces,
    ) -> (Cgroup, Vec<(Protection, String)>) {
        let (mut cgroup, mut lacking) = (Cgroup::default(), Vec::new());
        let mut add = |place: &Option<CgroupPlace>, protection, controller, files: Files| {
            let made = match place {
                Some(place) => make(place, name, controller, files),
                None => Err(format!("no hierarchy of control groups has `{controller}`")),
            };
            made.map_err(|why| lacking.push((protection, why))).ok()
        };
        let version = |place: &Option<CgroupPlace>| {
            place.as_ref().map_or(CgroupVersion::V2, |place| place.version)
        };
        if let Some(bytes) = limits.memory {
            let files = memory_files(version(&places.memory), bytes);
            cgroup.memory = add(&places.memory, Protection::MemoryCgroup, "memory", files);
        }
        if limits.cpu.is_some() || limits.cpu_guarantee > 0.0 {
            let files = cpu_files(version(&places.cpu), limits);
            cgroup.cpu = add(&places.cpu, Protection::CpuCgroup, "cpu", files);
        }
        (cgroup, lacking)
    }

    /// Whether the memory is limited.
    pub(super) fn limits_memory(&self) -> bool {
        self.memory.is_some()
    }

    fn places(&self) -> impl Iterator<Item = &CgroupPlace> {
        self.memory.iter().chain(&self.cpu)
    }

    /// Puts a process into the groups.
    pub(super) fn add(&self, pid: u32) -> io::Result<()> {
        self.places()
            .try_for_each(|it| std::fs::write(it.folder.join("cgroup.procs"), pid.to_string()))
    }

    /// Number of processes that were killed because the group had no memory left.
    pub(super) fn memory_kills(&self) -> u64 {
        let Some(it) = &self.memory else { return 0 };
        let file = match it.version {
            CgroupVersion::V1 => "memory.oom_control",
            CgroupVersion::V2 => "memory.events",
        };
        let text = std::fs::read_to_string(it.folder.join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for it in self.places() {
            // The kernel lets go of an ended process a little later.
            for _ in 0..50 {
                match std::fs::remove_dir(&it.folder) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    _ => break,
                }
            }
        }
    }
}

/// Files of a group, each with the contents, and whether the limit holds without it.
type Files = Vec<(&'static str, String, bool)>;

fn memory_files(version: CgroupVersion, bytes: u64) -> Files {
    let bytes = bytes.to_string();
    match version {
        CgroupVersion::V1 => vec![
            ("memory.limit_in_bytes", bytes.clone(), false),
            // Without swap there is no such file.
            ("memory.memsw.limit_in_bytes", bytes, true),
        ],
        CgroupVersion::V2 => vec![
            ("memory.max", bytes, false),
            ("memory.swap.max", "0".to_owned(), true),
            ("memory.oom.group", "1".to_owned(), true),
        ],
    }
}

fn cpu_files(version: CgroupVersion, limits: Limits) -> Files {
    let period = PERIOD.as_micros();
    let quota = |part: f64| PERIOD.mul_f64(part).max(SHORTEST).as_micros();
    let weight = |whole: f64| ((limits.cpu_guarantee * whole) as u64).max(2).to_string();
    let mut files = Vec::new();
    match version {
        CgroupVersion::V1 => {
            if let Some(part) = limits.cpu {
                files.push(("cpu.cfs_period_us", period.to_string(), false));
                files.push(("cpu.cfs_quota_us", quota(part).to_string(), false));
            }
            if limits.cpu_guarantee > 0.0 {
                files.push(("cpu.shares", weight(SHARES), true));
            }
        }
        CgroupVersion::V2 => {
            if let Some(part) = limits.cpu {
                files.push(("cpu.max", format!("{} {period}", quota(part)), false));
            }
            if limits.cpu_guarantee > 0.0 {
                files.push(("cpu.weight", weight(WEIGHT), true));
            }
        }
    }
    files
}

/// Makes a group below another one.
fn make(
    parent: &CgroupPlace,
    name: &str,
    controller: &str,
    files: Files,
) -> Result<CgroupPlace, String> {
    let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    if parent.version == CgroupVersion::V2 {
        delegate(&parent.folder, controller)?;
    }
    let folder = parent.folder.join(name);
    std::fs::create_dir(&folder).map_err(|error| failed(&folder, error))?;
    let place = CgroupPlace { version: parent.version, folder };
    for (file, contents, is_optional) in files {
        let path = place.folder.join(file);
        match std::fs::write(&path, contents) {
            Err(error) if !is_optional => {
                _ = std::fs::remove_dir(&place.folder);
                return Err(failed(&path, error));
            }
            _ => {}
        }
    }
    Ok(place)
}

/// Has the groups below one of version 2 use a controller. A group with processes cannot, so this
/// process moves to a group of its own below it first.
fn delegate(folder: &Path, controller: &str) -> Result<(), String> {
    let file = folder.join("cgroup.subtree_control");
    let enable = || std::fs::write(&file, format!("+{controller}"));
    let failed = |path: &PathBuf, error: io::Error| format!("{}: {error}", path.display());
    match enable() {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            let own = folder.join(format!("castanet-{}", std::process::id()));
            let made = std::fs::create_dir(&own).or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            });
            made.and_then(|()| std::fs::write(own.join("cgroup.procs"), "0"))
                .map_err(|error| failed(&own, error))?;
            enable().map_err(|error| failed(&file, error))
        }
        enabled => enabled.map_err(|error| failed(&file, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder in the place of a group's, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("castanet-cgroup-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            Folder(folder)
        }

        fn place(&self, version: CgroupVersion) -> Option<CgroupPlace> {
            Some(CgroupPlace { version, folder: self.0.clone() })
        }

        fn read(&self, file: &str) -> String {
            std::fs::read_to_string(self.0.join(file)).unwrap_or_default()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    const LIMITS: Limits = Limits { memory: Some(1 << 26), cpu: Some(0.3), cpu_guarantee: 0.25 };

    #[test]
    fn limits_are_written_in_the_words_of_each_version() {
        let folder = Folder::new("words");
        for (version, expected) in [
            (
                CgroupVersion::V1,
                &[
                    ("memory.limit_in_bytes", "67108864"),
                    ("cpu.cfs_period_us", "10000"),
                    ("cpu.cfs_quota_us", "3000"),
                    ("cpu.shares", "256"),
                ][..],
            ),
            (
                CgroupVersion::V2,
                &[("memory.max", "67108864"), ("cpu.max", "3000 10000"), ("cpu.weight", "25")],
            ),
        ] {
            let files =
                memory_files(version, 1 << 26).into_iter().chain(cpu_files(version, LIMITS));
            let written: Vec<(&str, String)> = files.map(|it| (it.0, it.1)).collect();
            for (name, contents) in expected {
                let found = written.iter().find(|it| it.0 == *name).map(|it| it.1.as_str());
                assert_eq!(found, Some(*contents), "{name}");
            }
        }
        let places = CgroupPlaces { memory: folder.place(CgroupVersion::V2), cpu: None };
        let (cgroup, lacking) = Cgroup::create("red", LIMITS, &places);
        assert_eq!(folder.read("red/memory.max"), "67108864");
        assert_eq!(folder.read("cgroup.subtree_control"), "+memory");
        assert!(cgroup.limits_memory());
        let [(Protection::CpuCgroup, why)] = &lacking[..] else { panic!("{lacking:?}") };
        assert!(why.contains("`cpu`"), "{why}");
        std::fs::write(folder.0.join("red/memory.events"), "oom 3\noom_kill 2\n").unwrap();
        assert_eq!(cgroup.memory_kills(), 2);
        cgroup.add(77).unwrap();
        assert_eq!(folder.read("red/cgroup.procs"), "77");
    }

    #[test]
    fn without_limits_there_is_no_group_and_nothing_lacks() {
        let (cgroup, lacking) = Cgroup::create("red", Limits::default(), &CgroupPlaces::default());
        assert!(lacking.is_empty() && !cgroup.limits_memory());
        assert_eq!(cgroup.places().count(), 0);
    }
}
