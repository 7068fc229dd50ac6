//! Runs fused chains, and counts as if each element had been visited.

mod exits;

use super::transfer::leave_open;
use crate::graph::target::Target;
use crate::worker::slot::{PendingBatch, Slot, WorkerGraph};
use castanet_element::cx::Cx;
use castanet_element::exec::{Destination, ExecState, Next, OutputGroups};
use castanet_element::fate::PANICKED;
use castanet_element::node::fused::{Chain, ChainMember, MAX_BRANCHES, StagePlace};
use castanet_packet::Batch;
use exits::{ExitCounts, StageCounts};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A fused chain.
pub(crate) struct FusedChain {
    pub(crate) fused: Box<dyn Chain>,
    /// In order, branch by branch.
    members: Vec<ChainMember>,
    /// Number of the members before the branches.
    trunk: usize,
    branches: Vec<Branch>,
    /// Fates of the last member before the branches whose packets go on to the same input, behind the
    /// branch where there is one.
    groups: Option<Box<OutputGroups>>,
    /// The input to which all branches lead, if they lead to the same.
    way: Option<Target>,
}

/// A branch.
struct Branch {
    /// The fate that leads there.
    fate: u8,
    /// Its members.
    members: Range<usize>,
    /// Its last member.
    last: usize,
}

impl FusedChain {
    /// Its elements.
    pub(crate) fn elements(&self) -> impl Iterator<Item = usize> {
        self.members.iter().map(|member| member.node)
    }
}

/// Where the packets go on that a chain leaves in its batch.
pub(crate) enum ChainEnd {
    /// They leave an element.
    Leaves(usize, Next),
    /// They are on their way to an input, and counted.
    Goes(Target),
}

use ChainEnd::{Goes, Leaves};

impl FusedChain {
    /// The chain of these members, whose branches lie behind these outputs.
    pub(crate) fn new(
        fused: Box<dyn Chain>,
        members: &[ChainMember],
        branch_ports: &[u8],
        slots: &[Slot],
    ) -> Option<FusedChain> {
        let of = |branch: usize| {
            let start = members.partition_point(|m| usize::from(m.place.branch) < branch);
            start..members.partition_point(|m| usize::from(m.place.branch) <= branch)
        };
        let branch = |(n, &fate): (usize, &u8)| {
            let members_of = of(n + 1);
            let last = members[members_of.clone()].last()?.node;
            Some(Branch { fate, members: members_of, last })
        };
        let branches: Option<Vec<Branch>> = branch_ports.iter().enumerate().map(branch).collect();
        let mut chain = FusedChain {
            fused,
            members: members.to_vec(),
            trunk: of(0).end,
            branches: branches?,
            groups: None,
            way: None,
        };
        let mut ends = chain.branches.iter().map(|branch| target(slots, (branch.last, 0)));
        chain.way = ends.next().flatten().filter(|way| ends.all(|end| end == Some(*way)));
        let last = chain.members[chain.trunk.checked_sub(1)?].node;
        let ways: Vec<_> = (0..slots[last].outputs.len())
            .map(|output| target(slots, chain.end_of(last, output as u8)))
            .collect();
        chain.groups = OutputGroups::of(&ways);
        Some(chain)
    }

    /// The element and the output by which packets with a fate leave, where `last` is the last member
    /// before the branches.
    fn end_of(&self, last: usize, fate: u8) -> (usize, u8) {
        match self.branches.iter().find(|branch| branch.fate == fate) {
            Some(branch) => (branch.last, 0),
            None => (last, fate),
        }
    }
}

/// Where an output leads.
fn target(slots: &[Slot], (element, output): (usize, u8)) -> Option<Target> {
    slots[element].outputs.get(usize::from(output)).copied().flatten()
}

/// Pushes a batch through the chain that begins with `head`, if there is one. Returns where the packets
/// in `batch` go on; packets that left the chain before its end, and those for other inputs, wait on the
/// stack.
#[inline]
pub(crate) fn run(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    head: usize,
    depth: u32,
    batch: &mut Batch,
) -> Option<ChainEnd> {
    let FusedChain { fused, members, trunk, branches, .. } =
        graph.slots[head].chain.as_deref_mut()?;
    let last = members[..*trunk].last()?.node;
    graph.hops += members.len() as u32;
    if exec.fates.len() < batch.len() {
        exec.fates.resize(batch.len(), 0);
    }
    let mut at = StagePlace::default();
    let run = || fused.run(batch, exec, &mut at);
    let (all, any) = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(fates) => fates?,
        Err(_) => {
            lose(members, exec, at, batch);
            return Some(Leaves(last, Next::None));
        }
    };
    if exec.exits.is_empty() && all == any && !exec.is_drop(all) {
        let count = batch.len() as u64;
        count_all(&members[..*trunk], exec, count);
        let Some(branch) = branches.iter().find(|branch| branch.fate == all) else {
            return Some(Leaves(last, Next::Output(all)));
        };
        exec.counters[last].output += count;
        count_all(&members[branch.members.clone()], exec, count);
        return Some(Leaves(branch.last, Next::Output(0)));
    }
    let left = (!exec.exits.is_empty()).then(|| exits::counts(&exec.exits));
    let chain = graph.slots[head].chain.as_deref()?;
    let of_trunk = left.as_ref().map(|left| &left[0]);
    count_members(&chain.members[..chain.trunk], exec, batch.len() as u64, of_trunk);
    let slots = &graph.slots;
    if !chain.branches.is_empty() {
        count_branches(chain, slots, exec, last, batch.len(), left.as_ref());
    }
    if !exec.exits.is_empty() {
        exits::part(graph, exec, head, depth, batch);
    }
    let chain = graph.slots[head].chain.as_deref()?;
    Some(match chain.branches.is_empty() {
        // Without last fates, all that are left go on the same way.
        true if all == any && !exec.is_drop(all) => Leaves(last, Next::Output(all)),
        true => Leaves(last, Next::Output(divide(exec, last, batch))),
        false => divide_branches(graph, exec, head, depth, batch),
    })
}

