//! RSS++: the queue of each entry of an RSS redirection table, by the loads of the queues' cores.
//!
//! After Barbette et al., "RSS++: load and state-aware receive side scaling", CoNEXT 2019. An entry
//! stands for all flows whose hashes have its number in their lower bits. Its part of the load of a
//! core is its part of the packets of the core's queue.

use crate::balance::{Move, Order, Task, plan_moves};
use castanet_wire::{ether_type, ip_proto};

/// The load of the core that receives from a queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueueLoad {
    /// The queue.
    pub queue: u16,
    /// Share of its time in which the core works, from 0 to 1.
    pub load: f64,
}

/// Parameters of a balancer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RssParams {
    /// Load that a core is to have at most, from 0 to 1; [`RssParams::scaling`] adds queues beyond it.
    pub target_load: f64,
    /// Difference from the mean load below which a core is left alone.
    pub threshold: f64,
    /// Part of such a difference that one step is to make good, from 0 to 1.
    pub alpha: f64,
}

/// A change of the number of queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueChange {
    /// None.
    Keep,
    /// One more is needed.
    Add,
    /// The queue with this index among the loads, whose load is the least, is not needed.
    Remove(usize),
}

/// The factor of [`flow_hash`]: 2^32 divided by the golden ratio (Knuth, TAOCP 6.4).
pub const FLOW_HASH_FACTOR: u32 = 0x9e37_79b1;

