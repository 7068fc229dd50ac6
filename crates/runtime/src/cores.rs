//! The core of each worker, and its NUMA node.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::path::Path;

/// A CPU core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuCore {
    /// Its number in the system.
    pub number: usize,
    /// Its NUMA node.
    pub node: usize,
}

/// By worker: its core.
#[derive(Clone, Debug)]
pub struct Cores {
    cores: Vec<CpuCore>,
    /// Whether nobody has said how many workers there will be.
    are_assumed: bool,
}

impl Cores {
    /// That many workers on the cores of `wanted`, in order and around again; if it is empty, on
    /// those that this process may use.
    pub fn here(workers: usize, wanted: &[usize]) -> Cores {
        let allowed = if wanted.is_empty() { allowed() } else { wanted.to_vec() };
        let nodes = nodes(Path::new("/sys/devices/system/node"));
        let node_of = |core| nodes.iter().find(|(_, cores)| cores.contains(&core));
        let cores = allowed.iter().cycle().take(workers.max(1));
        let with_node = |&number: &usize| {
            let node = node_of(number).map_or(0, |(node, _)| *node);
            CpuCore { number, node }
        };
        Cores { cores: cores.map(with_node).collect(), are_assumed: false }
    }

    /// Workers on cores of these NUMA nodes, to plan for another machine.
    pub fn on_nodes(nodes: &[usize]) -> Cores {
        let core = |(number, &node)| CpuCore { number, node };
        Cores { cores: nodes.iter().enumerate().map(core).collect(), are_assumed: false }
    }

    /// The same, to check a configuration of which nobody has said how many workers it will have.
    pub(crate) fn assumed(self) -> Cores {
        Cores { are_assumed: true, ..self }
    }

    /// Whether nobody has said how many workers there will be.
    pub(crate) fn are_assumed(&self) -> bool {
        self.are_assumed
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.cores.len()
    }

    /// A worker's core.
    pub fn of(&self, worker: usize) -> CpuCore {
        self.cores[worker]
    }

    /// Whether a worker has the core of this number.
    pub fn contains(&self, number: usize) -> bool {
        self.cores.iter().any(|core| core.number == number)
    }

    /// Keeps the calling thread off the workers' cores, if it may use others; returns the set of
    /// cores before. A thread that wakes often would else wait beside a worker.
    pub(crate) fn keep_off(&self) -> Option<CpuSet> {
        let before = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let mut others = before;
        self.cores.iter().for_each(|core| _ = others.unset(core.number));
        let is_any = (0..CpuSet::count()).any(|core| others.is_set(core).unwrap_or(false));
        (is_any && roam(&others)).then_some(before)
    }

    /// Pins the calling thread to the core of `worker`. Where the system refuses, the thread runs
    /// on any core.
    pub(crate) fn pin(&self, worker: usize) {
        let mut one = CpuSet::new();
        if one.set(self.of(worker).number).is_ok() {
            roam(&one);
        }
    }
}

/// Lets the calling thread run on these cores; returns whether the system allows it.
pub(crate) fn roam(cores: &CpuSet) -> bool {
    sched_setaffinity(Pid::from_raw(0), cores).is_ok()
}

/// The cores that the calling thread may use.
pub fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let cores: Vec<usize> =
        (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect();
    if cores.is_empty() { vec![0] } else { cores }
}

/// The cores that the system has switched on; none where it does not tell.
pub fn online() -> Vec<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    listed(text.trim()).unwrap_or_default()
}

/// The NUMA nodes and their cores, as the kernel lists them.
fn nodes(folder: &Path) -> Vec<(usize, Vec<usize>)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let node = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let number = name.to_str()?.strip_prefix("node")?.parse().ok()?;
        let text = std::fs::read_to_string(entry.path().join("cpulist")).ok()?;
        Some((number, listed(text.trim())?))
    };
    entries.filter_map(node).collect()
}

/// The numbers of a list such as `0,4-7`; `None` if it is none.
pub fn listed(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
        if low > high || high >= CpuSet::count() {
            return None;
        }
        all.extend(low..=high);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_keeps_off_has_the_other_cores() {
        let cores = Cores::here(1, &[]);
        let before = allowed();
        let kept = cores.keep_off();
        let others: Vec<usize> =
            before.iter().copied().filter(|&core| core != cores.of(0).number).collect();
        // Where there are no others, it stays.
        assert_eq!(kept.is_some(), !others.is_empty());
        assert_eq!(allowed(), if others.is_empty() { before.clone() } else { others });
        assert!(kept.is_none_or(|kept| roam(&kept)));
        assert_eq!(allowed(), before);
    }

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(listed("0-3,8,10-11"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(listed("2"), Some(vec![2]));
        assert_eq!(listed(""), Some(vec![]));
        for wrong in ["a", "3-1", "1-", "-1", "0-99999999"] {
            assert_eq!(listed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lists_are_written_as_the_kernel_writes_them() {
        for text in ["0-3,8,10-11", "2", ""] {
            assert_eq!(castanet_kit::text::ranges(&listed(text).unwrap()), text);
        }
    }

    #[test]
    fn nodes_are_found_where_the_kernel_has_them() {
        let folder = std::env::temp_dir().join(format!("castanet-nodes-{}", std::process::id()));
        for (node, list) in [("node0", "0-1,4\n"), ("node1", "2-3\n"), ("online", "0-4\n")] {
            std::fs::create_dir_all(folder.join(node)).unwrap();
            std::fs::write(folder.join(node).join("cpulist"), list).unwrap();
        }
        let mut found = nodes(&folder);
        found.sort_unstable();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [(0, vec![0, 1, 4]), (1, vec![2, 3])]);
    }

    #[test]
    fn workers_go_around_the_cores_there_are() {
        let cores = Cores::here(3, &[5, 6]);
        let numbers: Vec<usize> = (0..3).map(|worker| cores.of(worker).number).collect();
        assert_eq!(numbers, [5, 6, 5]);
        assert_eq!(Cores::here(2, &[]).workers(), 2);
    }
}
