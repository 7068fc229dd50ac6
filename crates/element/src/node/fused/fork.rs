//! The stage at which a chain divides into branches.

use super::log::ExitLog;
use super::stages::{StageRun, Stages, decide};
use super::{
    BranchCounts, ChainMember, ChainPart, ChainSpec, EXITED, MAX_BRANCHES, NextPorts, STOP, Stage,
    StagePlace, StageSpec,
};
use crate::cx::Cx;
use crate::exec::ExecState;
use crate::node::{RoleNode, ThroughRole};
use crate::time::Time;
use castanet_packet::Packet;

/// A last stage that sends packets to several outputs, with branches of the same classes behind several of
/// them. The fate of a packet that comes to the end of its branch is the output that leads there.
pub struct ForkStage<S, T> {
    stage: S,
    branches: Vec<Branch<T>>,
    order: BranchOrder,
}

/// The packets of a burst in the order of their branches.
struct BranchOrder {
    /// By fate of the stage: index of the branch behind, or [`NO_BRANCH`].
    branch_of: Box<[u8; 256]>,
    /// Indices of the packets, branch by branch.
    indices: Vec<u16>,
}

/// The stages of a branch.
struct Branch<T> {
    stages: T,
    next_ports: NextPorts,
}

/// The index for packets without a branch.
const NO_BRANCH: u8 = MAX_BRANCHES as u8;

/// A fork, for one burst.
pub struct ForkRun<'a, S: Stage, T> {
    stage: S::Borrowed<'a>,
    branches: &'a mut [Branch<T>],
    order: &'a mut BranchOrder,
}

impl<S: Stage, T: Stages> Stages for ForkStage<S, T> {
    const ENDS: bool = true;
    type Borrowed<'a> = ForkRun<'a, S, T>;

    fn list(into: &mut ChainSpec) {
        const { assert!(!T::ENDS, "the last stage of a branch has one output") };
        into.stages.push(StageSpec::of::<S>());
        let mut branch = ChainSpec::default();
        T::list(&mut branch);
        into.branch = branch.stages;
    }
    fn fits(nodes: &[Option<RoleNode>], parts: &[ChainPart]) -> bool {
        let first = nodes.first().is_some_and(|node| node.as_ref().is_none_or(S::fits));
        first && parts.iter().all(|part| T::fits(&part.nodes, &[]))
    }
    fn own(nodes: &mut [Option<RoleNode>], parts: &mut [ChainPart]) -> Option<Self> {
        let stage = S::own(nodes.first_mut()?.take())?;
        let mut branch_of = Box::new([NO_BRANCH; 256]);
        let mut branches = Vec::new();
        for part in parts.iter_mut().take(MAX_BRANCHES) {
            branch_of[usize::from(part.port)] = branches.len() as u8;
            let stages = T::own(&mut part.nodes, &mut [])?;
            branches.push(Branch { stages, next_ports: part.next_ports });
        }
        Some(ForkStage { stage, branches, order: BranchOrder { branch_of, indices: Vec::new() } })
    }
    fn node(&mut self, place: StagePlace) -> Option<&mut dyn ThroughRole> {
        match (place.branch, place.stage) {
            (0, 0) => self.stage.node(),
            (0, _) => None,
            (branch, stage) => {
                let branch = self.branches.get_mut(usize::from(branch) - 1)?;
                branch.stages.node(StagePlace { branch: 0, stage })
            }
        }
    }
    fn peek(&self, place: StagePlace) -> Option<&dyn ThroughRole> {
        match (place.branch, place.stage) {
            (0, 0) => self.stage.peek(),
            (0, _) => None,
            (branch, stage) => {
                let branch = self.branches.get(usize::from(branch) - 1)?;
                branch.stages.peek(StagePlace { branch: 0, stage })
            }
        }
    }
    #[inline(always)]
    fn borrow(&mut self, _: &[u8]) -> Option<Self::Borrowed<'_>> {
        let (branches, order) = (&mut self.branches[..], &mut self.order);
        Some(ForkRun { stage: self.stage.borrow()?, branches, order })
    }
}

