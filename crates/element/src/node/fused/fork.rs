//! The stage at which a chain divides into branches.

use super::log::ExitLog;
use super::selection::Selection;
use super::stages::{FinalRun, FinalStage, StageRun, Stages};
use super::{
    ChainPart, ChainSpec, EXITED, Elements, MAX_BRANCHES, NextPorts, STOP, Stage, StagePlace,
};
use crate::exec::ExecState;
use crate::node::{RoleNode, ThroughRole};
use crate::time::Time;
use castanet_packet::Packet;

/// A last stage that sends packets to several outputs, with branches of the same classes behind several of
/// them. The fate of a packet that comes to the end of its branch is the output that leads there.
pub struct ForkStage<S, T> {
    end: FinalStage<S>,
    branches: Vec<Branch<T>>,
    selection: Selection,
}

/// The stages of a branch.
struct Branch<T> {
    /// The fate of the fork that leads there.
    port: u8,
    stages: T,
    next_ports: NextPorts,
    elements: Elements,
}

/// A fork, for one burst.
pub struct ForkRun<'a, S: Stage, T> {
    end: FinalRun<'a, S>,
    branches: &'a mut [Branch<T>],
    selection: &'a mut Selection,
}

impl<S: Stage, T: Stages> Stages for ForkStage<S, T> {
    const ENDS: bool = true;
    type Borrowed<'a> = ForkRun<'a, S, T>;

    fn list(into: &mut ChainSpec) {
        const { assert!(!T::ENDS, "the last stage of a branch has one output") };
        FinalStage::<S>::list(into);
        let mut branch = ChainSpec::default();
        T::list(&mut branch);
        into.branch = branch.stages;
    }
    fn fits(nodes: &[Option<RoleNode>], parts: &[ChainPart]) -> bool {
        FinalStage::<S>::fits(nodes, &[]) && parts.iter().all(|part| T::fits(&part.nodes, &[]))
    }
    fn own(nodes: &mut [Option<RoleNode>], parts: &mut [ChainPart]) -> Option<Self> {
        let end = FinalStage::own(nodes, &mut [])?;
        let branch = |part: &mut ChainPart| {
            let ChainPart { port, next_ports, elements, .. } = *part;
            let stages = T::own(&mut part.nodes, &mut [])?;
            Some(Branch { port, stages, next_ports, elements })
        };
        let branches: Option<Vec<_>> = parts.iter_mut().take(MAX_BRANCHES).map(branch).collect();
        Some(ForkStage { end, branches: branches?, selection: Selection::default() })
    }
    fn node(&mut self, place: StagePlace) -> Option<&mut dyn ThroughRole> {
        let Some(branch) = usize::from(place.branch).checked_sub(1) else {
            return self.end.node(place);
        };
        self.branches.get_mut(branch)?.stages.node(StagePlace { branch: 0, ..place })
    }
    fn peek(&self, place: StagePlace) -> Option<&dyn ThroughRole> {
        let Some(branch) = usize::from(place.branch).checked_sub(1) else {
            return self.end.peek(place);
        };
        self.branches.get(branch)?.stages.peek(StagePlace { branch: 0, ..place })
    }
    #[inline(always)]
    fn borrow(&mut self, _: &[u8]) -> Option<Self::Borrowed<'_>> {
        let (branches, selection) = (&mut self.branches[..], &mut self.selection);
        Some(ForkRun { end: self.end.borrow(&[])?, branches, selection })
    }
}

impl<S: Stage, T: Stages> StageRun for ForkRun<'_, S, T> {
    const LOOKS_UP: bool = S::IS_LOOKUP;

    #[inline(always)]
    fn is_native(&self) -> bool {
        self.end.is_native()
    }

    #[inline(always)]
    fn before(&mut self, now: Time) {
        self.end.before(now);
    }

    #[inline(always)]
    fn after(&mut self, elements: &[usize], exec: &mut ExecState) {
        self.end.after(elements, exec);
    }

    #[inline(always)]
    fn run<const HELD: bool, const NATIVE: bool>(
        &mut self,
        packet: &mut Packet,
        place: StagePlace,
        log: &mut ExitLog,
    ) -> u8 {
        self.end.run::<HELD, NATIVE>(packet, place, log)
    }

    #[inline(always)]
    fn look_up<const NATIVE: bool>(
        &mut self,
        packet: &mut Packet,
        place: StagePlace,
        log: &ExitLog,
    ) -> u8 {
        self.end.look_up::<NATIVE>(packet, place, log)
    }

    // Branch by branch, and as functions of their own: for each such loop the processor's registers are
    // enough.
    #[inline(never)]
    fn run_branches(
        &mut self,
        packets: &mut [Packet],
        fates: &mut [u8],
        log: &mut ExitLog,
        exec: &mut ExecState,
    ) {
        exec.branch_counts.fill(0);
        let Some((&first, others)) = fates.split_first() else { return };
        let mut branches = self.branches.iter_mut().zip(0u8..);
        if others.iter().fold(0, |any, fate| any | fate ^ first) == 0 {
            let of_all = branches.find(|(it, _)| it.port == first);
            let index = of_all.as_ref().map_or(MAX_BRANCHES, |(_, branch)| usize::from(*branch));
            exec.branch_counts[index] = packets.len() as u16;
            if let Some((it, branch)) = of_all {
                let mut run = BranchRun { number: branch + 1, packets, fates, log, exec };
                run.run(it, |packets| 0..packets.len());
            }
            return;
        }
        let mut others = packets.len() as u16;
        for (it, branch) in branches {
            let count = self.selection.select(fates, it.port);
            exec.branch_counts[usize::from(branch)] = count;
            others -= count;
            if count > 0 {
                let mut run = BranchRun { number: branch + 1, packets, fates, log, exec };
                run.run(it, |_| self.selection.indices());
            }
        }
        exec.branch_counts[MAX_BRANCHES] = others;
    }
}

/// A branch and the packets of a burst.
struct BranchRun<'a, 'l> {
    /// Its number.
    number: u8,
    packets: &'a mut [Packet],
    fates: &'a mut [u8],
    log: &'a mut ExitLog<'l>,
    exec: &'a mut ExecState,
}

impl BranchRun<'_, '_> {
    /// Runs the packets with these indices through a branch.
    // The indices come by a closure: the compiler then sees which of them are all there are.
    #[inline(never)]
    fn run<T: Stages, I: Iterator<Item = usize> + Clone>(
        &mut self,
        branch: &mut Branch<T>,
        indices: impl Fn(&[Packet]) -> I,
    ) {
        let order = indices(self.packets);
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
        stages.after(&branch.elements, self.exec);
    }

    /// Runs packets until a stage has stopped one; whether that was so.
    #[inline(always)]
    fn run_until_stop<V: StageRun, const NATIVE: bool>(
        &mut self,
        stages: &mut V,
        order: &mut impl Iterator<Item = usize>,
    ) -> bool {
        let first = StagePlace { branch: self.number, stage: 0 };
        let packets = &mut *self.packets;
        for index in order {
            if stages.run::<false, NATIVE>(&mut packets[index], first, self.log) == EXITED {
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
