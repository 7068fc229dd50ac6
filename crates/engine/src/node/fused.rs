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

use super::{Body, Node, PerBatchNode, PerPacketNode, State};
use crate::cx::Cx;
use crate::element::{Fate, NOT_TAKEN, PerBatch, PerPacket};
use crate::on::View;
use crate::time::Time;
use crate::worker::core::Core;
use castanet_packet::{Batch, Packet};
use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;

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

/// One element's part in a pass.
pub trait Stage: Send + Sized + 'static {
    /// Class name.
    const CLASS: &'static str;
    /// Whether outputs beside the first may lead to the next stage.
    const OPEN: bool;
    /// Whether it need not be there.
    const OPTIONAL: bool = false;
    /// Configuration and state, for one burst.
    type Lent<'a>;
    /// Takes the element's node over; `None` if it is none of this stage's.
    fn own(node: Option<Box<dyn Node>>) -> Option<Self>;
    /// The element's node, if it is there.
    fn node(&mut self) -> Option<&mut dyn Node>;
    /// The element's node, to look at.
    fn peek(&self) -> Option<&dyn Node>;
    /// Lends configuration and state, unless other workers share it.
    fn lend(&mut self) -> Option<Self::Lent<'_>>;
    /// Before the burst.
    fn before(lent: &mut Self::Lent<'_>, now: Time);
    /// After the burst.
    fn after(lent: &mut Self::Lent<'_>, cx: &mut Cx);
    /// Decides about a packet: an output, a reason to drop, or `STOP`.
    fn decide(lent: &mut Self::Lent<'_>, packet: &mut Packet) -> u8;
}

impl<E, L> Body<E, L> {
    fn own(&mut self) -> Option<(&E, &mut L)> {
        match &mut self.local {
            State::Own(local) => Some((&self.config, local)),
            State::Shared(_) => None,
        }
    }
}

/// What is the same for every element as a stage.
macro_rules! stage_of_node {
    () => {
        const CLASS: &'static str = E::SPEC.class;
        type Lent<'a> = (&'a E, &'a mut E::Local);
        fn own(node: Option<Box<dyn Node>>) -> Option<Self> {
            let node: Box<dyn Any> = node?;
            node.downcast::<Self>().ok().map(|node| *node)
        }
        fn node(&mut self) -> Option<&mut dyn Node> {
            Some(self)
        }
        fn peek(&self) -> Option<&dyn Node> {
            Some(self)
        }
        fn lend(&mut self) -> Option<Self::Lent<'_>> {
            self.body.own()
        }
    };
}

impl<E: PerPacket> Stage for PerPacketNode<E> {
    const OPEN: bool = E::Fate::OPEN;
    stage_of_node!();
    #[inline(always)]
    fn before((config, local): &mut Self::Lent<'_>, now: Time) {
        config.burst(local, now);
    }
    #[inline(always)]
    fn after((config, local): &mut Self::Lent<'_>, cx: &mut Cx) {
        config.after(local, cx);
    }
    #[inline(always)]
    fn decide((config, local): &mut Self::Lent<'_>, packet: &mut Packet) -> u8 {
        match E::On::of(packet) {
            Some(view) => config.packet(local, view).index(),
            None => NOT_TAKEN,
        }
    }
}

impl<E: PerBatch> Stage for PerBatchNode<E> {
    const OPEN: bool = false;
    stage_of_node!();
    fn before(_: &mut Self::Lent<'_>, _: Time) {}
    fn after(_: &mut Self::Lent<'_>, _: &mut Cx) {}
    #[inline(always)]
    fn decide((config, local): &mut Self::Lent<'_>, packet: &mut Packet) -> u8 {
        let Some(view) = E::On::of(packet) else { return STOP };
        if config.passes(local, view) { 0 } else { STOP }
    }
}

/// A stage that a row of elements can do without.
pub struct Maybe<S>(Option<S>);

impl<S: Stage> Stage for Maybe<S> {
    const CLASS: &'static str = S::CLASS;
    const OPEN: bool = S::OPEN;
    const OPTIONAL: bool = true;
    type Lent<'a> = Option<S::Lent<'a>>;
    fn own(node: Option<Box<dyn Node>>) -> Option<Self> {
        match node {
            None => Some(Maybe(None)),
            node => S::own(node).map(|stage| Maybe(Some(stage))),
        }
    }
    fn node(&mut self) -> Option<&mut dyn Node> {
        self.0.as_mut()?.node()
    }
    fn peek(&self) -> Option<&dyn Node> {
        self.0.as_ref()?.peek()
    }
    fn lend(&mut self) -> Option<Self::Lent<'_>> {
        match &mut self.0 {
            None => Some(None),
            Some(stage) => stage.lend().map(Some),
        }
    }
    #[inline(always)]
    fn before(lent: &mut Self::Lent<'_>, now: Time) {
        if let Some(lent) = lent {
            S::before(lent, now);
        }
    }
    #[inline(always)]
    fn after(lent: &mut Self::Lent<'_>, cx: &mut Cx) {
        if let Some(lent) = lent {
            S::after(lent, cx);
        }
    }
    #[inline(always)]
    fn decide(lent: &mut Self::Lent<'_>, packet: &mut Packet) -> u8 {
        match lent {
            Some(lent) => S::decide(lent, packet),
            None => 0,
        }
    }
}

/// The stages of a pass: a nested pair of [`Stage`]s that ends in `()` or [`End`].
pub trait Stages: Send + Sized + 'static {
    /// Whether the last stage's fates are the pass's.
    const ENDS: bool;
    /// The stages' configurations and states, for one burst.
    type Lent<'a>: Visit;
    /// Adds what is needed.
    fn list(into: &mut Vec<Need>);
    /// Takes the nodes over, the first stage's first.
    fn own(nodes: &mut [Option<Box<dyn Node>>]) -> Option<Self>;
    /// The node of a stage.
    fn node(&mut self, place: u8) -> Option<&mut dyn Node>;
    /// The node of a stage, to look at.
    fn peek(&self, place: u8) -> Option<&dyn Node>;
    /// Borrows what the stages need; `None` if any cannot lend it.
    fn lend(&mut self, vias: &[u8]) -> Option<Self::Lent<'_>>;
}

/// Stages that packets can go through.
pub trait Visit {
    /// Before the burst.
    fn before(&mut self, now: Time);
    /// After the burst.
    fn after(&mut self, members: &[Member], place: u8, core: &mut Core);
    /// Takes a packet through, up to stage `until`; its fate, or [`LEFT`] if it
    /// left on the way.
    fn visit(&mut self, packet: &mut Packet, place: u8, until: u8, notes: &mut Notes) -> u8;
}

/// What happens on the way that the fates do not say.
pub struct Notes<'a> {
    leavers: &'a mut Vec<Leaver>,
    /// Where the burst's first packet lies.
    start: usize,
    /// The stage that asked for a packet as part of a batch: all that come
    /// after that packet must stay behind it.
    stopped: u8,
    /// Which stage panicked.
    panicked: &'a Cell<u8>,
}

