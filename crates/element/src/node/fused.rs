//! Fused chains: several elements in a row, compiled into one loop over a burst.
//!
//! A loop of its own over a burst costs each element some fifteen instructions a packet before it does
//! anything. Sequences of classes that many configurations have are therefore compiled together
//! ([`fuse!`](crate::fuse)); where a graph has such elements one after the other, the runtime runs the
//! compiled chain instead of one element after the other. Nothing else changes: each element keeps its
//! state, its counters and its handlers, and packets that do not go on to the next stage leave by the
//! outputs of their element.
//!
//! A chain may divide at its last element, such as a routing table, into branches of the same classes:
//! the elements before each next hop. A packet then goes on in its branch at once, without a batch for
//! each output.

mod code;
mod fork;
mod log;
mod native;
mod selection;
mod stage;
mod stages;

use super::{RoleNode, ThroughRole};
use crate::exec::ExecState;
use castanet_packet::{Batch, BurstSummary, Packet};
use code::{NativeCode, OwnCode, RemainderCode, ShortCode};
use log::ExitLog;
use stages::{StageRun, wants_summary};
use std::cell::Cell;
use std::mem::take;

pub use crate::exec::{BranchCounts, MAX_BRANCHES, StagePlace};
pub use code::Code;
pub use fork::ForkStage;
pub use native::{NativePacket, NativePass, NativeStage};
pub use stage::{OptionalStage, Stage};
pub use stages::{FinalStage, Stages};

/// The most stages that a chain, or one of its branches, can have.
pub const MAX_STAGES: usize = 10;

/// Fate of a packet that its stage takes only as part of a batch. No element has so many reasons to drop.
const STOP: u8 = crate::fate::DISCARDED;
/// Fate of a packet that has left the chain before its end.
const EXITED: u8 = crate::fate::PANICKED;

/// An element of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainMember {
    /// Its place.
    pub place: StagePlace,
    /// Index of the element.
    pub node: usize,
    /// The input by which packets come.
    pub port: usize,
    /// The output that leads to the next member.
    pub next_port: u8,
}

/// Requirement of a compiled chain for the element of one stage.
#[derive(Clone, Copy, Debug)]
pub struct StageSpec {
    /// The class.
    pub class: &'static str,
    /// Whether outputs beside the first may lead on.
    pub open: bool,
    /// Whether the stage may be absent.
    pub optional: bool,
}

impl StageSpec {
    /// That of a stage.
    fn of<S: Stage>() -> StageSpec {
        StageSpec { class: S::CLASS, open: S::OPEN, optional: S::OPTIONAL }
    }
}

/// Requirements of a compiled chain.
#[derive(Debug, Default)]
pub struct ChainSpec {
    /// Of each stage up to where it divides.
    pub stages: Vec<StageSpec>,
    /// Of each stage of a branch; empty if it does not divide.
    pub branch: Vec<StageSpec>,
}

/// By stage: the node of its element.
pub type Nodes = Vec<Option<RoleNode>>;

/// By stage: the output that leads to the next stage.
pub type NextPorts = [u8; MAX_STAGES];

/// By stage: index of its element.
pub type Elements = [usize; MAX_STAGES];

/// The stages of a chain up to where it divides, or those of a branch.
pub struct ChainPart {
    /// The output by which packets come to the branch.
    pub port: u8,
    /// The nodes.
    pub nodes: Nodes,
    /// The outputs that lead on.
    pub next_ports: NextPorts,
    /// The elements.
    pub elements: Elements,
}

impl ChainPart {
    /// A part without nodes, behind output `port`.
    pub fn new(port: u8) -> ChainPart {
        let nodes = (0..MAX_STAGES).map(|_| None).collect();
        ChainPart { port, nodes, next_ports: [0; MAX_STAGES], elements: [0; MAX_STAGES] }
    }
}

/// Makes a chain of its parts, the branches last; `None` if their nodes are of other classes.
pub type BuildChain = fn(&mut [ChainPart]) -> Option<Box<dyn Chain>>;

/// Classes compiled into one chain.
pub struct Fusion {
    /// Its requirements.
    pub spec: fn() -> ChainSpec,
    /// Whether the elements of a chain's parts have the arguments for which it has code.
    pub fits: fn(&[ChainPart]) -> bool,
    /// Makes the chain.
    pub build: BuildChain,
}

/// Elements of these classes, one after the other, as one chain; see [`fuse!`](crate::fuse).
pub const fn fusion<S: Stages>() -> Fusion {
    Fusion { spec: spec::<S>, fits: fits::<S>, build: build::<S> }
}

