//! One element's part in a pass.

use super::STOP;
use crate::cx::Cx;
use crate::element::{Fate, NOT_TAKEN, PerBatch, PerPacket};
use crate::node::{Body, Node, PerBatchNode, PerPacketNode, State};
use crate::on::View;
use crate::time::Time;
use castanet_packet::{Packet, PinnedIpv4};
use std::any::Any;

/// One element's part in a pass.
pub trait Stage: Send + Sized + 'static {
    /// Class name.
    const CLASS: &'static str;
    /// Whether outputs beside the first may lead to the next stage.
    const OPEN: bool;
    /// Whether it need not be there.
    const OPTIONAL: bool = false;
    /// Whether packets that it sees are IPv4, and stay that.
    const KEEPS: bool;
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
    /// The same about one that is known to be IPv4, if it `KEEPS` that.
    fn decide_kept(lent: &mut Self::Lent<'_>, ip: &mut PinnedIpv4<'_>) -> u8;
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
        const KEEPS: bool = E::On::KEEPS;
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
    #[inline(always)]
    fn decide_kept((config, local): &mut Self::Lent<'_>, ip: &mut PinnedIpv4<'_>) -> u8 {
        match E::On::again(ip) {
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
    #[inline(always)]
    fn decide_kept((config, local): &mut Self::Lent<'_>, ip: &mut PinnedIpv4<'_>) -> u8 {
        let Some(view) = E::On::again(ip) else { return STOP };
        if config.passes(local, view) { 0 } else { STOP }
    }
}

/// A stage that a row of elements can do without.
pub struct Maybe<S>(Option<S>);

impl<S: Stage> Stage for Maybe<S> {
    const CLASS: &'static str = S::CLASS;
    const OPEN: bool = S::OPEN;
    const OPTIONAL: bool = true;
    const KEEPS: bool = S::KEEPS;
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
    #[inline(always)]
    fn decide_kept(lent: &mut Self::Lent<'_>, ip: &mut PinnedIpv4<'_>) -> u8 {
        match lent {
            Some(lent) => S::decide_kept(lent, ip),
            None => 0,
        }
    }
}
