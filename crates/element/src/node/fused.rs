//! Fused chains: several elements in a row, compiled into one loop over a burst.
//!
//! A loop of its own over a burst costs each element some fifteen instructions a packet before it does
//! anything. Sequences of classes that many configurations have are therefore compiled together
//! ([`fuse!`](crate::fuse)); where a graph has such elements one after the other, the runtime runs the
//! compiled chain instead of one element after the other. Nothing else changes: each element keeps its
//! state, its counters and its handlers, and packets that do not go on to the next stage leave by the
//! outputs of their element.

mod stage;
mod stages;

use super::{RoleNode, ThroughRole};
use crate::exec::ExecState;
use castanet_packet::{Batch, Packet};
use stages::{ExitLog, StageRun};
use std::cell::Cell;

pub use stage::{OptionalStage, Stage};
pub use stages::{FinalStage, Stages};

/// The most stages that a chain can have.
pub const MAX_STAGES: usize = 10;

/// Fate of a packet that its stage takes only as part of a batch. No element has so many reasons to drop.
const STOP: u8 = crate::fate::DISCARDED;
/// Fate of a packet that has left the chain before its end.
const EXITED: u8 = crate::fate::PANICKED;

/// An element of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainMember {
    /// Its stage.
    pub stage: u8,
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

/// By stage: the node of its element.
pub type Nodes = Vec<Option<RoleNode>>;

/// By stage: the output that leads to the next stage.
pub type NextPorts = [u8; MAX_STAGES];

/// Makes a chain of the nodes of its stages; `None` if they are of other classes.
pub type BuildChain = fn(&mut Nodes, &NextPorts) -> Option<Box<dyn Chain>>;

/// Classes compiled into one chain.
pub struct Fusion {
    /// Requirements, stage by stage.
    pub stages_of: fn() -> Vec<StageSpec>,
    /// Makes the chain.
    pub build: BuildChain,
}

/// Elements of these classes, one after the other, as one chain; see [`fuse!`](crate::fuse).
pub const fn fusion<S: Stages>() -> Fusion {
    Fusion { stages_of: stages_of::<S>, build: build::<S> }
}

/// Compiles a chain from classes in their order: `packet CLASS` for those that
/// decide packet by packet, `batch CLASS` for those that let packets pass
/// (`PerBatch::passes`), `maybe CLASS` for a `packet` that need not be there,
/// and `; CLASS` at the end for one that sends packets to several outputs.
#[macro_export]
macro_rules! fuse {
    (@ ) => { () };
    (@ ; $end:ty) => { $crate::node::fused::FinalStage<$crate::node::PerPacketNode<$end>> };
    (@ packet $class:ty $(, $kind:ident $more:ty)* $(; $end:ty)?) => {
        ($crate::node::PerPacketNode<$class>, $crate::fuse!(@ $($kind $more),* $(; $end)?))
    };
    (@ maybe $class:ty $(, $kind:ident $more:ty)* $(; $end:ty)?) => {
        (
            $crate::node::fused::OptionalStage<$crate::node::PerPacketNode<$class>>,
            $crate::fuse!(@ $($kind $more),* $(; $end)?),
        )
    };
    (@ batch $class:ty $(, $kind:ident $more:ty)* $(; $end:ty)?) => {
        ($crate::node::PerBatchNode<$class>, $crate::fuse!(@ $($kind $more),* $(; $end)?))
    };
    ($($kind:ident $class:ty),+ $(; $end:ty)?) => {
        $crate::node::fused::fusion::<$crate::fuse!(@ $($kind $class),+ $(; $end)?)>()
    };
}

fn stages_of<S: Stages>() -> Vec<StageSpec> {
    let mut list = Vec::new();
    S::list(&mut list);
    list
}

fn build<S: Stages>(nodes: &mut Nodes, next_ports: &NextPorts) -> Option<Box<dyn Chain>> {
    let stages = S::own(nodes)?;
    Some(Box::new(CompiledChain { stages, next_ports: *next_ports }))
}

/// A compiled chain with the nodes of its elements.
pub trait Chain: Send {
    /// The node of a stage.
    fn node(&mut self, stage: u8) -> Option<&mut dyn ThroughRole>;
    /// The node of a stage, to look at.
    fn peek(&self, stage: u8) -> Option<&dyn ThroughRole>;
    /// Runs a batch. Fills `exec.exits` with packets that leave before the end, and `exec.fates` for the
    /// others if the last stage has several outputs; returns the bits that are in all and in any of these
    /// fates. `None`, with nothing done, if a state is shared. Sets `panicked` to the stage that panics.
    fn run(
        &mut self,
        members: &[ChainMember],
        batch: &mut Batch,
        exec: &mut ExecState,
        panicked: &mut u8,
    ) -> Option<(u8, u8)>;
}

/// A compiled chain with the nodes of its elements.
// Two cache lines: neighbours prefetch in pairs, and no two workers may share one.
#[repr(align(128))]
struct CompiledChain<S> {
    stages: S,
    next_ports: NextPorts,
}

/// Runs the packets behind one that its stage takes only as part of a batch up to that stage, so that
/// they stay behind it.
#[cold]
#[inline(never)]
fn run_remaining<V: StageRun>(stages: &mut V, packets: &mut [Packet], log: &mut ExitLog) {
    let done = log.exits.last().map_or(0, |exit| usize::from(exit.index) + 1);
    let until = log.stopped;
    for packet in &mut packets[done..] {
        stages.run(packet, 0, until, log);
    }
}

/// No stage has this number.
const NO_STAGE: u8 = u8::MAX;

impl<S: Stages> Chain for CompiledChain<S> {
    fn node(&mut self, stage: u8) -> Option<&mut dyn ThroughRole> {
        self.stages.node(stage)
    }

    fn peek(&self, stage: u8) -> Option<&dyn ThroughRole> {
        self.stages.peek(stage)
    }

    fn run(
        &mut self,
        members: &[ChainMember],
        batch: &mut Batch,
        exec: &mut ExecState,
        panicked: &mut u8,
    ) -> Option<(u8, u8)> {
        let mut stages = self.stages.borrow(&self.next_ports)?;
        stages.before(exec.now);
        let ExecState { fates, exits, .. } = &mut *exec;
        let packets = batch.as_mut_slice();
        let start = packets.as_ptr().addr();
        let panicked = Cell::from_mut(panicked);
        let mut log = ExitLog { exits, start, stopped: NO_STAGE, panicked };
        // Where the chain has no last fates, the loop counts through the packets alone.
        let slots = &mut fates[..if S::ENDS { packets.len() } else { 0 }];
        for (index, packet) in packets.iter_mut().enumerate() {
            let fate = stages.run(packet, 0, NO_STAGE, &mut log);
            if S::ENDS {
                slots[index] = fate;
            }
            if fate == EXITED && log.has_stopped() {
                break;
            }
        }
        if log.stopped != NO_STAGE {
            run_remaining(&mut stages, packets, &mut log);
        }
        // All fates at once: cheaper than one by one beside the packets.
        let decided = if S::ENDS { &fates[..packets.len()] } else { &[0][..] };
        let all = decided.iter().fold(u8::MAX, |all, fate| all & fate);
        let any = decided.iter().fold(0, |any, fate| any | fate);
        stages.after(members, 0, exec);
        Some((all, any))
    }
}