/// Compiles a chain from classes in their order: `packet CLASS` for those that
/// decide packet by packet, `batch CLASS` for those that let packets pass
/// (`PerBatch::can_pass`), `maybe CLASS` for a `packet` that need not be there,
/// and `; CLASS` at the end for one that sends packets to several outputs.
/// `; CLASS => packet CLASS, ...` has these classes behind several of the outputs.
/// `CLASS = CODE` has code for certain arguments ([`native!`](crate::native)).
#[macro_export]
macro_rules! fuse {
    (@stage packet $class:ty) => { $crate::node::PerPacketNode<$class> };
    (@stage batch $class:ty) => { $crate::node::PerBatchNode<$class> };
    (@stage maybe $class:ty) => {
        $crate::node::fused::OptionalStage<$crate::node::PerPacketNode<$class>>
    };
    (@stage packet $class:ty = $code:ty) => {
        $crate::node::fused::NativeStage<$crate::node::PerPacketNode<$class>, $code, $class>
    };
    (@stage batch $class:ty = $code:ty) => {
        $crate::node::fused::NativeStage<$crate::node::PerBatchNode<$class>, $code, $class>
    };
    (@stage maybe $class:ty = $code:ty) => {
        $crate::node::fused::OptionalStage<$crate::fuse!(@stage packet $class = $code)>
    };
    (@ ) => { () };
    (@ ; $end:ty $(= $code:ty)?) => {
        $crate::node::fused::FinalStage<$crate::fuse!(@stage packet $end $(= $code)?)>
    };
    (@ ; $fork:ty $(= $code:ty)? => $($branch:tt)+) => {
        $crate::node::fused::ForkStage<
            $crate::fuse!(@stage packet $fork $(= $code)?),
            $crate::fuse!(@ $($branch)+),
        >
    };
    (@ $kind:ident $class:ty $(= $code:ty)?) => {
        ($crate::fuse!(@stage $kind $class $(= $code)?), ())
    };
    (@ $kind:ident $class:ty $(= $code:ty)?, $($more:tt)+) => {
        ($crate::fuse!(@stage $kind $class $(= $code)?), $crate::fuse!(@ $($more)+))
    };
    (@ $kind:ident $class:ty $(= $code:ty)?; $($more:tt)+) => {
        ($crate::fuse!(@stage $kind $class $(= $code)?), $crate::fuse!(@ ; $($more)+))
    };
    ($($stages:tt)+) => { $crate::node::fused::fusion::<$crate::fuse!(@ $($stages)+)>() };
}

fn spec<S: Stages>() -> ChainSpec {
    let mut spec = ChainSpec::default();
    S::list(&mut spec);
    spec
}

fn fits<S: Stages>(parts: &[ChainPart]) -> bool {
    parts.split_first().is_some_and(|(trunk, branches)| S::fits(&trunk.nodes, branches))
}

fn build<S: Stages>(parts: &mut [ChainPart]) -> Option<Box<dyn Chain>> {
    let (ChainPart { nodes, next_ports, elements, .. }, branches) = parts.split_first_mut()?;
    let stages = S::own(nodes, branches)?;
    Some(Box::new(CompiledChain { stages, next_ports: *next_ports, elements: *elements }))
}

/// A compiled chain with the nodes of its elements.
pub trait Chain: Send {
    /// The node at a place.
    fn node(&mut self, place: StagePlace) -> Option<&mut dyn ThroughRole>;
    /// The node at a place, to look at.
    fn peek(&self, place: StagePlace) -> Option<&dyn ThroughRole>;
    /// Runs a batch. Fills `exec.exits` with packets that leave before the end, and `exec.fates` for the
    /// others if the last stage before branches has several outputs: with its fate, for packets of branches
    /// too. Fills `exec.branch_counts` if there are branches. Returns the bits that are in all and in any
    /// of these fates. `None`, with nothing done, if a state is shared. Sets `panicked` to the place of the
    /// stage that panics.
    fn run(
        &mut self,
        batch: &mut Batch,
        exec: &mut ExecState,
        panicked: &mut StagePlace,
    ) -> Option<(u8, u8)>;
}

/// A compiled chain with the nodes of its elements.
// Two cache lines: neighbours prefetch in pairs, and no two workers may share one.
#[repr(align(128))]
struct CompiledChain<S> {
    stages: S,
    next_ports: NextPorts,
    elements: Elements,
}

/// Runs packets through all stages; `false` if some are still to run, or to be decided about.
#[inline(always)]
fn run_all<S: Stages, C: Code>(
    stages: &mut S::Borrowed<'_>,
    packets: &mut [Packet],
    fates: &mut [u8],
    log: &mut ExitLog,
) -> bool {
    let first = StagePlace::default();
    let looks_up = <S::Borrowed<'_> as StageRun>::LOOKS_UP;
    if S::ENDS && !looks_up {
        for (packet, slot) in packets.iter_mut().zip(fates) {
            *slot = stages.run::<C>(packet, first, log);
            if *slot == EXITED && log.has_stopped() {
                return false;
            }
        }
        return true;
    }
    for packet in &mut *packets {
        if stages.run::<C>(packet, first, log) == EXITED && log.has_stopped() {
            return false;
        }
    }
    if !looks_up {
        return true;
    }
    if !log.exits.is_empty() {
        return false;
    }
    stages.look_up::<C>(packets, fates, first, log);
    true
}

