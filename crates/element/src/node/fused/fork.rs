//! The stage at which a chain divides into branches.

use super::code::{Code, NativeCode, OwnCode, RemainderCode, ShortCode};
use super::log::ExitLog;
use super::selection::{AllPackets, PacketOrder, Selection};
use super::stages::{FinalRun, FinalStage, StageRun, Stages, wants_summary};
use super::{
    ChainPart, ChainSpec, EXITED, Elements, MAX_BRANCHES, NextPorts, STOP, Stage, StagePlace,
};
use crate::exec::ExecState;
use crate::node::{RoleNode, ThroughRole};
use castanet_packet::{BurstSummary, Packet};

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

impl<S: Stage, T: Stages> Stages for ForkStage<S, T> {
    const ENDS: bool = true;
    type Borrowed<'a> = FinalRun<'a, S>;

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
        self.end.borrow(&[])
    }

    // Branch by branch, and as functions of their own: for each such loop the processor's registers are
    // enough.
    #[inline(never)]
    fn run_branches(
        &mut self,
        packets: &mut [Packet],
        fates: &mut [u8],
        of_all: Option<u8>,
        log: &mut ExitLog,
        exec: &mut ExecState,
    ) {
        exec.branch_counts.fill(0);
        let is_wanted = self.branches.iter().any(|it| wants_summary(&it.stages, packets.len()));
        let burst = is_wanted.then(|| summary(packets, fates, log));
        let burst = burst.as_ref();
        let mut branches = self.branches.iter_mut().zip(0u8..);
        if let Some(fate) = of_all {
            let its = branches.find(|(it, _)| it.port == fate);
            let index = its.as_ref().map_or(MAX_BRANCHES, |(_, branch)| usize::from(*branch));
            exec.branch_counts[index] = packets.len() as u16;
            if let Some((it, branch)) = its {
                let mut run = BranchRun { number: branch + 1, packets, burst, fates, log, exec };
                run.run(it, AllPackets::default());
            }
            return;
        }
        let mut others = packets.len() as u16;
        for (it, branch) in branches {
            let count = self.selection.select(fates, it.port);
            exec.branch_counts[usize::from(branch)] = count;
            others -= count;
            if count > 0 {
                let mut run = BranchRun { number: branch + 1, packets, burst, fates, log, exec };
                run.run(it, self.selection.packets());
            }
        }
        exec.branch_counts[MAX_BRANCHES] = others;
    }
}

/// The summary of the packets that have not left the chain.
#[inline(always)]
fn summary(packets: &[Packet], fates: &[u8], log: &ExitLog) -> BurstSummary {
    if log.exits.is_empty() {
        return BurstSummary::of(packets);
    }
    let stayed = packets.iter().zip(fates).filter(|(_, fate)| **fate != EXITED);
    BurstSummary::of(stayed.map(|(packet, _)| packet))
}

/// A branch and the packets of a burst.
struct BranchRun<'a, 'l> {
    /// Its number.
    number: u8,
    packets: &'a mut [Packet],
    /// The summary of these packets, if it is of use.
    burst: Option<&'a BurstSummary>,
    fates: &'a mut [u8],
    log: &'a mut ExitLog<'l>,
    exec: &'a mut ExecState,
}

impl BranchRun<'_, '_> {
    /// Runs packets through a branch.
    #[inline(never)]
    fn run<T: Stages>(&mut self, branch: &mut Branch<T>, mut order: impl PacketOrder) {
        if !self.run_first(branch, &mut order) {
            self.run_left(branch, order);
        }
    }

    /// Runs packets until a stage stops one; returns whether none was stopped.
    #[inline(always)]
    fn run_first<T: Stages>(
        &mut self,
        branch: &mut Branch<T>,
        order: &mut impl PacketOrder,
    ) -> bool {
        let Some(mut stages) = branch.stages.borrow(&branch.next_ports) else {
            // Its first element takes them as a batch.
            let first = StagePlace { branch: self.number, stage: 0 };
            return order.visit(self.packets, |index, packet| {
                self.fates[index] = self.log.exit(packet, first, STOP);
                true
            });
        };
        stages.before(self.exec.now);
        let is_short = self.burst.is_some_and(|burst| stages.passes_burst(burst));
        let is_done = match (stages.is_native(), is_short) {
            (true, true) => self.run_all::<_, ShortCode>(&mut stages, order),
            (true, false) => self.run_all::<_, NativeCode>(&mut stages, order),
            (false, _) => self.run_all::<_, OwnCode>(&mut stages, order),
        };
        if is_done {
            stages.after(&branch.elements, self.exec);
        }
        is_done
    }

    /// Runs packets through all stages; `false` if some are still to run.
    #[inline(always)]
    fn run_all<V: StageRun, C: Code>(
        &mut self,
        stages: &mut V,
        order: &mut impl PacketOrder,
    ) -> bool {
        let first = StagePlace { branch: self.number, stage: 0 };
        order.visit(self.packets, |index, packet| {
            if stages.run::<C>(packet, first, self.log) == EXITED {
                self.fates[index] = EXITED;
                return !self.log.has_stopped();
            }
            true
        })
    }

    /// Runs packets behind one that a stage has stopped, up to that stage.
    #[cold]
    #[inline(never)]
    fn run_left<T: Stages>(&mut self, branch: &mut Branch<T>, mut order: impl PacketOrder) {
        let Some(mut stages) = branch.stages.borrow(&branch.next_ports) else { return };
        let first = StagePlace { branch: self.number, stage: 0 };
        order.visit(self.packets, |index, packet| {
            if stages.run::<RemainderCode>(packet, first, self.log) == EXITED {
                self.fates[index] = EXITED;
            }
            true
        });
        stages.after(&branch.elements, self.exec);
    }
}
