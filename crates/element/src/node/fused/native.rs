//! Stages with code that was compiled for the arguments of their element.
//!
//! The code of an element reads its arguments from memory. Where they are known when Castanet or a program
//! of `castanet build` is compiled, the compiler can do much of the work beforehand. The element says how:
//! `native` is the Rust expression for what it does, with its arguments as constants
//! ([`PerPacket::native`]). A stage has such code, and asks its element, again after each change by a
//! handler, whether the code is for its present arguments: a change comes by the node, which the stage has
//! to lend. A chain uses the code only if that is so for each of its stages; else it goes by the elements'
//! own.

use super::code::Code;
use super::stage::decide_each;
use super::{STOP, Stage};
use crate::cx::Cx;
use crate::element::{BurstEffect, PerBatch, PerPacket};
use crate::fate::{Fate, NOT_TAKEN};
use crate::node::{PerBatchNode, PerPacketNode, RoleNode, ThroughRole};
use crate::on::View;
use crate::time::Time;
use castanet_packet::{BurstSummary, Packet, PinnedIpv4};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

/// Code for certain arguments of a `PerPacket` element.
pub trait NativePacket<E: PerPacket>: Send + 'static {
    /// Whether the code is for the arguments of an element.
    fn fits(element: &E) -> bool;
    /// As [`PerPacket::packet`].
    fn packet(element: &E, local: &mut E::Local, packet: <E::On as View>::Of<'_>) -> E::Fate;
}

/// Code for certain arguments of a `PerBatch` element.
pub trait NativePass<E: PerBatch>: Send + 'static {
    /// Whether the code is for the arguments of an element.
    fn fits(element: &E) -> bool;
    /// As [`PerBatch::can_pass`].
    fn can_pass(element: &E, local: &mut E::Local, packet: <E::On as View>::Of<'_>) -> bool;
}

/// Defines a type with the code for certain arguments of a class, for a stage of [`fuse!`](crate::fuse):
/// `packet CLASS` for a `PerPacket` class, `batch CLASS` for a `PerBatch` one. `FITS` is of `element`, and
/// says which arguments these are; `CODE` is of `element`, `local` and `packet`.
///
/// ```text
/// native!(NAME: packet CLASS, |element| FITS, |element, local, packet| CODE);
/// ```
#[macro_export]
macro_rules! native {
    ($name:ident: packet $class:ty, $($code:tt)+) => {
        $crate::native!(@ $name, PerPacket, NativePacket, packet, $class,
            <$class as $crate::element::PerPacket>::Fate, $($code)+);
    };
    ($name:ident: batch $class:ty, $($code:tt)+) => {
        $crate::native!(@ $name, PerBatch, NativePass, can_pass, $class, bool, $($code)+);
    };
    (@ $name:ident, $role:ident, $kind:ident, $method:ident, $class:ty, $out:ty,
        |$it:ident| $fits:expr, |$element:ident, $local:ident, $packet:ident| $code:expr) => {
        #[doc = concat!("Code for certain arguments of `", stringify!($class), "`.")]
        pub struct $name;
        impl $crate::node::fused::$kind<$class> for $name {
            fn fits($it: &$class) -> bool {
                use $crate::element::$role as _;
                $fits
            }
            #[inline(always)]
            #[allow(unused_variables)]
            fn $method(
                $element: &$class,
                $local: &mut <$class as $crate::element::$role>::Local,
                $packet: <<$class as $crate::element::$role>::On as $crate::on::View>::Of<'_>,
            ) -> $out {
                type Element = $class;
                $code
            }
        }
    };
}

/// A stage with code for certain arguments.
pub struct NativeStage<S, N, E> {
    stage: S,
    answer: Answer<E>,
    code: PhantomData<N>,
}

/// Whether the code of a stage is that for the arguments of its element.
struct Answer<E> {
    is_native: bool,
    /// The arguments for which this holds.
    known: Option<Arc<E>>,
    /// Whether the node was lent since, so that the element may have other arguments.
    was_lent: bool,
}

impl<E> Answer<E> {
    /// The answer for the present arguments.
    #[inline(always)]
    fn of(&mut self, config: &Arc<E>, fits: fn(&E) -> bool) -> bool {
        if self.was_lent {
            self.renew(config, fits);
        }
        self.is_native
    }

    /// Asks the element if it has other arguments. Nodes are lent for packets, too, and the question may
    /// allocate.
    #[cold]
    #[inline(never)]
    fn renew(&mut self, config: &Arc<E>, fits: fn(&E) -> bool) {
        self.was_lent = false;
        if !self.known.as_ref().is_some_and(|known| Arc::ptr_eq(known, config)) {
            self.is_native = fits(config);
            self.known = Some(config.clone());
        }
    }
}

