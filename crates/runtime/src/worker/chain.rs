//! Runs fused chains, and counts as if each element had been visited.

use super::transfer::leave_open;
use crate::worker::slot::{FusedChain, PendingBatch, Slot, WorkerGraph};
use castanet_element::cx::Cx;
use castanet_element::exec::{ChainExit, ExecState, Next};
use castanet_element::fate::PANICKED;
use castanet_element::node::fused::{ChainMember, MAX_STAGES};
use castanet_packet::Batch;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Pushes a batch through the chain that begins with `head`, if there is one. Returns the element
/// that the packets in `batch` leave, and its output; packets that left the chain before its end
/// wait on the stack.
#[inline]
pub(crate) fn run(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    head: usize,
    depth: u32,
    batch: &mut Batch,
) -> Option<(usize, Next)> {
    let FusedChain { fused, members } = graph.slots[head].chain.as_deref_mut()?;
    let last = members.last()?.node;
    graph.hops += members.len() as u32;
    if exec.fates.len() < batch.len() {
        exec.fates.resize(batch.len(), 0);
    }
    let mut at = 0;
    let run = || fused.run(members, batch, exec, &mut at);
    let (all, any) = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(fates) => fates?,
        Err(_) => {
            lose(members, exec, at, batch);
            return Some((last, Next::None));
        }
    };
    if exec.exits.is_empty() {
        count_members(members, exec, batch.len() as u64, &[0; MAX_STAGES]);
    } else {
        part(graph, exec, head, depth, batch);
    }
    if all == any && !exec.is_drop(all) {
        return Some((last, Next::Output(all)));
    }
    Some((last, Next::Output(divide(exec, last, batch))))
}

/// Moves the remaining packets by the fates of the last stage.
fn divide(exec: &mut ExecState, last: usize, batch: &mut Batch) -> u8 {
    let fates = std::mem::take(&mut exec.fates);
    let keep = Cx { exec, me: last, peers: None }.divide(batch, &fates);
    exec.fates = fates;
    keep
}

/// Moves the packets that left the chain before its end: they wait until the rest of the burst has
/// gone on.
fn part(graph: &mut WorkerGraph, exec: &mut ExecState, head: usize, depth: u32, batch: &mut Batch) {
    let WorkerGraph { slots, stack, exit_groups, .. } = graph;
    let Some(FusedChain { members, .. }) = slots[head].chain.as_deref() else { return };
    let exits = std::mem::take(&mut exec.exits);
    let mut left = [0; MAX_STAGES];
    exits.iter().for_each(|exit| left[usize::from(exit.stage)] += 1);
    count_members(members, exec, batch.len() as u64, &left);
    let mut groups = std::mem::take(exit_groups);
    let mut order = exits.iter();
    let indices = exits.iter().map(|exit| usize::from(exit.index));
    batch.extract(indices, &mut exec.fates, |packet| {
        let Some(&exit) = order.next() else { return };
        let same = |l: &ChainExit| (l.stage, l.fate) == (exit.stage, exit.fate);
        match groups.iter_mut().rev().find(|(l, _)| same(l)) {
            Some((_, group)) => group.push(packet),
            None => groups.push((exit, Batch::from(packet))),
        }
    });
    for (exit, group) in groups.drain(..).rev() {
        if let Some(&member) = members.iter().find(|m| m.stage == exit.stage) {
            let pending = leave(member, exit, slots, exec, depth, group);
            stack.extend(pending);
        }
    }
    (exec.exits, *exit_groups) = (exits, groups);
    exec.exits.clear();
}

/// Counts the packets of each member; `left` is how many packets each stage kept from the next one.
/// The output of the last member is counted where its packets go on.
fn count_members(
    members: &[ChainMember],
    exec: &mut ExecState,
    mut count: u64,
    left: &[u64; MAX_STAGES],
) {
    let Some((last, others)) = members.split_last() else { return };
    for member in others {
        let counters = &mut exec.counters[member.node];
        counters.input += count;
        count -= left[usize::from(member.stage)];
        counters.output += count;
    }
    exec.counters[last.node].input += count;
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
        exec.count_drops(me, fate, count);
        return None;
    }
    match slots[me].outputs.get(usize::from(fate)) {
        Some(Some(to)) => {
            exec.counters[me].output += count;
            Some(PendingBatch::new(to.node, to.port, depth, batch))
        }
        _ => {
            leave_open(exec, me, fate, count);
            None
        }
    }
}

/// After a panic of stage `at`: the burst is lost there.
#[cold]
fn lose(members: &[ChainMember], exec: &mut ExecState, at: u8, batch: &mut Batch) {
    let count = batch.len() as u64;
    let reached = &members[..members.partition_point(|member| member.stage <= at)];
    count_members(reached, exec, count, &[0; MAX_STAGES]);
    if let Some(member) = reached.last() {
        exec.count_drops(member.node, PANICKED, count);
    }
    exec.exits.clear();
    exec.panics += 1;
    batch.clear();
}