impl<S: Stage, T: Stages> StageRun for ForkRun<'_, S, T> {
    #[inline(always)]
    fn is_native(&self) -> bool {
        S::is_native(&self.stage)
    }

    #[inline(always)]
    fn before(&mut self, now: Time) {
        S::before(&mut self.stage, now);
    }

    #[inline(always)]
    fn after(&mut self, members: &[ChainMember], stage: u8, exec: &mut ExecState) {
        if let Some(member) = members.first().filter(|m| m.place.stage == stage) {
            S::after(&mut self.stage, &mut Cx { exec, me: member.node, peers: None });
        }
    }

    #[inline(always)]
    fn run<const HELD: bool, const NATIVE: bool>(
        &mut self,
        packet: &mut Packet,
        place: StagePlace,
        log: &mut ExitLog,
    ) -> u8 {
        if HELD && log.stops_at(place) {
            return log.exit(packet, place, STOP);
        }
        decide::<S, NATIVE>(&mut self.stage, packet, place, log)
    }

    // Branch by branch, and as functions of their own: for each such loop the processor's registers are
    // enough.
    #[inline(never)]
    fn run_branches(
        &mut self,
        members: &[ChainMember],
        packets: &mut [Packet],
        fates: &mut [u8],
        log: &mut ExitLog,
        exec: &mut ExecState,
    ) {
        exec.branch_counts.fill(0);
        let Some((&first, others)) = fates.split_first() else { return };
        if others.iter().fold(0, |any, fate| any | fate ^ first) == 0 {
            let branch = usize::from(self.order.branch_of[usize::from(first)]);
            exec.branch_counts[branch] = packets.len() as u16;
            if let Some(it) = self.branches.get_mut(branch) {
                let (number, count) = (branch as u8 + 1, packets.len());
                let mut run = BranchRun { number, members, packets, fates, log, exec };
                run.run(it, 0..count);
            }
            return;
        }
        let counts = self.order.sort(fates);
        exec.branch_counts = counts;
        let mut rest = &self.order.indices[..fates.len()];
        for ((it, count), number) in self.branches.iter_mut().zip(counts).zip(1..) {
            let Some((order, behind)) = rest.split_at_checked(count.into()) else { return };
            rest = behind;
            if !order.is_empty() {
                let mut run = BranchRun { number, members, packets, fates, log, exec };
                run.run(it, order.iter().map(|&index| usize::from(index)));
            }
        }
    }
}

impl BranchOrder {
    /// Sorts the indices of packets by their branches; returns how many each has.
    #[inline]
    fn sort(&mut self, fates: &[u8]) -> BranchCounts {
        if self.indices.len() < fates.len() {
            self.indices.resize(fates.len(), 0);
        }
        // As many as an index can name, so that none is compared with their number.
        let mut next = [0u16; 256];
        for fate in fates {
            next[usize::from(self.branch_of[usize::from(*fate)])] += 1;
        }
        let counts = std::array::from_fn(|branch| next[branch]);
        let mut start = 0;
        for next in &mut next[..counts.len()] {
            start += std::mem::replace(next, start);
        }
        for (index, fate) in (0..).zip(fates) {
            let next = &mut next[usize::from(self.branch_of[usize::from(*fate)])];
            self.indices[usize::from(*next)] = index;
            *next += 1;
        }
        counts
    }
}

/// A branch and the packets of a burst.
struct BranchRun<'a, 'l> {
    /// Its number.
    number: u8,
    members: &'a [ChainMember],
    packets: &'a mut [Packet],
    fates: &'a mut [u8],
    log: &'a mut ExitLog<'l>,
    exec: &'a mut ExecState,
}

impl BranchRun<'_, '_> {
    /// Runs the packets with these indices through a branch.
    #[inline(never)]
    fn run<T: Stages>(
        &mut self,
        branch: &mut Branch<T>,
        order: impl Iterator<Item = usize> + Clone,
    ) {
        let first = StagePlace { branch: self.number, stage: 0 };
        let Some(mut stages) = branch.stages.borrow(&branch.next_ports) else {
            // Its first element takes them as a batch.
            order.for_each(|index| {
                self.fates[index] = self.log.exit(&self.packets[index], first, STOP)
            });
            return;
        };
        stages.before(self.exec.now);
        let mut held = order.clone();
        let has_stopped = match stages.is_native() {
            true => self.run_until_stop::<_, true>(&mut stages, &mut held),
            false => self.run_until_stop::<_, false>(&mut stages, &mut held),
        };
        if has_stopped {
            self.run_held(&mut stages, held);
        }
        let start = self.members.partition_point(|m| m.place.branch < self.number);
        let end = self.members.partition_point(|m| m.place.branch <= self.number);
        stages.after(&self.members[start..end], 0, self.exec);
    }

    /// Runs packets until a stage has stopped one; whether that was so.
    #[inline(always)]
    fn run_until_stop<V: StageRun, const NATIVE: bool>(
        &mut self,
        stages: &mut V,
        order: &mut impl Iterator<Item = usize>,
    ) -> bool {
        let first = StagePlace { branch: self.number, stage: 0 };
        for index in order {
            if stages.run::<false, NATIVE>(&mut self.packets[index], first, self.log) == EXITED {
                self.fates[index] = EXITED;
                if self.log.has_stopped() {
                    return true;
                }
            }
        }
        false
    }

    /// Runs packets behind one that a stage has stopped, up to that stage.
    #[cold]
    #[inline(never)]
    fn run_held<V: StageRun>(&mut self, stages: &mut V, order: impl Iterator<Item = usize>) {
        let first = StagePlace { branch: self.number, stage: 0 };
        for index in order {
            self.fates[index] =
                match stages.run::<true, false>(&mut self.packets[index], first, self.log) {
                    EXITED => EXITED,
                    _ => self.fates[index],
                };
        }
    }
}
