//! Cores of the forwarder and of the packet generator.

use castanet_runtime::cores::allowed;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::path::Path;

/// The cores of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    /// Core of the forwarder.
    pub(crate) forward: usize,
    /// Core of the packet generator, which also receives the packets, if there is a second core.
    pub(crate) feed: Option<usize>,
}

impl Cores {
    /// The first two that this process may use; not two halves of one, if
    /// there is a choice.
    pub(crate) fn choose() -> Cores {
        let cores = allowed();
        let forward = cores.first().copied().unwrap_or(0);
        Cores { forward, feed: second(&cores, &halves(forward)) }
    }

    /// The core of the packet generator.
    pub(crate) fn feed(&self) -> Result<usize, String> {
        self.feed.ok_or_else(|| "it takes two cores".to_owned())
    }
}

/// The first core that this process may use beside those two, if there is one.
pub(crate) fn third(two: [usize; 2]) -> Option<usize> {
    allowed().into_iter().find(|core| !two.contains(core))
}

/// The first core that is not among `halves`, else the second of all.
fn second(cores: &[usize], halves: &[usize]) -> Option<usize> {
    let rest = || cores.iter().skip(1).copied();
    rest().find(|core| !halves.contains(core)).or_else(|| rest().next())
}

/// The logical cores that share the hardware of one.
fn halves(core: usize) -> Vec<usize> {
    let file = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    list(std::fs::read_to_string(Path::new(&file)).unwrap_or_default().trim())
}

/// The numbers of a list as the kernel writes it, `0-2,5`.
fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Keeps a thread on a core: of 0, the calling one.
pub(crate) fn pin(thread: i32, core: usize) -> Result<(), String> {
    let mut one = CpuSet::new();
    one.set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(thread), &one))
        .map_err(|error| format!("cannot stay on core {core}: {error}"))
}

/// Does something on a core; processes that it starts stay there.
pub(crate) fn on<T>(core: usize, run: impl FnOnce() -> T) -> Result<T, String> {
    let this = Pid::from_raw(0);
    let before = sched_getaffinity(this).map_err(|error| error.to_string())?;
    pin(0, core)?;
    let done = run();
    sched_setaffinity(this, &before).map_err(|error| error.to_string())?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(list("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(list("3"), [3]);
        assert!(list("").is_empty());
    }

    #[test]
    fn the_feeder_has_hardware_of_its_own_where_there_is_some() {
        assert_eq!(second(&[0, 1, 2], &[0, 1]), Some(2));
        assert_eq!(second(&[0, 1], &[0, 1]), Some(1));
        assert_eq!(second(&[4], &[4]), None);
    }
}
