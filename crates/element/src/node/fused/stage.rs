//! One element as a stage of a chain.

use super::STOP;
use super::code::Code;
use crate::cx::Cx;
use crate::element::{BurstEffect, PerBatch, PerPacket};
use crate::fate::{Fate, NOT_TAKEN};
use crate::node::{Instance, LocalState, PerBatchNode, PerPacketNode, RoleNode, ThroughRole};
use crate::on::View;
use crate::time::Time;
use castanet_packet::{BurstSummary, Packet, PinnedIpv4, WordTest};
use std::any::Any;

/// One element as a stage of a chain.
pub trait Stage: Send + Sized + 'static {
    /// Class name.
    const CLASS: &'static str;
    /// Whether outputs beside the first may lead to the next stage.
    const OPEN: bool;
    /// Whether it may be absent.
    const OPTIONAL: bool = false;
    /// Whether packets that it sees are IPv4, and stay so.
    const KEEPS: bool;
    /// Its fate for packets without the view that it needs.
    const NOT_TAKEN: u8;
    /// Configuration and state, for one burst.
    type Borrowed<'a>;
    /// Takes the element's node over; `None` if it is of another class.
    fn own(node: Option<RoleNode>) -> Option<Self>;
    /// Whether an element, of the class of the stage, has the arguments for which code was compiled, if any
    /// was.
    fn fits(_node: &RoleNode) -> bool {
        true
    }
    /// The element's node, if there is one.
    fn node(&mut self) -> Option<&mut dyn ThroughRole>;
    /// The element's node, to look at.
    fn peek(&self) -> Option<&dyn ThroughRole>;
    /// Borrows configuration and state; `None` if workers share the state.
    fn borrow(&mut self) -> Option<Self::Borrowed<'_>>;
    /// Whether there is no element.
    fn is_absent(_borrowed: &Self::Borrowed<'_>) -> bool {
        false
    }
    /// Before the burst.
    fn before(borrowed: &mut Self::Borrowed<'_>, now: Time);
    /// After the burst.
    fn after(borrowed: &mut Self::Borrowed<'_>, cx: &mut Cx);
    /// Whether the element has the arguments for which code was compiled, if any was.
    fn is_native(_borrowed: &Self::Borrowed<'_>) -> bool {
        true
    }
    /// As [`PerPacket::IS_LOOKUP`].
    const IS_LOOKUP: bool = false;
    /// As [`PerPacket::HAS_SUFFICIENT_TESTS`]. A stage that may be absent has none: packets would pay for the question where it is.
    const HAS_SUFFICIENT_TESTS: bool = false;
    /// As [`PerPacket::sufficient_test`].
    fn sufficient_test(_borrowed: &Self::Borrowed<'_>, _output: u8) -> WordTest {
        WordTest::NONE
    }
    /// As [`PerPacket::CAN_PASS_BURST`].
    const CAN_PASS_BURST: bool = false;
    /// Whether there is an element that can pass bursts.
    fn can_pass_burst(&self) -> bool {
        Self::CAN_PASS_BURST
    }
    /// Whether the element may have the arguments for which code was compiled; `false` if it is known not to.
    fn may_be_native(&self) -> bool {
        true
    }
    /// As [`PerPacket::burst_effect`].
    fn burst_effect(_borrowed: &Self::Borrowed<'_>, _burst: &BurstSummary) -> BurstEffect {
        BurstEffect::Unknown
    }
    /// Decides about a packet: an output, a reason to drop, or `STOP`. `C` says whether the code for
    /// the element's arguments does it.
    fn decide<C: Code>(borrowed: &mut Self::Borrowed<'_>, packet: &mut Packet) -> u8;
    /// The same about each of these packets; `fates` gets what is decided.
    #[inline(always)]
    fn decide_all<C: Code>(
        borrowed: &mut Self::Borrowed<'_>,
        packets: &mut [Packet],
        fates: &mut [u8],
    ) {
        for (packet, fate) in packets.iter_mut().zip(fates) {
            *fate = Self::decide::<C>(borrowed, packet);
        }
    }
    /// The same as [`Stage::decide`] about a packet that is known to be IPv4, if the view keeps that.
    fn decide_kept<C: Code>(borrowed: &mut Self::Borrowed<'_>, ip: &mut PinnedIpv4<'_>) -> u8;
}

impl<E, L> Instance<E, L> {
    #[inline(always)]
    pub(super) fn own(&mut self) -> Option<(&E, &mut L)> {
        match &mut self.local {
            LocalState::Own(local) | LocalState::Home(local) => Some((&self.config, local)),
            LocalState::Shared(_) => None,
        }
    }
}

/// The parts of a stage that are the same for all elements.
macro_rules! stage_of_node {
    () => {
        const CLASS: &'static str = E::SPEC.class;
        const KEEPS: bool = E::On::KEEPS;
        type Borrowed<'a> = (&'a E, &'a mut E::Local);
        fn own(node: Option<RoleNode>) -> Option<Self> {
            let Some(RoleNode::Through(node)) = node else { return None };
            let node: Box<dyn Any> = node;
            node.downcast::<Self>().ok().map(|node| *node)
        }
        fn node(&mut self) -> Option<&mut dyn ThroughRole> {
            Some(self)
        }
        fn peek(&self) -> Option<&dyn ThroughRole> {
            Some(self)
        }
        #[inline(always)]
        fn borrow(&mut self) -> Option<Self::Borrowed<'_>> {
            self.body.own()
        }
        const CAN_PASS_BURST: bool = E::CAN_PASS_BURST;
        #[inline(always)]
        fn burst_effect((config, _): &Self::Borrowed<'_>, burst: &BurstSummary) -> BurstEffect {
            config.burst_effect(burst)
        }
    };
}

/// Decides about packets one by one.
// A function of its own: nothing else points to `fates`, an argument, so that the compiler need not read
// the fields of the element's table again behind each fate, and registers are enough for them.
#[inline(never)]
pub(super) fn decide_each(
    packets: &mut [Packet],
    fates: &mut [u8],
    mut decide: impl FnMut(&mut Packet) -> u8,
) {
    for (packet, fate) in packets.iter_mut().zip(fates) {
        *fate = decide(packet);
    }
}

impl<E: PerPacket> Stage for PerPacketNode<E> {
    const OPEN: bool = E::Fate::OPEN;
    const NOT_TAKEN: u8 = NOT_TAKEN;
    stage_of_node!();
    const HAS_SUFFICIENT_TESTS: bool = E::HAS_SUFFICIENT_TESTS;
    #[inline(always)]
    fn sufficient_test((config, _): &Self::Borrowed<'_>, output: u8) -> WordTest {
        config.sufficient_test(output)
    }
    #[inline(always)]
    fn decide_all<C: Code>(
        (config, local): &mut Self::Borrowed<'_>,
        packets: &mut [Packet],
        fates: &mut [u8],
    ) {
        // A copy: what a function that is not inlined gets by reference has to lie in memory.
        let mut own = (*config, &mut **local);
        decide_each(packets, fates, move |packet| Self::decide::<C>(&mut own, packet));
    }
    #[inline(always)]
    fn before((config, local): &mut Self::Borrowed<'_>, now: Time) {
        config.begin_burst(local, now);
    }
    #[inline(always)]
    fn after((config, local): &mut Self::Borrowed<'_>, cx: &mut Cx) {
        config.end_burst(local, cx);
    }
    const IS_LOOKUP: bool = E::IS_LOOKUP;
    #[inline(always)]
    fn decide<C: Code>((config, local): &mut Self::Borrowed<'_>, packet: &mut Packet) -> u8 {
        match E::On::of(packet) {
            Some(view) => config.packet(local, view).index(),
            None => NOT_TAKEN,
        }
    }
    #[inline(always)]
    fn decide_kept<C: Code>(
        (config, local): &mut Self::Borrowed<'_>,
        ip: &mut PinnedIpv4<'_>,
    ) -> u8 {
        match E::On::again(ip) {
            Some(view) => config.packet(local, view).index(),
            None => NOT_TAKEN,
        }
    }
}

impl<E: PerBatch> Stage for PerBatchNode<E> {
    const OPEN: bool = false;
    const NOT_TAKEN: u8 = STOP;
    stage_of_node!();
    #[inline(always)]
    fn before(_: &mut Self::Borrowed<'_>, _: Time) {}
    #[inline(always)]
    fn after(_: &mut Self::Borrowed<'_>, _: &mut Cx) {}
    #[inline(always)]
    fn decide<C: Code>((config, local): &mut Self::Borrowed<'_>, packet: &mut Packet) -> u8 {
        let Some(view) = E::On::of(packet) else { return Self::NOT_TAKEN };
        if config.can_pass(local, view) { 0 } else { STOP }
    }
    #[inline(always)]
    fn decide_kept<C: Code>(
        (config, local): &mut Self::Borrowed<'_>,
        ip: &mut PinnedIpv4<'_>,
    ) -> u8 {
        let Some(view) = E::On::again(ip) else { return Self::NOT_TAKEN };
        if config.can_pass(local, view) { 0 } else { STOP }
    }
}

/// A stage that may be absent.
pub struct OptionalStage<S>(Option<S>);

impl<S: Stage> Stage for OptionalStage<S> {
    const CLASS: &'static str = S::CLASS;
    const OPEN: bool = S::OPEN;
    const OPTIONAL: bool = true;
    const KEEPS: bool = S::KEEPS;
    const NOT_TAKEN: u8 = S::NOT_TAKEN;
    type Borrowed<'a> = Option<S::Borrowed<'a>>;
    #[inline(always)]
    fn is_absent(borrowed: &Self::Borrowed<'_>) -> bool {
        borrowed.is_none()
    }
    fn own(node: Option<RoleNode>) -> Option<Self> {
        match node {
            None => Some(OptionalStage(None)),
            node => S::own(node).map(|stage| OptionalStage(Some(stage))),
        }
    }
    fn fits(node: &RoleNode) -> bool {
        S::fits(node)
    }
    fn node(&mut self) -> Option<&mut dyn ThroughRole> {
        self.0.as_mut()?.node()
    }
    fn peek(&self) -> Option<&dyn ThroughRole> {
        self.0.as_ref()?.peek()
    }
    #[inline(always)]
    fn borrow(&mut self) -> Option<Self::Borrowed<'_>> {
        match &mut self.0 {
            None => Some(None),
            Some(stage) => stage.borrow().map(Some),
        }
    }
    #[inline(always)]
    fn before(borrowed: &mut Self::Borrowed<'_>, now: Time) {
        if let Some(borrowed) = borrowed {
            S::before(borrowed, now);
        }
    }
    #[inline(always)]
    fn after(borrowed: &mut Self::Borrowed<'_>, cx: &mut Cx) {
        if let Some(borrowed) = borrowed {
            S::after(borrowed, cx);
        }
    }
    #[inline(always)]
    fn is_native(borrowed: &Self::Borrowed<'_>) -> bool {
        borrowed.as_ref().is_none_or(S::is_native)
    }
    const CAN_PASS_BURST: bool = S::CAN_PASS_BURST;
    #[inline(always)]
    fn can_pass_burst(&self) -> bool {
        S::CAN_PASS_BURST && self.0.is_some()
    }
    #[inline(always)]
    fn may_be_native(&self) -> bool {
        self.0.as_ref().is_none_or(S::may_be_native)
    }
    #[inline(always)]
    fn burst_effect(borrowed: &Self::Borrowed<'_>, burst: &BurstSummary) -> BurstEffect {
        borrowed.as_ref().map_or(BurstEffect::Passes, |it| S::burst_effect(it, burst))
    }
    #[inline(always)]
    fn decide<C: Code>(borrowed: &mut Self::Borrowed<'_>, packet: &mut Packet) -> u8 {
        match borrowed {
            Some(borrowed) => S::decide::<C>(borrowed, packet),
            None => 0,
        }
    }
    #[inline(always)]
    fn decide_kept<C: Code>(borrowed: &mut Self::Borrowed<'_>, ip: &mut PinnedIpv4<'_>) -> u8 {
        match borrowed {
            Some(borrowed) => S::decide_kept::<C>(borrowed, ip),
            None => 0,
        }
    }
}
