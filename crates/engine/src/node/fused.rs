//! Several elements in one pass: each packet goes through all of them while
//! it is at hand.
//!
//! A pass of its own over a burst costs every element some fifteen
//! instructions a packet before it does anything. Sequences of classes that
//! configurations use again and again are therefore compiled together
//! ([`fuse!`]); where a graph has such elements one after the other, the engine
//! runs the compiled pass instead of one visit each. Nothing else changes:
//! each element keeps its state, its counts and its handlers, and what does
//! not go straight on leaves by its own outputs.

mod stage;
mod stages;

use super::Node;
use crate::worker::core::Core;
use castanet_packet::{Batch, Packet};
use stages::{Notes, Visit};
use std::cell::Cell;

pub use stage::{Maybe, Stage};
pub use stages::{End, Stages};

/// Most elements that one pass can have.
pub(crate) const MAX_STAGES: usize = 10;

/// The answer of a stage that wants the packet as part of a batch. No element
/// has so many reasons to drop.
const STOP: u8 = super::THROWN;
/// In the place of a fate: the packet has left before the end of the pass.
const LEFT: u8 = super::PANICKED;

/// A packet that leaves a pass before its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaver {
    /// Which packet of the burst.
    pub(crate) index: u16,
    /// At which stage.
    pub(crate) place: u8,
    /// To where; `None` into the stage's element itself.
    pub(crate) fate: Option<u8>,
}

/// An element that takes part in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which stage it is.
    pub(crate) place: u8,
    /// Index of the element.
    pub(crate) node: usize,
    /// The input by which packets come.
    pub(crate) port: usize,
    /// The output that leads to the next member.
    pub(crate) via: u8,
}

/// What a compiled pass needs of a row of elements, stage by stage.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// The class.
    pub(crate) class: &'static str,
    /// Whether outputs beside the first may lead on.
    pub(crate) open: bool,
    /// Whether a row can do without it.
    pub(crate) optional: bool,
}

/// By stage: the node of the element that is to be it.
pub(crate) type Nodes = Vec<Option<Box<dyn Node>>>;

/// By stage: the output that leads on.
pub(crate) type Vias = [u8; MAX_STAGES];

/// Puts a pass together from the nodes of a row.
pub(crate) type Make = fn(&mut Nodes, &Vias) -> Option<Box<dyn Fused>>;

/// Classes compiled into one pass.
pub struct Fusion {
    pub(crate) needs: fn() -> Vec<Need>,
    pub(crate) build: Make,
}

/// Elements of these classes, one after the other, as one pass; see [`fuse!`].
pub const fn fusion<S: Stages>() -> Fusion {
    Fusion { needs: needs::<S>, build: build::<S> }
}

/// Compiles a pass from classes in their order: `packet CLASS` for those that
/// decide packet by packet, `batch CLASS` for those that let packets pass
/// (`PerBatch::passes`), `maybe CLASS` for a `packet` that need not be there,
/// and `; CLASS` at the end for one that sends packets to several outputs.
#[macro_export]
macro_rules! fuse {
    (@ ) => { () };
    (@ ; $end:ty) => { $crate::node::fused::End<$crate::node::PerPacketNode<$end>> };
    (@ packet $class:ty $(, $kind:ident $more:ty)* $(; $end:ty)?) => {
        ($crate::node::PerPacketNode<$class>, $crate::fuse!(@ $($kind $more),* $(; $end)?))
    };
    (@ maybe $class:ty $(, $kind:ident $more:ty)* $(; $end:ty)?) => {
        (
            $crate::node::fused::Maybe<$crate::node::PerPacketNode<$class>>,
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

fn needs<S: Stages>() -> Vec<Need> {
    let mut list = Vec::new();
    S::list(&mut list);
    list
}

fn build<S: Stages>(nodes: &mut Nodes, vias: &Vias) -> Option<Box<dyn Fused>> {
    let stages = S::own(nodes)?;
    Some(Box::new(Pass { stages, vias: *vias }))
}

/// A compiled pass with the nodes of its elements.
pub(crate) trait Fused: Send {
    /// The node of a stage.
    fn node(&mut self, place: u8) -> Option<&mut dyn Node>;
    /// The node of a stage, to look at.
    fn peek(&self, place: u8) -> Option<&dyn Node>;
    /// Fills `core.leavers` for a batch, and `core.fates` for what is left if
    /// the last stage has several outputs; answers the bits that are in all and
    /// in any of the fates. `panicked` becomes the stage that panics.
    fn run(
        &mut self,
        members: &[Member],
        batch: &mut Batch,
        core: &mut Core,
        panicked: &mut u8,
    ) -> Option<(u8, u8)>;
}

/// A compiled pass with the nodes of its elements.
// Two cache lines: neighbours prefetch in pairs, and no two workers may share one.
#[repr(align(128))]
struct Pass<S> {
    stages: S,
    vias: Vias,
}

/// Takes the packets behind one that its stage wants as part of a batch as far
/// as that stage, so that they stay behind it.
#[cold]
#[inline(never)]
fn visit_rest<V: Visit>(stages: &mut V, packets: &mut [Packet], notes: &mut Notes) {
    let done = notes.leavers.last().map_or(0, |leaver| usize::from(leaver.index) + 1);
    let until = notes.stopped;
    for packet in &mut packets[done..] {
        stages.visit(packet, 0, until, notes);
    }
}

/// No stage has this number.
const NOWHERE: u8 = u8::MAX;

impl<S: Stages> Fused for Pass<S> {
    fn node(&mut self, place: u8) -> Option<&mut dyn Node> {
        self.stages.node(place)
    }

    fn peek(&self, place: u8) -> Option<&dyn Node> {
        self.stages.peek(place)
    }

    fn run(
        &mut self,
        members: &[Member],
        batch: &mut Batch,
        core: &mut Core,
        panicked: &mut u8,
    ) -> Option<(u8, u8)> {
        let mut stages = self.stages.lend(&self.vias)?;
        stages.before(core.now);
        let Core { fates, leavers, .. } = &mut *core;
        let packets = batch.as_mut_slice();
        let start = packets.as_ptr().addr();
        let panicked = Cell::from_mut(panicked);
        let mut notes = Notes { leavers, start, stopped: NOWHERE, panicked };
        // Where fates need no place, nothing but the packets is counted through.
        let places = &mut fates[..if S::ENDS { packets.len() } else { 0 }];
        for (index, packet) in packets.iter_mut().enumerate() {
            let fate = stages.visit(packet, 0, NOWHERE, &mut notes);
            if S::ENDS {
                places[index] = fate;
            }
            if fate == LEFT && notes.has_stopped() {
                break;
            }
        }
        if notes.stopped != NOWHERE {
            visit_rest(&mut stages, packets, &mut notes);
        }
        // Many fates at once, which costs less than each beside its packet.
        let decided = if S::ENDS { &fates[..packets.len()] } else { &[0][..] };
        let all = decided.iter().fold(u8::MAX, |all, fate| all & fate);
        let any = decided.iter().fold(0, |any, fate| any | fate);
        stages.after(members, 0, core);
        Some((all, any))
    }
}
