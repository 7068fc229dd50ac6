//! The control groups of this process: where its own are mounted, version 1 or 2.

use std::path::{Path, PathBuf};

/// The version of a hierarchy of control groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CgroupVersion {
    V1,
    V2,
}

/// The group of this process that has a controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CgroupPlace {
    pub(super) version: CgroupVersion,
    pub(super) folder: PathBuf,
}

/// The groups of this process that have the controllers for memory and for processor time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CgroupPlaces {
    pub(super) memory: Option<CgroupPlace>,
    pub(super) cpu: Option<CgroupPlace>,
}

/// A mounted hierarchy.
struct Hierarchy<'a> {
    /// The group that is mounted, as a path in the hierarchy.
    root: &'a str,
    folder: &'a str,
    version: CgroupVersion,
    /// Its controllers, for version 1.
    options: &'a str,
}

impl CgroupPlaces {
    /// The groups of this process.
    pub fn of_this_process() -> CgroupPlaces {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        CgroupPlaces::find(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
    }

    /// The groups that these contents of the files `cgroup` and `mountinfo` name.
    fn find(groups: &str, mounts: &str) -> CgroupPlaces {
        let hierarchies: Vec<Hierarchy<'_>> = mounts.lines().filter_map(hierarchy).collect();
        let place = |controller: &str| {
            let of = |version| hierarchies.iter().filter(move |it| it.version == version);
            let first = of(CgroupVersion::V1)
                .find(|it| it.options.split(',').any(|option| option == controller));
            if let Some(it) = first {
                let own = own_path(groups, |names| names.split(',').any(|it| it == controller))?;
                return it.place(own);
            }
            let place = of(CgroupVersion::V2).next()?.place(own_path(groups, str::is_empty)?)?;
            let controllers = std::fs::read_to_string(place.folder.join("cgroup.controllers"));
            let has = controllers.ok()?.split_whitespace().any(|it| it == controller);
            has.then_some(place)
        };
        CgroupPlaces { memory: place("memory"), cpu: place("cpu") }
    }

    /// For each of the two limits, the reason why this process cannot set it for others; empty where it
    /// can.
    pub fn obstacles(&self) -> [(super::Protection, String); 2] {
        let why = |place: &Option<CgroupPlace>, controller: &str| match place {
            None => format!("no hierarchy of control groups has the controller `{controller}`"),
            Some(it) => {
                let access = rustix::fs::access(&it.folder, rustix::fs::Access::WRITE_OK);
                let why = |error| format!("{}: {error}", it.folder.display());
                access.err().map(why).unwrap_or_default()
            }
        };
        [
            (super::Protection::MemoryCgroup, why(&self.memory, "memory")),
            (super::Protection::CpuCgroup, why(&self.cpu, "cpu")),
        ]
    }
}

impl Hierarchy<'_> {
    /// The place of the group with this path in the hierarchy.
    fn place(&self, own: &str) -> Option<CgroupPlace> {
        // A container may see a part of the hierarchy only.
        let below = Path::new(own).strip_prefix(self.root).ok()?;
        let folder = Path::new(self.folder).join(below);
        Some(CgroupPlace { version: self.version, folder })
    }
}

/// The hierarchy of a line of `mountinfo`, if it is one.
fn hierarchy(line: &str) -> Option<Hierarchy<'_>> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut words = mount.split(' ').skip(3);
    let (root, folder) = (words.next()?, words.next()?);
    let mut words = file_system.split(' ');
    let version = match words.next()? {
        "cgroup" => CgroupVersion::V1,
        "cgroup2" => CgroupVersion::V2,
        _ => return None,
    };
    Some(Hierarchy { root, folder, version, options: words.nth(1)? })
}

/// The path of the line of `/proc/self/cgroup` whose controllers are wanted.
fn own_path(groups: &str, is_wanted: impl Fn(&str) -> bool) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next()?, parts.next()?);
        is_wanted(names).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_MOUNTS: &str = "\
30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 /box /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    #[test]
    fn groups_of_version_1_are_found_also_where_a_part_is_mounted() {
        let groups = "4:memory:/box/own\n2:cpu,cpuacct:/\n0::/user.slice\n";
        let found = CgroupPlaces::find(groups, V1_MOUNTS);
        let place = |folder: &str| {
            let version = CgroupVersion::V1;
            Some(CgroupPlace { version, folder: folder.into() })
        };
        assert_eq!(found.memory, place("/sys/fs/cgroup/memory/own"));
        assert_eq!(found.cpu, place("/sys/fs/cgroup/cpu,cpuacct/"));
        let elsewhere = CgroupPlaces::find("4:memory:/other\n", V1_MOUNTS);
        assert_eq!(elsewhere.memory, None);
        assert!(elsewhere.obstacles()[0].1.contains("`memory`"));
    }

    #[test]
    fn groups_of_version_2_are_those_with_the_controller() {
        let folder = std::env::temp_dir().join(format!("castanet-cgroup-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("unit")).unwrap();
        std::fs::write(folder.join("unit/cgroup.controllers"), "cpuset cpu io\n").unwrap();
        let mounts = format!("29 25 0:26 / {} rw - cgroup2 cgroup2 rw\n", folder.display());
        let found = CgroupPlaces::find("0::/unit\n", &mounts);
        let place = CgroupPlace { version: CgroupVersion::V2, folder: folder.join("unit") };
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((found.cpu, found.memory), (Some(place), None));
    }
}
