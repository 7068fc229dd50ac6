//! Packets that leave a fused chain before its end.

use super::FusedChain;
use crate::worker::slot::{PendingBatch, Slot, WorkerGraph};
use crate::worker::transfer::leave_open;
use castanet_element::exec::{ChainExit, ExecState};
use castanet_element::node::fused::{ChainMember, MAX_BRANCHES, MAX_STAGES};
use castanet_packet::Batch;

/// By stage: how many packets it kept from the next one.
pub(super) type StageCounts = [u16; MAX_STAGES];

/// The same by branch, from 1; 0 is before the chain divides.
pub(super) type ExitCounts = [StageCounts; MAX_BRANCHES + 1];

/// How many packets left where.
#[cold]
pub(super) fn counts(exits: &[ChainExit]) -> ExitCounts {
    let mut left = ExitCounts::default();
    for exit in exits {
        left[usize::from(exit.place.branch)][usize::from(exit.place.stage)] += 1;
    }
    left
}

/// Moves the packets that left the chain before its end, and were counted: they wait until the rest of the
/// burst has gone on.
pub(super) fn part(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    head: usize,
    depth: u32,
    batch: &mut Batch,
) {
    let WorkerGraph { slots, stack, exit_groups, .. } = graph;
    let Some(FusedChain { members, .. }) = slots[head].chain.as_deref() else { return };
    let exits = std::mem::take(&mut exec.exits);
    let mut groups = std::mem::take(exit_groups);
    let mut order = exits.iter();
    let indices = exits.iter().map(|exit| usize::from(exit.index));
    batch.extract(indices, &mut exec.fates, |packet| {
        let Some(&exit) = order.next() else { return };
        let same = |l: &ChainExit| (l.place, l.fate) == (exit.place, exit.fate);
        match groups.iter_mut().rev().find(|(l, _)| same(l)) {
            Some((_, group)) => group.push(packet),
            None => groups.push((exit, Batch::from(packet))),
        }
    });
    for (exit, group) in groups.drain(..).rev() {
        if let Some(&member) = members.iter().find(|m| m.place == exit.place) {
            let pending = leave(member, exit, slots, exec, depth, group);
            stack.extend(pending);
        }
    }
    (exec.exits, *exit_groups) = (exits, groups);
    exec.exits.clear();
}

/// The pending batch for a group of packets that leaves `member`; `None` if they were dropped.
fn leave(
    member: ChainMember,
    exit: ChainExit,
    slots: &[Slot],
    exec: &mut ExecState,
    depth: u32,
    batch: Batch,
) -> Option<PendingBatch> {
    let (me, count) = (member.node, batch.len() as u64);
    let Some(fate) = exit.fate else {
        // They are counted again when they come in.
        exec.counters[me].input -= count;
        let pending = PendingBatch::new(me, member.port, depth, batch);
        return Some(PendingBatch { alone: true, ..pending });
    };
    if exec.is_drop(fate) {
        exec.drop_packets(me, fate, batch.as_slice());
        return None;
    }
    match slots[me].outputs.get(usize::from(fate)) {
        Some(Some(to)) => {
            exec.counters[me].output += count;
            Some(PendingBatch::new(to.node, to.port, depth, batch))
        }
        _ => {
            leave_open(exec, me, fate, &batch);
            None
        }
    }
}