/// Moves the remaining packets by their fates, of which those that lead to the same input are one; returns
/// the output of those that stay.
fn divide(exec: &mut ExecState, last: usize, batch: &mut Batch) -> u8 {
    let mut fates = std::mem::take(&mut exec.fates);
    let keep = Cx { exec, me: last, peers: None }.divide(batch, &mut fates);
    exec.fates = fates;
    keep
}

/// Counts the packets of branches, those that leave by each output but open ones too. Fates that lead to
/// the same input become one.
fn count_branches(
    chain: &FusedChain,
    slots: &[Slot],
    exec: &mut ExecState,
    last: usize,
    packets: usize,
    left: Option<&ExitCounts>,
) {
    let counts = exec.branch_counts;
    for ((branch, &entered), number) in chain.branches.iter().zip(&counts).zip(1..) {
        if entered > 0 {
            let left = left.map(|left| &left[number]);
            let ended = entered - left.map_or(0, |left| left.iter().sum::<u16>());
            exec.counters[last].output += u64::from(entered);
            count_members(&chain.members[branch.members.clone()], exec, entered.into(), left);
            if target(slots, (branch.last, 0)).is_some() {
                exec.counters[branch.last].output += u64::from(ended);
            }
        }
    }
    if counts[MAX_BRANCHES] > 0 {
        let fates = exec.fates[..packets].iter();
        let is_other = |fate: &u8| !chain.branches.iter().any(|branch| branch.fate == *fate);
        let others =
            fates.filter(|&&fate| is_other(&fate) && target(slots, (last, fate)).is_some());
        exec.counters[last].output += others.count() as u64;
    }
    // Where all go, if all go the same way, is found without a look at their fates.
    if (counts[MAX_BRANCHES] > 0 || chain.way.is_none())
        && let Some(groups) = &chain.groups
    {
        groups.apply(&mut exec.fates[..packets]);
    }
}

/// Sends the remaining packets of a chain with branches on their ways; they have been counted, but for
/// those that are dropped and those of open outputs.
fn divide_branches(
    graph: &mut WorkerGraph,
    exec: &mut ExecState,
    head: usize,
    depth: u32,
    batch: &mut Batch,
) -> ChainEnd {
    let WorkerGraph { slots, stack, .. } = graph;
    let none = Leaves(head, Next::None);
    let Some(chain) = slots[head].chain.as_deref() else { return none };
    let last = chain.members[chain.trunk - 1].node;
    let Some((&first, others)) = exec.fates[..batch.len()].split_first() else { return none };
    if exec.branch_counts[MAX_BRANCHES] == 0
        && let Some(to) = chain.way
    {
        return Goes(to);
    }
    if others.iter().fold(0, |any, fate| any | fate ^ first) == 0
        && let Some(to) = target(slots, chain.end_of(last, first))
    {
        return Goes(to);
    }
    let keep = divide(exec, last, batch);
    if !batch.is_empty() {
        exec.outputs.emit(keep, batch);
    }
    let first = slots[last].first_output;
    exec.outputs.sort_from(0, |output| output.wrapping_sub(first));
    while let Some((Destination::Output(output), batch)) = exec.outputs.pop() {
        let end = chain.end_of(last, output);
        match target(slots, end) {
            Some(to) => stack.push(PendingBatch::new(to.node, to.port, depth, batch)),
            None => leave_open(exec, end.0, end.1, &batch),
        }
    }
    none
}

/// Counts packets that all went through these members, before they divide or of a branch. The output of
/// the last member is counted where its packets go on.
#[inline]
fn count_all(members: &[ChainMember], exec: &mut ExecState, count: u64) {
    let Some((last, others)) = members.split_last() else { return };
    for member in others {
        let counters = &mut exec.counters[member.node];
        counters.input += count;
        counters.output += count;
    }
    exec.counters[last.node].input += count;
}

/// The same where packets left; `left` is how many packets each stage kept from the next one.
fn count_members(
    members: &[ChainMember],
    exec: &mut ExecState,
    mut count: u64,
    left: Option<&StageCounts>,
) {
    let Some(left) = left else { return count_all(members, exec, count) };
    let Some((last, others)) = members.split_last() else { return };
    for member in others {
        let counters = &mut exec.counters[member.node];
        counters.input += count;
        count -= u64::from(left[usize::from(member.place.stage)]);
        counters.output += count;
    }
    exec.counters[last.node].input += count;
}

/// After a panic of the stage at a place: the burst is lost there.
#[cold]
fn lose(members: &[ChainMember], exec: &mut ExecState, at: StagePlace, batch: &mut Batch) {
    let count = batch.len() as u64;
    let before = |m: &&ChainMember| {
        let there = m.place.branch == at.branch && m.place.stage <= at.stage;
        there || m.place.branch == 0 && at.branch > 0
    };
    let reached: Vec<ChainMember> = members.iter().filter(before).copied().collect();
    count_all(&reached, exec, count);
    if let Some(member) = reached.last() {
        exec.drop_packets(member.node, PANICKED, batch.as_slice());
    }
    exec.exits.clear();
    exec.count_panic(reached.last().map_or(0, |member| member.node));
    batch.clear();
}
