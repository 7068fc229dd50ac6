//! Stages one behind the other, and how a packet goes through them.

use super::{LEFT, Leaver, Member, NOWHERE, Need, STOP, Stage};
use crate::cx::Cx;
use crate::node::Node;
use crate::time::Time;
use crate::worker::core::Core;
use castanet_packet::{Packet, PinnedIpv4};
use std::cell::Cell;
use std::marker::PhantomData;

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
    /// Takes a packet that was seen to be IPv4 through those next stages that keep it that;
    /// 0, or [`LEFT`].
    fn keep(&mut self, ip: &mut PinnedIpv4<'_>, place: u8, until: u8, notes: &mut Notes) -> u8;
    /// Takes a packet on behind them.
    fn beyond(&mut self, packet: &mut Packet, place: u8, until: u8, notes: &mut Notes) -> u8;
}

/// What happens on the way that the fates do not say.
pub struct Notes<'a> {
    pub(super) leavers: &'a mut Vec<Leaver>,
    /// Where the burst's first packet lies.
    pub(super) start: usize,
    /// The stage that asked for a packet as part of a batch: all that come
    /// after that packet must stay behind it.
    pub(super) stopped: u8,
    /// Which stage panicked.
    pub(super) panicked: &'a Cell<u8>,
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
    pub(super) fn has_stopped(&self) -> bool {
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

/// The same about what is known to be IPv4.
#[inline(always)]
fn decide_kept<S: Stage>(
    stage: &mut S::Lent<'_>,
    ip: &mut PinnedIpv4<'_>,
    place: u8,
    notes: &Notes,
) -> u8 {
    let watch = AtWork { place, notes };
    let fate = S::decide_kept(stage, ip);
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
        if !S::KEEPS {
            return self.visit_one(packet, place, until, notes);
        }
        // Where several stages in a row see IPv4, one look is enough for all.
        let Some(mut ip) = packet.marked_ipv4() else {
            return self.visit_unseen(packet, place, until, notes);
        };
        match self.keep(&mut ip, place, until, notes) {
            LEFT => LEFT,
            _ => self.beyond(packet, place, until, notes),
        }
    }

    #[inline(always)]
    fn keep(&mut self, ip: &mut PinnedIpv4<'_>, place: u8, until: u8, notes: &mut Notes) -> u8 {
        if !S::KEEPS {
            return 0;
        }
        if place == until {
            return notes.leave(ip.packet(), place, STOP);
        }
        let fate = decide_kept::<S>(&mut self.stage, ip, place, notes);
        if fate != self.on() {
            return notes.leave(ip.packet(), place, fate);
        }
        self.rest.keep(ip, place + 1, until, notes)
    }

    #[inline(always)]
    fn beyond(&mut self, packet: &mut Packet, place: u8, until: u8, notes: &mut Notes) -> u8 {
        match S::KEEPS {
            true => self.rest.beyond(packet, place + 1, until, notes),
            false => self.visit(packet, place, until, notes),
        }
    }
}

impl<S: Stage, T: Visit> Link<'_, S, T> {
    /// The fate that leads on.
    #[inline(always)]
    fn on(&self) -> u8 {
        if S::OPEN { self.via } else { 0 }
    }

    /// Takes a packet through this stage, and on.
    #[inline(always)]
    fn visit_one(&mut self, packet: &mut Packet, place: u8, until: u8, notes: &mut Notes) -> u8 {
        if place == until {
            return notes.leave(packet, place, STOP);
        }
        let fate = decide::<S>(&mut self.stage, packet, place, notes);
        if fate != self.on() {
            return notes.leave(packet, place, fate);
        }
        self.rest.visit(packet, place + 1, until, notes)
    }

    /// The same, for what nobody has seen to be IPv4 yet.
    #[cold]
    #[inline(never)]
    fn visit_unseen(&mut self, packet: &mut Packet, place: u8, until: u8, notes: &mut Notes) -> u8 {
        self.visit_one(packet, place, until, notes)
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
    #[inline(always)]
    fn keep(&mut self, _: &mut PinnedIpv4<'_>, _: u8, _: u8, _: &mut Notes) -> u8 {
        0
    }
    #[inline(always)]
    fn beyond(&mut self, _: &mut Packet, _: u8, _: u8, _: &mut Notes) -> u8 {
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
    // The last stage looks for itself.
    #[inline(always)]
    fn keep(&mut self, _: &mut PinnedIpv4<'_>, _: u8, _: u8, _: &mut Notes) -> u8 {
        0
    }
    #[inline(always)]
    fn beyond(&mut self, packet: &mut Packet, place: u8, until: u8, notes: &mut Notes) -> u8 {
        self.visit(packet, place, until, notes)
    }
}