impl Notes<'_> {
    /// Notes a packet that does not go on from stage `place`.
    #[inline(always)]
    fn leave(&mut self, packet: &Packet, place: u8, fate: u8) -> u8 {
        self.note(packet, place, fate);
        LEFT
    }

    /// Whether a stage wants all that come after the last packet noted.
    // Never inlined: the compiler would merge this test with the one before,
    // and make it for packets that go on, too.
    #[cold]
    #[inline(never)]
    fn has_stopped(&self) -> bool {
        self.stopped != NOWHERE
    }

    /// Writes down where a packet leaves stage `place`, and whether those after
    /// it may go on.
    #[cold]
    #[inline(never)]
    fn note(&mut self, packet: &Packet, place: u8, fate: u8) {
        let index = (std::ptr::from_ref(packet).addr() - self.start) / size_of::<Packet>();
        if fate == STOP {
            self.stopped = place;
        }
        let fate = (fate != STOP).then_some(fate);
        self.leavers.push(Leaver { index: index as u16, place, fate });
    }
}

/// Says which stage was at work if it panics.
struct AtWork<'a> {
    place: u8,
    notes: &'a Notes<'a>,
}

impl Drop for AtWork<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.notes.panicked.set(self.place);
    }
}

/// Lets a stage decide, watched.
#[inline(always)]
fn decide<S: Stage>(stage: &mut S::Lent<'_>, packet: &mut Packet, place: u8, notes: &Notes) -> u8 {
    let watch = AtWork { place, notes };
    let fate = S::decide(stage, packet);
    std::mem::forget(watch);
    fate
}

/// A stage, and those after it.
pub struct Link<'a, S: Stage, T> {
    stage: S::Lent<'a>,
    via: u8,
    rest: T,
}

impl<S: Stage, T: Stages> Stages for (S, T) {
    const ENDS: bool = T::ENDS;
    type Lent<'a> = Link<'a, S, T::Lent<'a>>;