/// Has the last stage, a lookup, decide about the packets that have not left the chain before it.
#[inline(never)]
fn look_up_remaining<V: StageRun>(
    stages: &mut V,
    packets: &mut [Packet],
    fates: &mut [u8],
    log: &ExitLog,
) {
    let mut start = 0;
    for exit in &*log.exits {
        let index = usize::from(exit.index);
        let (packets, fates) = (&mut packets[start..index], &mut fates[start..=index]);
        if let Some((slot, fates)) = fates.split_last_mut() {
            stages.look_up::<OwnCode>(packets, fates, StagePlace::default(), log);
            *slot = EXITED;
        }
        start = index + 1;
    }
    let (packets, fates) = (&mut packets[start..], &mut fates[start..]);
    stages.look_up::<OwnCode>(packets, fates, StagePlace::default(), log);
}

/// Runs the packets behind one that its stage takes only as part of a batch up to that stage, so that
/// they stay behind it.
#[cold]
#[inline(never)]
fn run_remaining<V: StageRun>(
    stages: &mut V,
    packets: &mut [Packet],
    fates: &mut [u8],
    log: &mut ExitLog,
) {
    let done = log.exits.last().map_or(0, |exit| usize::from(exit.index) + 1);
    for (index, packet) in packets.iter_mut().enumerate().skip(done) {
        let fate = stages.run::<RemainderCode>(packet, StagePlace::default(), log);
        if let Some(slot) = fates.get_mut(index) {
            *slot = fate;
        }
    }
}

impl<S: Stages> CompiledChain<S> {
    /// Runs the packets; `false` if some are left for [`Self::run_left`], and `None`, with nothing done, if
    /// a state is shared.
    #[inline(always)]
    fn run_first(
        &mut self,
        packets: &mut [Packet],
        fates: &mut [u8],
        log: &mut ExitLog,
        exec: &mut ExecState,
    ) -> Option<bool> {
        let is_wanted = wants_summary(&self.stages, packets.len());
        let burst = is_wanted.then(|| BurstSummary::of(&*packets));
        let mut stages = self.stages.borrow(&self.next_ports)?;
        stages.before(exec.now);
        let is_short = burst.is_some_and(|burst| stages.passes_burst(&burst));
        let is_done = match (stages.is_native(), is_short) {
            (true, true) => run_all::<S, ShortCode>(&mut stages, packets, fates, log),
            (true, false) => run_all::<S, NativeCode>(&mut stages, packets, fates, log),
            (false, _) => run_all::<S, OwnCode>(&mut stages, packets, fates, log),
        };
        if is_done {
            stages.after(&self.elements, exec);
        }
        Some(is_done)
    }

    /// Runs the packets that [`run_all`] has left. Borrows the stages for itself: those of the caller's
    /// loop need not lie in memory then.
    #[inline(never)]
    fn run_left(
        &mut self,
        packets: &mut [Packet],
        fates: &mut [u8],
        log: &mut ExitLog,
        exec: &mut ExecState,
    ) {
        let Some(mut stages) = self.stages.borrow(&self.next_ports) else { return };
        if log.has_stopped() {
            run_remaining(&mut stages, packets, fates, log);
        }
        if <S::Borrowed<'_> as StageRun>::LOOKS_UP {
            look_up_remaining(&mut stages, packets, fates, log);
        }
        stages.after(&self.elements, exec);
    }
}

impl<S: Stages> Chain for CompiledChain<S> {
    fn node(&mut self, place: StagePlace) -> Option<&mut dyn ThroughRole> {
        self.stages.node(place)
    }

    fn peek(&self, place: StagePlace) -> Option<&dyn ThroughRole> {
        self.stages.peek(place)
    }

    fn run(
        &mut self,
        batch: &mut Batch,
        exec: &mut ExecState,
        panicked: &mut StagePlace,
    ) -> Option<(u8, u8)> {
        // Taken out, as stages may need the rest of the state meanwhile.
        let (mut fates, mut exits) = (take(&mut exec.fates), take(&mut exec.exits));
        let packets = batch.as_mut_slice();
        let mut log = ExitLog::new(&mut exits, packets, Cell::from_mut(panicked));
        let decided = &mut fates[..if S::ENDS { packets.len() } else { 0 }];
        let Some(is_done) = self.run_first(packets, decided, &mut log, exec) else {
            (exec.fates, exec.exits) = (fates, exits);
            return None;
        };
        if !is_done {
            self.run_left(packets, decided, &mut log, exec);
        }
        // All fates at once: cheaper than one by one beside the packets.
        let (all, any) = crate::fate::bits(decided);
        if S::ENDS {
            let before = log.exits.len();
            self.stages.run_branches(packets, decided, (all == any).then_some(all), &mut log, exec);
            if log.exits.len() > before.max(1) {
                log.exits.sort_unstable_by_key(|exit| exit.index);
            }
        }
        (exec.fates, exec.exits) = (fates, exits);
        Some(if S::ENDS { (all, any) } else { (0, 0) })
    }
}