/// The hash of a packet's flow that packet sockets use: the same in both directions, of the addresses and,
/// for TCP, UDP and SCTP but in fragments, the ports. Zero where it is no IP packet, and for one whose
/// header is cut short. The program of a fanout group computes the same.
#[inline(always)]
pub fn flow_hash(ether_type: u16, network: &[u8]) -> u32 {
    let hash = match ether_type {
        // Apart: with a header of constant length, the offsets are known.
        ether_type::IPV4 => match network.first_chunk::<24>() {
            Some(start) if start[0] == 0x45 => mixed_ipv4(start, 20),
            _ => mixed_ipv4_with_options(network),
        },
        ether_type::IPV6 => mixed_ipv6(network),
        _ => None,
    };
    let hash = hash.unwrap_or(0).wrapping_mul(FLOW_HASH_FACTOR);
    hash ^ hash >> 16
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[inline(never)]
fn mixed_ipv4_with_options(header: &[u8]) -> Option<u32> {
    mixed_ipv4(header, usize::from(header.first()? & 0xf) * 4)
}

/// That of a header of this length.
#[inline(always)]
fn mixed_ipv4(header: &[u8], length: usize) -> Option<u32> {
    const FRAGMENT: u32 = 0x3fff;
    let addresses = word(header, 12)? ^ word(header, 16)?;
    let protocol = header[9];
    let is_fragment = word(header, 4)? & FRAGMENT != 0;
    Some(addresses ^ if is_fragment { 0 } else { mixed_ports(header, length, protocol)? })
}

#[inline(never)]
fn mixed_ipv6(header: &[u8]) -> Option<u32> {
    let mut addresses = (8..40).step_by(4).map(|at| word(header, at));
    let addresses = addresses.try_fold(0, |all, word| Some(all ^ word?))?;
    Some(addresses ^ mixed_ports(header, 40, header[6])?)
}

/// The ports behind a header of this length; zero for protocols without.
#[inline(always)]
fn mixed_ports(header: &[u8], length: usize, protocol: u8) -> Option<u32> {
    if ![ip_proto::TCP, ip_proto::UDP, ip_proto::SCTP].contains(&protocol) {
        return Some(0);
    }
    let ports = word(header, length)?;
    Some((ports ^ ports >> 16) & 0xffff)
}

/// Load beyond what all cores are to have at most, from which on a queue is added; as in FastClick.
const EXCESS: f64 = 0.1;
/// Least part of [`RssParams::scaling`]'s margin for each core; as in FastClick.
const LEAST_MARGIN: f64 = 0.05;
/// Units of [`Task::cost`] in a load of one.
const UNIT: f64 = 1e9;

/// A table of `size` entries that go to these queues in turn.
pub fn even_table(size: usize, queues: &[u16]) -> Vec<u16> {
    queues.iter().copied().cycle().take(size).collect()
}

/// Sum of the differences of loads from their mean.
pub fn imbalance(loads: &[QueueLoad]) -> f64 {
    let mean = mean(loads);
    loads.iter().map(|it| (it.load - mean).abs()).sum()
}

fn mean(loads: &[QueueLoad]) -> f64 {
    loads.iter().map(|it| it.load).sum::<f64>() / loads.len().max(1) as f64
}

impl RssParams {
    /// Moves entries from queues with more load than the mean to those with less, those with most
    /// packets first. `packets` counts each entry's packets in the time of the loads,
    /// which become those that are to be expected. Returns the number of entries moved.
    pub fn rebalance(&self, table: &mut [u16], packets: &[u64], loads: &mut [QueueLoad]) -> usize {
        let (costs, mean) = (entry_costs(table, packets, loads), mean(loads));
        let places: Vec<usize> = (0..table.len()).filter(|&it| costs[it].is_some()).collect();
        let tasks: Vec<Task> = places.iter().filter_map(|&it| costs[it]).collect();
        // Of a difference from the mean only a part counts, so the rest cannot move. Only differences
        // between loads matter: what is added to all keeps them above zero.
        let seen = |it: &QueueLoad| mean + (it.load - mean) * self.alpha;
        let moved = |at: usize| tasks.iter().filter(move |task| task.worker == at);
        let movable = |at: usize| moved(at).map(|task| task.cost).sum::<u64>() as f64;
        let fixed = loads.iter().enumerate().map(|(at, it)| seen(it) * UNIT - movable(at));
        let fixed: Vec<f64> = fixed.collect();
        let least = fixed.iter().copied().fold(0.0, f64::min);
        let fixed: Vec<u64> = fixed.into_iter().map(|it| (it - least) as u64).collect();
        let threshold = |_| (self.threshold * UNIT) as u64;
        let moves = plan_moves(&tasks, &fixed, Order::Decreasing, threshold);
        for Move { task, to } in &moves {
            table[places[*task]] = loads[*to].queue;
            let share = tasks[*task].cost as f64 / UNIT;
            loads[tasks[*task].worker].load -= share;
            loads[*to].load += share;
        }
        moves.len()
    }

    /// Whether a queue is to be added or removed, by the load that cores could yet bear.
    pub fn scaling(&self, loads: &[QueueLoad]) -> QueueChange {
        let spare: f64 = loads.iter().map(|it| self.target_load - it.load).sum();
        let most = loads.iter().map(|it| it.load).fold(0.0, f64::max);
        // More must be spare than one core bears, and the more so the more uneven the loads are.
        let margin = (loads.len() + 1) as f64 * (most - self.target_load).max(LEAST_MARGIN);
        if spare > 1.0 + (1.0 - self.target_load) + margin && loads.len() > 1 {
            let least = (0..loads.len()).min_by(|&a, &b| loads[a].load.total_cmp(&loads[b].load));
            return least.map_or(QueueChange::Keep, QueueChange::Remove);
        }
        if spare < -EXCESS { QueueChange::Add } else { QueueChange::Keep }
    }
}

/// The load of each entry, with the index of its queue among the loads; `None` for entries of other
/// queues.
fn entry_costs(table: &[u16], packets: &[u64], loads: &[QueueLoad]) -> Vec<Option<Task>> {
    let queue_of = |queue: u16| loads.iter().position(|it| it.queue == queue);
    let count = |at: usize| packets.get(at).copied().unwrap_or(0);
    let queues: Vec<Option<usize>> = table.iter().map(|&queue| queue_of(queue)).collect();
    let mut sums = vec![0; loads.len()];
    for (at, queue) in queues.iter().enumerate() {
        queue.iter().for_each(|queue| sums[*queue] += count(at));
    }
    let cost = |(at, queue): (usize, Option<usize>)| {
        let worker = queue?;
        let share = count(at) as f64 / sums[worker].max(1) as f64;
        Some(Task { worker, cost: (share * loads[worker].load.max(0.0) * UNIT) as u64 })
    };
    queues.into_iter().enumerate().map(cost).collect()
}

/// Gives the entries of a queue that is not to be used any more to others, those with most packets
/// first, each to the one with the least load. Returns the number of entries moved.
pub fn vacate(
    table: &mut [u16],
    packets: &[u64],
    left: QueueLoad,
    loads: &mut [QueueLoad],
) -> usize {
    let costs = entry_costs(table, packets, &[left]);
    let mut moved: Vec<(u64, usize)> =
        (0..table.len()).filter_map(|at| costs[at].map(|task| (task.cost, at))).collect();
    moved.sort_unstable_by(|a, b| b.cmp(a));
    let mut entries = vec![0; loads.len()];
    for &(cost, at) in &moved {
        let order = |a: &usize, b: &usize| {
            loads[*a].load.total_cmp(&loads[*b].load).then(entries[*a].cmp(&entries[*b]))
        };
        let Some(to) = (0..loads.len()).min_by(order) else { return 0 };
        table[at] = loads[to].queue;
        loads[to].load += cost as f64 / UNIT;
        entries[to] += 1;
    }
    moved.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PARAMS: RssParams = RssParams { target_load: 0.8, threshold: 0.02, alpha: 1.0 };

    fn loads(all: &[f64]) -> Vec<QueueLoad> {
        all.iter().zip(0..).map(|(&load, queue)| QueueLoad { queue, load }).collect()
    }

    #[test]
    fn entries_move_until_cores_are_alike() {
        let mut table = even_table(8, &[0, 1]);
        assert_eq!(table, [0, 1, 0, 1, 0, 1, 0, 1]);
        // Queue 0: four entries of 0.2 each; queue 1: idle but for one packet.
        let mut all = loads(&[0.8, 0.0]);
        assert_eq!(PARAMS.rebalance(&mut table, &[5, 0, 5, 0, 5, 0, 5, 1], &mut all), 2);
        assert_eq!(table.iter().filter(|&&queue| queue == 0).count(), 2);
        assert!(imbalance(&all) < 0.001, "{all:?}");
    }

    #[test]
    fn an_entry_that_is_the_whole_load_stays_and_others_leave_it() {
        let mut table = vec![0, 0, 1];
        let packets = [90, 10, 0];
        assert_eq!(PARAMS.rebalance(&mut table, &packets, &mut loads(&[1.0, 0.0])), 1);
        assert_eq!(table, [0, 1, 1]);
        assert_eq!(PARAMS.rebalance(&mut table, &packets, &mut loads(&[0.9, 0.1])), 0);
    }

    #[test]
    fn with_alpha_a_step_makes_a_part_good() {
        let packets = vec![1; 100];
        let moved = |alpha| {
            let mut table = vec![0; 100];
            RssParams { alpha, ..PARAMS }.rebalance(&mut table, &packets, &mut loads(&[1.0, 0.0]))
        };
        assert!((46..=50).contains(&moved(1.0)), "{}", moved(1.0));
        assert!((21..=25).contains(&moved(0.5)), "{}", moved(0.5));
        assert_eq!(moved(0.0), 0);
    }

    #[test]
    fn queues_are_added_and_removed_by_the_load_that_is_left() {
        assert_eq!(PARAMS.scaling(&loads(&[0.9, 0.85])), QueueChange::Add);
        assert_eq!(PARAMS.scaling(&loads(&[0.8, 0.7])), QueueChange::Keep);
        assert_eq!(PARAMS.scaling(&loads(&[0.1, 0.05, 0.1])), QueueChange::Remove(1));
        assert_eq!(PARAMS.scaling(&loads(&[0.0])), QueueChange::Keep);
        let mut table = even_table(6, &[0, 1, 2]);
        let mut rest = [QueueLoad { queue: 0, load: 0.1 }, QueueLoad { queue: 2, load: 0.1 }];
        let left = QueueLoad { queue: 1, load: 0.05 };
        assert_eq!(vacate(&mut table, &[1, 3, 1, 1, 2, 1], left, &mut rest), 2);
        assert_eq!(table, [0, 0, 2, 0, 2, 2], "entry 1, the greater one, went first");
    }

    type Case = (Vec<u16>, Vec<u64>, Vec<f64>);

    fn case() -> impl Strategy<Value = Case> {
        (1u16..9).prop_flat_map(|queues| {
            let table = proptest::collection::vec(0..queues, 128);
            let packets =
                proptest::collection::vec(prop_oneof![Just(0u64), 0..100u64, 0..1_000_000u64], 128);
            (table, packets, proptest::collection::vec(0.0..1.0f64, usize::from(queues)))
        })
    }

    proptest! {
        #[test]
        fn no_step_makes_it_worse((table, packets, all) in case()) {
            let (mut after, mut expected) = (table.clone(), loads(&all));
            let moved = PARAMS.rebalance(&mut after, &packets, &mut expected);
            let most = |all: &[QueueLoad]| all.iter().map(|it| it.load).fold(0.0, f64::max);
            prop_assert!(most(&expected) <= most(&loads(&all)) + 1e-6);
            let squares = |all: &[QueueLoad]| all.iter().map(|it| it.load * it.load).sum::<f64>();
            prop_assert!(squares(&expected) <= squares(&loads(&all)) + 1e-6);
            let differ = (0..128).filter(|&at| table[at] != after[at]);
            let differ: Vec<usize> = differ.collect();
            prop_assert!(differ.len() <= moved);
            prop_assert!(differ.iter().all(|&at| packets[at] > 0), "an idle entry moved");
            prop_assert!(after.iter().all(|&queue| usize::from(queue) < all.len()));
        }

        #[test]
        fn a_second_step_has_nothing_left_to_do((mut table, packets, all) in case()) {
            // Each packet costs the same on each core.
            let total = packets.iter().sum::<u64>().max(1) as f64;
            let load = |queue: u16| {
                let entries = (0..128).filter(|&at| table[at] == queue);
                entries.map(|at| packets[at]).sum::<u64>() as f64 / total
            };
            let mut all = loads(&(0..all.len() as u16).map(load).collect::<Vec<_>>());
            PARAMS.rebalance(&mut table, &packets, &mut all);
            prop_assert_eq!(PARAMS.rebalance(&mut table, &packets, &mut all), 0);
        }

        #[test]
        fn a_queue_that_is_removed_has_no_entries((mut table, packets, all) in case()) {
            let mut rest = loads(&all);
            let left = rest.remove(0);
            let count = table.iter().filter(|&&queue| queue == 0).count();
            let moved = vacate(&mut table, &packets, left, &mut rest);
            prop_assert_eq!(moved, if rest.is_empty() { 0 } else { count });
            prop_assert!(rest.is_empty() || table.iter().all(|&queue| queue != 0));
        }
    }
}