    fn list(into: &mut Vec<Need>) {
        into.push(Need { class: S::CLASS, open: S::OPEN, optional: S::OPTIONAL });
        T::list(into);
    }
    fn own(nodes: &mut [Option<Box<dyn Node>>]) -> Option<Self> {
        let (first, nodes) = nodes.split_first_mut()?;
        Some((S::own(first.take())?, T::own(nodes)?))
    }
    fn node(&mut self, place: u8) -> Option<&mut dyn Node> {
        if place == 0 { self.0.node() } else { self.1.node(place - 1) }
    }
    fn peek(&self, place: u8) -> Option<&dyn Node> {
        if place == 0 { self.0.peek() } else { self.1.peek(place - 1) }
    }
    #[inline(always)]
    fn lend(&mut self, vias: &[u8]) -> Option<Self::Lent<'_>> {
        let (&via, vias) = vias.split_first()?;
        Some(Link { stage: self.0.lend()?, via, rest: self.1.lend(vias)? })
    }
}

impl<S: Stage, T: Visit> Visit for Link<'_, S, T> {
    #[inline(always)]
    fn before(&mut self, now: Time) {
        S::before(&mut self.stage, now);
        self.rest.before(now);
    }

    #[inline(always)]
    fn after(&mut self, members: &[Member], place: u8, core: &mut Core) {
        let mut members = members;
        if let Some((member, rest)) = members.split_first().filter(|(m, _)| m.place == place) {
            S::after(&mut self.stage, &mut Cx { core, me: member.node, nodes: None });
            members = rest;
        }
        self.rest.after(members, place + 1, core);
    }

    #[inline(always)]
    fn visit(&mut self, packet: &mut Packet, place: u8, until: u8, notes: &mut Notes) -> u8 {
        if place == until {
            return notes.leave(packet, place, STOP);
        }
        let fate = decide::<S>(&mut self.stage, packet, place, notes);
        if fate != if S::OPEN { self.via } else { 0 } {
            return notes.leave(packet, place, fate);
        }
        self.rest.visit(packet, place + 1, until, notes)
    }
}

impl Stages for () {
    const ENDS: bool = false;
    type Lent<'a> = ();
    fn list(_: &mut Vec<Need>) {}
    fn own(_: &mut [Option<Box<dyn Node>>]) -> Option<()> {
        Some(())
    }
    fn node(&mut self, _: u8) -> Option<&mut dyn Node> {
        None
    }
    fn peek(&self, _: u8) -> Option<&dyn Node> {
        None
    }
    fn lend(&mut self, _: &[u8]) -> Option<()> {
        Some(())
    }
}

impl Visit for () {
    fn before(&mut self, _: Time) {}
    fn after(&mut self, _: &[Member], _: u8, _: &mut Core) {}
    #[inline(always)]
    fn visit(&mut self, _: &mut Packet, _: u8, _: u8, _: &mut Notes) -> u8 {
        0
    }
}

/// A last stage that may send packets to several outputs.
pub struct End<S>(S);

/// A last stage, for one burst.
pub struct Last<'a, S: Stage>(S::Lent<'a>, PhantomData<S>);

impl<S: Stage> Stages for End<S> {
    const ENDS: bool = true;
    type Lent<'a> = Last<'a, S>;
    fn list(into: &mut Vec<Need>) {
        into.push(Need { class: S::CLASS, open: S::OPEN, optional: S::OPTIONAL });
    }
    fn own(nodes: &mut [Option<Box<dyn Node>>]) -> Option<Self> {
        S::own(nodes.first_mut()?.take()).map(End)
    }
    fn node(&mut self, place: u8) -> Option<&mut dyn Node> {
        if place == 0 { self.0.node() } else { None }
    }
    fn peek(&self, place: u8) -> Option<&dyn Node> {
        if place == 0 { self.0.peek() } else { None }
    }
    #[inline(always)]
    fn lend(&mut self, _: &[u8]) -> Option<Self::Lent<'_>> {
        Some(Last(self.0.lend()?, PhantomData))
    }
}

impl<S: Stage> Visit for Last<'_, S> {
    #[inline(always)]
    fn before(&mut self, now: Time) {
        S::before(&mut self.0, now);
    }
    #[inline(always)]
    fn after(&mut self, members: &[Member], place: u8, core: &mut Core) {
        if let Some(member) = members.first().filter(|m| m.place == place) {
            S::after(&mut self.0, &mut Cx { core, me: member.node, nodes: None });
        }
    }
    #[inline(always)]
    fn visit(&mut self, packet: &mut Packet, place: u8, until: u8, notes: &mut Notes) -> u8 {
        if place == until {
            return notes.leave(packet, place, STOP);
        }
        decide::<S>(&mut self.0, packet, place, notes)
    }
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
        for (packet, slot) in packets.iter_mut().zip(&mut *fates) {
            let fate = stages.visit(packet, 0, NOWHERE, &mut notes);
            if S::ENDS {
                *slot = fate;
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