/// The parts of a stage that are the same for both kinds.
macro_rules! native_stage {
    ($node:ident) => {
        const CLASS: &'static str = E::SPEC.class;
        const OPEN: bool = <$node<E> as Stage>::OPEN;
        const KEEPS: bool = E::On::KEEPS;
        const NOT_TAKEN: u8 = <$node<E> as Stage>::NOT_TAKEN;
        type Borrowed<'a> = (<$node<E> as Stage>::Borrowed<'a>, bool);
        fn own(node: Option<RoleNode>) -> Option<Self> {
            let stage = <$node<E> as Stage>::own(node)?;
            let answer = Answer { is_native: false, known: None, was_lent: true };
            Some(NativeStage { stage, answer, code: PhantomData })
        }
        fn fits(node: &RoleNode) -> bool {
            let RoleNode::Through(node) = node else { return false };
            let node: &dyn Any = &**node;
            node.downcast_ref::<$node<E>>().is_some_and(|node| N::fits(&node.body.config))
        }
        fn node(&mut self) -> Option<&mut dyn ThroughRole> {
            self.answer.was_lent = true;
            self.stage.node()
        }
        fn peek(&self) -> Option<&dyn ThroughRole> {
            self.stage.peek()
        }
        #[inline(always)]
        fn borrow(&mut self) -> Option<Self::Borrowed<'_>> {
            let is_native = self.answer.of(&self.stage.body.config, N::fits);
            Some((self.stage.borrow()?, is_native))
        }
        #[inline(always)]
        fn before((stage, _): &mut Self::Borrowed<'_>, now: Time) {
            <$node<E> as Stage>::before(stage, now);
        }
        #[inline(always)]
        fn after((stage, _): &mut Self::Borrowed<'_>, cx: &mut Cx) {
            <$node<E> as Stage>::after(stage, cx);
        }
        const IS_LOOKUP: bool = <$node<E> as Stage>::IS_LOOKUP;
        #[inline(always)]
        fn is_native((_, is_native): &Self::Borrowed<'_>) -> bool {
            *is_native
        }
        const CAN_PASS_BURST: bool = E::CAN_PASS_BURST;
        #[inline(always)]
        fn may_be_native(&self) -> bool {
            self.answer.is_native || self.answer.was_lent
        }
        #[inline(always)]
        fn burst_effect((stage, _): &Self::Borrowed<'_>, burst: &BurstSummary) -> BurstEffect {
            <$node<E> as Stage>::burst_effect(stage, burst)
        }
    };
}

impl<E: PerPacket, N: NativePacket<E>> Stage for NativeStage<PerPacketNode<E>, N, E> {
    native_stage!(PerPacketNode);
    #[inline(always)]
    fn decide_all<C: Code>(
        ((config, local), is_native): &mut Self::Borrowed<'_>,
        packets: &mut [Packet],
        fates: &mut [u8],
    ) {
        let mut own = ((*config, &mut **local), *is_native);
        decide_each(packets, fates, move |packet| Self::decide::<C>(&mut own, packet));
    }
    #[inline(always)]
    fn decide<C: Code>((stage, _): &mut Self::Borrowed<'_>, packet: &mut Packet) -> u8 {
        if !C::NATIVE {
            return PerPacketNode::<E>::decide::<C>(stage, packet);
        }
        let (config, local) = stage;
        E::On::of(packet).map_or(NOT_TAKEN, |view| N::packet(config, local, view).index())
    }
    #[inline(always)]
    fn decide_kept<C: Code>((stage, _): &mut Self::Borrowed<'_>, ip: &mut PinnedIpv4<'_>) -> u8 {
        if !C::NATIVE {
            return PerPacketNode::<E>::decide_kept::<C>(stage, ip);
        }
        let (config, local) = stage;
        E::On::again(ip).map_or(NOT_TAKEN, |view| N::packet(config, local, view).index())
    }
}

impl<E: PerBatch, N: NativePass<E>> Stage for NativeStage<PerBatchNode<E>, N, E> {
    native_stage!(PerBatchNode);
    #[inline(always)]
    fn decide<C: Code>((stage, _): &mut Self::Borrowed<'_>, packet: &mut Packet) -> u8 {
        if !C::NATIVE {
            return PerBatchNode::<E>::decide::<C>(stage, packet);
        }
        let (config, local) = stage;
        let passes = E::On::of(packet).is_some_and(|view| N::can_pass(config, local, view));
        if passes { 0 } else { STOP }
    }
    #[inline(always)]
    fn decide_kept<C: Code>((stage, _): &mut Self::Borrowed<'_>, ip: &mut PinnedIpv4<'_>) -> u8 {
        if !C::NATIVE {
            return PerBatchNode::<E>::decide_kept::<C>(stage, ip);
        }
        let (config, local) = stage;
        let passes = E::On::again(ip).is_some_and(|view| N::can_pass(config, local, view));
        if passes { 0 } else { STOP }
    }
}

#[cfg(test)]
mod tests {
    use super::Answer;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// How often an element was asked.
    static QUESTIONS: AtomicU32 = AtomicU32::new(0);

    fn is_seven(number: &u8) -> bool {
        QUESTIONS.fetch_add(1, Ordering::Relaxed);
        *number == 7
    }

    #[test]
    fn an_element_is_asked_once_for_each_of_its_arguments() {
        let (seven, eight) = (Arc::new(7), Arc::new(8));
        let mut answer = Answer { is_native: false, known: None, was_lent: true };
        for (number, expected, questions) in
            [(&seven, true, 1), (&seven, true, 1), (&eight, false, 2), (&seven, true, 3)]
        {
            for _ in 0..3 {
                assert_eq!(answer.of(number, is_seven), expected);
            }
            assert_eq!(QUESTIONS.load(Ordering::Relaxed), questions);
            answer.was_lent = true;
        }
    }
}
