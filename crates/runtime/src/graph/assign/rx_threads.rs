//! The workers that receive from each device: the cores of a NUMA node are divided among its
//! devices.

use crate::cores::Cores;
use castanet_element::device::Device;
use std::collections::BTreeMap;

/// The workers that receive for one element, and the reason of the choice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RxAssignment {
    pub(super) workers: Vec<usize>,
    pub(super) why: String,
}

/// Divides the `free` workers among devices: each gets at least one, none more
/// than it has queues.
pub(super) fn divide(devices: &[&Device], free: &[usize], cores: &Cores) -> Vec<RxAssignment> {
    let on = |node: usize| free.iter().copied().filter(move |&w| cores.of(w).node == node);
    let known = |device: &Device| {
        device.node.filter(|&node| device.rx_threads.numa && on(node).next().is_some())
    };
    let mut groups: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (n, device) in devices.iter().enumerate() {
        groups.entry(known(device)).or_default().push(n);
    }
    // Beside devices whose nodes are known, the others count as on the first node.
    let first = free.first().map(|&worker| cores.of(worker).node);
    if groups.len() > 1
        && let Some(strangers) = groups.remove(&None)
    {
        groups.entry(first).or_default().extend(strangers);
    }
    let mut assignments: Vec<Option<RxAssignment>> = vec![None; devices.len()];
    for (node, members) in groups {
        let pool: Vec<usize> = node.map_or(free.to_vec(), |node| on(node).collect());
        let members: Vec<(usize, &Device)> = members.into_iter().map(|n| (n, devices[n])).collect();
        for (n, workers, mut why) in among(&members, &pool) {
            if let Some(node) =
                devices[n].node.filter(|_| devices[n].rx_threads.numa && node.is_none())
            {
                why += &format!("; no free worker is on its NUMA node {node}");
            }
            assignments[n] = Some(RxAssignment { workers, why });
        }
    }
    assignments.into_iter().flatten().collect()
}

/// Divides the workers of one node among its devices.
fn among(members: &[(usize, &Device)], pool: &[usize]) -> Vec<(usize, Vec<usize>, String)> {
    let says_all = |d: &Device| {
        d.rx_threads.parallel || (d.rx_threads.most.is_some() && d.rx_threads.offset.is_some())
    };
    let sharing: Vec<&Device> = members.iter().map(|m| m.1).filter(|d| !says_all(d)).collect();
    let caps: Vec<usize> = sharing.iter().map(|device| cap(device)).collect();
    let mut counts = deal(&caps, pool.len()).into_iter();
    let (mut next, mut turn) = (0, 0);
    let mut answer = Vec::new();
    for &(n, device) in members {
        let count = match says_all(device) {
            true => cap(device).min(pool.len()),
            false => counts.next().unwrap_or(0),
        };
        let start = match (device.rx_threads.offset, says_all(device)) {
            (Some(offset), _) => offset.min(pool.len() - count.max(1)),
            (None, true) => 0,
            (None, false) => next,
        };
        let workers = match count {
            0 => vec![pool[turn % pool.len()]],
            _ => pool[start..start + count].to_vec(),
        };
        if count == 0 {
            turn += 1;
        } else if !says_all(device) && device.rx_threads.offset.is_none() {
            next += count;
        }
        answer.push((n, workers, reason(device, count, pool.len(), sharing.len())));
    }
    answer
}

/// The most workers that a device can use.
fn cap(device: &Device) -> usize {
    device.queues.most.min(device.rx_threads.most.unwrap_or(usize::MAX)).max(1)
}

/// The number of workers for each device, dealt out one by one until each has as many as it can
/// use.
fn deal(caps: &[usize], mut workers: usize) -> Vec<usize> {
    let mut counts = vec![0; caps.len()];
    while workers > 0 && counts.iter().zip(caps).any(|(count, cap)| count < cap) {
        for (count, cap) in counts.iter_mut().zip(caps) {
            if workers > 0 && *count < *cap {
                *count += 1;
                workers -= 1;
            }
        }
    }
    counts
}

fn reason(device: &Device, count: usize, pool: usize, sharing: usize) -> String {
    let (queues, threads) = (device.queues, device.rx_threads);
    let s = |n: usize| if n == 1 { "" } else { "s" };
    if count == 0 {
        return format!("{sharing} devices receive on {pool} worker{}, in turn", s(pool));
    }
    let mut why = match (threads.parallel, threads.offset) {
        (true, _) => format!("SCALE parallel: all {pool} workers"),
        (false, Some(offset)) => format!("THREADOFFSET {offset}"),
        (false, None) if sharing == 1 => format!("{count} of {pool} worker{}", s(pool)),
        (false, None) => format!(
            "{count} of {pool} worker{}, divided among {sharing} devices that receive",
            s(pool)
        ),
    };
    if count < pool && threads.most == Some(count) {
        why += &format!("; MAXTHREADS {count}");
    } else if count < pool && queues.most == count && !queues.sockets {
        why += &format!("; it has {count} queue{} to use", s(count));
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_element::device;
    use castanet_element::device::Queues;

    fn device(node: Option<usize>, most: usize, rx_threads: device::RxThreads) -> Device {
        let queues = Queues { first: None, least: 1, most, sockets: false };
        Device { name: "d".into(), how: String::new(), node, queues, rx_threads }
    }

    fn plain(node: Option<usize>, most: usize) -> Device {
        device(node, most, device::RxThreads::default())
    }

    /// The workers of each device on workers at these nodes.
    fn assignments(devices: &[Device], nodes: &[usize]) -> Vec<Vec<usize>> {
        let (devices, cores): (Vec<_>, _) = (devices.iter().collect(), Cores::on_nodes(nodes));
        let free: Vec<usize> = (0..nodes.len()).collect();
        divide(&devices, &free, &cores).into_iter().map(|placement| placement.workers).collect()
    }

    #[test]
    fn workers_are_divided_evenly() {
        let many = || plain(None, 128);
        assert_eq!(assignments(&[many()], &[0; 4]), [[0, 1, 2, 3]]);
        assert_eq!(assignments(&[many(), many()], &[0; 4]), [[0, 1], [2, 3]]);
        assert_eq!(assignments(&[many(), many()], &[0; 3]), [vec![0, 1], vec![2]]);
        assert_eq!(assignments(&[many(), many(), many()], &[0; 2]), [[0], [1], [0]]);
    }

    #[test]
    fn none_gets_more_than_it_has_queues() {
        assert_eq!(assignments(&[plain(None, 1)], &[0; 4]), [[0]]);
        let devices = [plain(None, 1), plain(None, 8)];
        assert_eq!(assignments(&devices, &[0; 4]), [vec![0], vec![1, 2, 3]]);
    }

    #[test]
    fn devices_are_served_by_their_own_node() {
        let devices = [plain(Some(1), 8), plain(Some(0), 8), plain(Some(1), 8)];
        assert_eq!(assignments(&devices, &[0, 0, 1, 1]), [vec![2], vec![0, 1], vec![3]]);
        // A node without a worker, and one that is unknown.
        assert_eq!(assignments(&[plain(Some(7), 8)], &[0, 1]), [[0, 1]]);
        let devices = [plain(Some(1), 8), plain(None, 8)];
        assert_eq!(assignments(&devices, &[0, 1]), [[1], [0]]);
        let anywhere = device::RxThreads { numa: false, ..device::RxThreads::default() };
        assert_eq!(assignments(&[device(Some(1), 8, anywhere)], &[0, 1]), [[0, 1]]);
    }

    #[test]
    fn limits_and_places_are_kept() {
        let rx_threads = device::RxThreads::default();
        let two = device(None, 8, device::RxThreads { most: Some(2), ..rx_threads });
        assert_eq!(assignments(std::slice::from_ref(&two), &[0; 4]), [[0, 1]]);
        assert_eq!(assignments(&[two, plain(None, 8)], &[0; 4]), [[0, 1], [2, 3]]);
        let last = device::RxThreads { most: Some(1), offset: Some(3), ..rx_threads };
        let devices = [device(None, 8, last), plain(None, 8)];
        assert_eq!(assignments(&devices, &[0; 4]), [vec![3], vec![0, 1, 2, 3]]);
        // Beyond the last worker.
        let far = device::RxThreads { most: Some(2), offset: Some(9), ..rx_threads };
        assert_eq!(assignments(&[device(None, 8, far)], &[0; 4]), [[2, 3]]);
        let all = || device(None, 8, device::RxThreads { parallel: true, ..rx_threads });
        assert_eq!(assignments(&[all(), all()], &[0; 2]), [[0, 1], [0, 1]]);
    }

    #[test]
    fn reasons_are_given() {
        let why = |devices: &[Device], workers: usize| {
            let (devices, free): (Vec<_>, Vec<_>) =
                (devices.iter().collect(), (0..workers).collect());
            let assignments = divide(&devices, &free, &Cores::on_nodes(&vec![0; workers]));
            assignments.into_iter().map(|placement| placement.why).collect::<Vec<_>>()
        };
        assert_eq!(why(&[plain(None, 8)], 1), ["1 of 1 worker"]);
        assert_eq!(why(&[plain(None, 1)], 4), ["1 of 4 workers; it has 1 queue to use"]);
        let two = [plain(None, 8), plain(None, 8)];
        let divided = "1 of 2 workers, divided among 2 devices that receive";
        assert_eq!(why(&two, 2), [divided; 2]);
        assert_eq!(why(&two, 1)[1], "2 devices receive on 1 worker, in turn");
        let far = [plain(Some(3), 8)];
        assert_eq!(why(&far, 1), ["1 of 1 worker; no free worker is on its NUMA node 3"]);
    }
}
