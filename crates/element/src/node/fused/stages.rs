//! The stages of a chain, and the path of a packet through them.

use super::code::Code;
use super::log::{ExitLog, PanicGuard};
use super::{ChainPart, ChainSpec, EXITED, STOP, Stage, StagePlace, StageSpec};
use crate::cx::Cx;
use crate::element::BurstEffect;
use crate::exec::ExecState;
use crate::node::{RoleNode, ThroughRole};
use crate::time::Time;
use castanet_packet::{BurstSummary, Packet, PinnedIpv4, WordTest};
use std::marker::PhantomData;

/// The stages of a chain: a nested pair of [`Stage`]s that ends in `()`, [`FinalStage`] or
/// [`ForkStage`](super::ForkStage).
pub trait Stages: Send + Sized + 'static {
    /// Whether the fates of the last stage are those of the chain.
    const ENDS: bool;
    /// The stages' configurations and states, for one burst.
    type Borrowed<'a>: StageRun;
    /// Adds the requirements of each stage.
    fn list(into: &mut ChainSpec);
    /// Whether the elements of these nodes have the arguments for which code was compiled.
    fn fits(nodes: &[Option<RoleNode>], branches: &[ChainPart]) -> bool;
    /// Takes the nodes over, the first stage's first.
    fn own(nodes: &mut [Option<RoleNode>], branches: &mut [ChainPart]) -> Option<Self>;
    /// The node at a place, counted from these stages on.
    fn node(&mut self, place: StagePlace) -> Option<&mut dyn ThroughRole>;
    /// The node at a place, to look at.
    fn peek(&self, place: StagePlace) -> Option<&dyn ThroughRole>;
    /// Number of elements that can pass a burst; `None` if one has arguments for which no code was compiled.
    #[inline(always)]
    fn passers(&self) -> Option<usize> {
        None
    }
    /// Borrows configurations and states for a burst; `None` if workers share one of the states.
    fn borrow(&mut self, next_ports: &[u8]) -> Option<Self::Borrowed<'_>>;
    /// Runs packets that have come to a fork on through their branches; `fates` has those of the fork, and
    /// gets [`EXITED`] for packets that leave. `of_all` is the fate of all packets, if it is the same.
    #[inline(always)]
    fn run_branches(
        &mut self,
        _packets: &mut [Packet],
        _fates: &mut [u8],
        _of_all: Option<u8>,
        _log: &mut ExitLog,
        _exec: &mut ExecState,
    ) {
    }
}

/// Stages that packets can go through.
pub trait StageRun {
    /// The most stages that can pass a burst ([`Stage::CAN_PASS_BURST`]).
    const PASSERS: usize = 0;
    /// Whether all of these pass a burst of which this is true.
    #[inline(always)]
    fn passes_burst(&self, _burst: &BurstSummary) -> bool {
        true
    }
    /// Whether the last stage is a lookup: `run` ends before it, and `look_up` is to follow.
    const LOOKS_UP: bool = false;
    /// Whether the elements have the arguments for which code was compiled.
    fn is_native(&self) -> bool;
    /// Before the burst.
    fn before(&mut self, now: Time);
    /// After the burst; `elements` are those from these stages on.
    fn after(&mut self, elements: &[usize], exec: &mut ExecState);
    /// Runs a packet; returns its fate, or [`EXITED`] if it left before the end.
    fn run<C: Code>(&mut self, packet: &mut Packet, place: StagePlace, log: &mut ExitLog) -> u8;
    /// Has the last stage decide about packets that have come to it, if it is a lookup; `fates` gets their
    /// fates.
    #[inline(always)]
    fn look_up<C: Code>(
        &mut self,
        _packets: &mut [Packet],
        _fates: &mut [u8],
        _place: StagePlace,
        _log: &ExitLog,
    ) {
    }
    /// Runs a packet that is known to be IPv4 through the next stages that keep it so; returns 0, or
    /// [`EXITED`]. A last stage is none of them: it checks for itself.
    #[inline(always)]
    fn run_ipv4<C: Code>(
        &mut self,
        _ip: &mut PinnedIpv4<'_>,
        _place: StagePlace,
        _log: &mut ExitLog,
    ) -> u8 {
        0
    }
    /// Runs a packet through the stages behind those.
    #[inline(always)]
    fn run_rest<C: Code>(
        &mut self,
        packet: &mut Packet,
        place: StagePlace,
        log: &mut ExitLog,
    ) -> u8 {
        self.run::<C>(packet, place, log)
    }
}

/// The fewest stages that can pass a burst for which a summary of the burst is made: it takes as many instructions a packet
/// as two of them.
const LEAST_PASSERS: usize = 3;

/// The fewest packets for which a summary is made.
const LEAST_PACKETS: usize = 8;

/// Whether a summary of a burst of so many packets is of use to these stages.
#[inline(always)]
pub(super) fn wants_summary<S: Stages>(stages: &S, packets: usize) -> bool {
    <S::Borrowed<'_> as StageRun>::PASSERS >= LEAST_PASSERS
        && packets >= LEAST_PACKETS
        && stages.passers().is_some_and(|passers| passers >= LEAST_PASSERS)
}

/// Has a stage decide, under a guard.
#[inline(always)]
fn decide<S: Stage, C: Code>(
    element: &mut S::Borrowed<'_>,
    packet: &mut Packet,
    place: StagePlace,
    log: &ExitLog,
) -> u8 {
    let guard = PanicGuard::new(place, log);
    let fate = S::decide::<C>(element, packet);
    std::mem::forget(guard);
    fate
}

/// The same about a packet that is known to be IPv4.
#[inline(always)]
fn decide_kept<S: Stage, C: Code>(
    element: &mut S::Borrowed<'_>,
    ip: &mut PinnedIpv4<'_>,
    place: StagePlace,
    log: &ExitLog,
) -> u8 {
    let guard = PanicGuard::new(place, log);
    let fate = S::decide_kept::<C>(element, ip);
    std::mem::forget(guard);
    fate
}

/// A place, counted from the second stage on.
fn behind(place: StagePlace) -> StagePlace {
    match place.branch {
        0 => StagePlace { stage: place.stage - 1, ..place },
        _ => place,
    }
}

/// A stage, and those after it.
pub struct StageList<'a, S: Stage, T> {
    stage: S::Borrowed<'a>,
    next_port: u8,
    /// The test that is sufficient for the next stage.
    test: WordTest,
    rest: T,
}

impl<S: Stage, T: Stages> Stages for (S, T) {
    const ENDS: bool = T::ENDS;
    type Borrowed<'a> = StageList<'a, S, T::Borrowed<'a>>;

    fn list(into: &mut ChainSpec) {
        into.stages.push(StageSpec::of::<S>());
        T::list(into);
    }
    fn fits(nodes: &[Option<RoleNode>], branches: &[ChainPart]) -> bool {
        let Some((first, nodes)) = nodes.split_first() else { return false };
        first.as_ref().is_none_or(S::fits) && T::fits(nodes, branches)
    }
    fn own(nodes: &mut [Option<RoleNode>], branches: &mut [ChainPart]) -> Option<Self> {
        let (first, nodes) = nodes.split_first_mut()?;
        Some((S::own(first.take())?, T::own(nodes, branches)?))
    }
    fn node(&mut self, place: StagePlace) -> Option<&mut dyn ThroughRole> {
        match place {
            StagePlace { branch: 0, stage: 0 } => self.0.node(),
            place => self.1.node(behind(place)),
        }
    }
    fn peek(&self, place: StagePlace) -> Option<&dyn ThroughRole> {
        match place {
            StagePlace { branch: 0, stage: 0 } => self.0.peek(),
            place => self.1.peek(behind(place)),
        }
    }
    #[inline(always)]
    fn passers(&self) -> Option<usize> {
        let rest = self.1.passers().filter(|_| self.0.may_be_native())?;
        Some(usize::from(self.0.can_pass_burst()) + rest)
    }
    #[inline(always)]
    fn borrow(&mut self, next_ports: &[u8]) -> Option<Self::Borrowed<'_>> {
        let (&next_port, next_ports) = next_ports.split_first()?;
        let stage = self.0.borrow()?;
        let test = S::sufficient_test(&stage, next_port);
        Some(StageList { stage, next_port, test, rest: self.1.borrow(next_ports)? })
    }
    #[inline(always)]
    fn run_branches(
        &mut self,
        packets: &mut [Packet],
        fates: &mut [u8],
        of_all: Option<u8>,
        log: &mut ExitLog,
        exec: &mut ExecState,
    ) {
        self.1.run_branches(packets, fates, of_all, log, exec);
    }
}

impl<S: Stage, T: StageRun> StageRun for StageList<'_, S, T> {
    const LOOKS_UP: bool = T::LOOKS_UP;
    const PASSERS: usize = S::CAN_PASS_BURST as usize + T::PASSERS;

    #[inline(always)]
    fn passes_burst(&self, burst: &BurstSummary) -> bool {
        if Self::PASSERS == 0 {
            return true;
        }
        match S::burst_effect(&self.stage, burst) {
            BurstEffect::Passes => self.rest.passes_burst(burst),
            _ if S::CAN_PASS_BURST => false,
            BurstEffect::Keeps => self.rest.passes_burst(burst),
            BurstEffect::Unknown => false,
        }
    }

    #[inline(always)]
    fn is_native(&self) -> bool {
        S::is_native(&self.stage) && self.rest.is_native()
    }

    #[inline(always)]
    fn before(&mut self, now: Time) {
        S::before(&mut self.stage, now);
        self.rest.before(now);
    }

    #[inline(always)]
    fn after(&mut self, elements: &[usize], exec: &mut ExecState) {
        if let Some((&me, rest)) = elements.split_first() {
            S::after(&mut self.stage, &mut Cx { exec, me, peers: None });
            self.rest.after(rest, exec);
        }
    }

    #[inline(always)]
    fn run<C: Code>(&mut self, packet: &mut Packet, place: StagePlace, log: &mut ExitLog) -> u8 {
        if C::SHORT && S::CAN_PASS_BURST {
            return self.rest.run::<C>(packet, place.next(), log);
        }
        if !S::KEEPS {
            return self.run_one::<C>(packet, place, log);
        }
        // Where several stages in a row see IPv4, one check is enough for all.
        let Some(mut ip) = packet.pinned_ipv4() else {
            return self.refuse::<C>(packet, place, log);
        };
        match self.run_ipv4::<C>(&mut ip, place, log) {
            EXITED => EXITED,
            _ => self.run_rest::<C>(packet, place, log),
        }
    }

    #[inline(always)]
    fn run_ipv4<C: Code>(
        &mut self,
        ip: &mut PinnedIpv4<'_>,
        place: StagePlace,
        log: &mut ExitLog,
    ) -> u8 {
        if !S::KEEPS {
            return 0;
        }
        if C::SHORT && S::CAN_PASS_BURST {
            return self.rest.run_ipv4::<C>(ip, place.next(), log);
        }
        if C::HELD && log.stops_at(place) {
            return log.exit(ip.packet(), place, STOP);
        }
        let fate = decide_kept::<S, C>(&mut self.stage, ip, place, log);
        if fate != self.on() {
            return log.exit(ip.packet(), place, fate);
        }
        self.rest.run_ipv4::<C>(ip, place.next(), log)
    }

    #[inline(always)]
    fn look_up<C: Code>(
        &mut self,
        packets: &mut [Packet],
        fates: &mut [u8],
        place: StagePlace,
        log: &ExitLog,
    ) {
        self.rest.look_up::<C>(packets, fates, place.next(), log);
    }

    #[inline(always)]
    fn run_rest<C: Code>(
        &mut self,
        packet: &mut Packet,
        place: StagePlace,
        log: &mut ExitLog,
    ) -> u8 {
        match S::KEEPS {
            true => self.rest.run_rest::<C>(packet, place.next(), log),
            false => self.run::<C>(packet, place, log),
        }
    }
}

impl<S: Stage, T: StageRun> StageList<'_, S, T> {
    /// The fate that leads to the next stage.
    #[inline(always)]
    fn on(&self) -> u8 {
        if S::OPEN { self.next_port } else { 0 }
    }

    /// Has a packet leave that is not IPv4, unless the stage is absent.
    #[inline(always)]
    fn refuse<C: Code>(&mut self, packet: &mut Packet, place: StagePlace, log: &mut ExitLog) -> u8 {
        // The constant spares the compiler the stages behind, once more for each stage.
        if S::OPTIONAL && S::is_absent(&self.stage) {
            return self.rest.run::<C>(packet, place.next(), log);
        }
        let fate = if C::HELD && log.stops_at(place) { STOP } else { S::NOT_TAKEN };
        log.exit(packet, place, fate)
    }

    /// Runs a packet through this stage, and on.
    #[inline(always)]
    fn run_one<C: Code>(
        &mut self,
        packet: &mut Packet,
        place: StagePlace,
        log: &mut ExitLog,
    ) -> u8 {
        if C::HELD && log.stops_at(place) {
            return log.exit(packet, place, STOP);
        }
        let fate = match S::HAS_SUFFICIENT_TESTS && self.test.passes(packet) {
            true => self.on(),
            false => decide::<S, C>(&mut self.stage, packet, place, log),
        };
        if fate != self.on() {
            return log.exit(packet, place, fate);
        }
        self.rest.run::<C>(packet, place.next(), log)
    }
}

impl Stages for () {
    const ENDS: bool = false;
    type Borrowed<'a> = ();
    fn list(_: &mut ChainSpec) {}
    fn fits(_: &[Option<RoleNode>], _: &[ChainPart]) -> bool {
        true
    }
    fn own(_: &mut [Option<RoleNode>], _: &mut [ChainPart]) -> Option<()> {
        Some(())
    }
    fn node(&mut self, _: StagePlace) -> Option<&mut dyn ThroughRole> {
        None
    }
    fn peek(&self, _: StagePlace) -> Option<&dyn ThroughRole> {
        None
    }
    #[inline(always)]
    fn passers(&self) -> Option<usize> {
        Some(0)
    }
    #[inline(always)]
    fn borrow(&mut self, _: &[u8]) -> Option<()> {
        Some(())
    }
}

impl StageRun for () {
    #[inline(always)]
    fn is_native(&self) -> bool {
        true
    }
    #[inline(always)]
    fn before(&mut self, _: Time) {}
    #[inline(always)]
    fn after(&mut self, _: &[usize], _: &mut ExecState) {}
    #[inline(always)]
    fn run<C: Code>(&mut self, _: &mut Packet, _: StagePlace, _: &mut ExitLog) -> u8 {
        0
    }
}

/// A last stage that may send packets to several outputs.
pub struct FinalStage<S>(S);

/// A last stage, for one burst.
pub struct FinalRun<'a, S: Stage>(S::Borrowed<'a>, PhantomData<S>);

impl<S: Stage> Stages for FinalStage<S> {
    const ENDS: bool = true;
    type Borrowed<'a> = FinalRun<'a, S>;
    fn list(into: &mut ChainSpec) {
        into.stages.push(StageSpec::of::<S>());
    }
    fn fits(nodes: &[Option<RoleNode>], _: &[ChainPart]) -> bool {
        nodes.first().is_some_and(|node| node.as_ref().is_none_or(S::fits))
    }
    fn own(nodes: &mut [Option<RoleNode>], _: &mut [ChainPart]) -> Option<Self> {
        S::own(nodes.first_mut()?.take()).map(FinalStage)
    }
    fn node(&mut self, place: StagePlace) -> Option<&mut dyn ThroughRole> {
        if place == StagePlace::default() { self.0.node() } else { None }
    }
    fn peek(&self, place: StagePlace) -> Option<&dyn ThroughRole> {
        if place == StagePlace::default() { self.0.peek() } else { None }
    }
    #[inline(always)]
    fn borrow(&mut self, _: &[u8]) -> Option<Self::Borrowed<'_>> {
        Some(FinalRun(self.0.borrow()?, PhantomData))
    }
}

impl<S: Stage> StageRun for FinalRun<'_, S> {
    const LOOKS_UP: bool = S::IS_LOOKUP;

    #[inline(always)]
    fn is_native(&self) -> bool {
        S::is_native(&self.0)
    }
    #[inline(always)]
    fn before(&mut self, now: Time) {
        S::before(&mut self.0, now);
    }
    #[inline(always)]
    fn after(&mut self, elements: &[usize], exec: &mut ExecState) {
        if let Some(&me) = elements.first() {
            S::after(&mut self.0, &mut Cx { exec, me, peers: None });
        }
    }
    #[inline(always)]
    fn run<C: Code>(&mut self, packet: &mut Packet, place: StagePlace, log: &mut ExitLog) -> u8 {
        if C::HELD && log.stops_at(place) {
            return log.exit(packet, place, STOP);
        }
        if S::IS_LOOKUP {
            return 0;
        }
        decide::<S, C>(&mut self.0, packet, place, log)
    }

    #[inline(always)]
    fn look_up<C: Code>(
        &mut self,
        packets: &mut [Packet],
        fates: &mut [u8],
        place: StagePlace,
        log: &ExitLog,
    ) {
        let guard = PanicGuard::new(place, log);
        S::decide_all::<C>(&mut self.0, packets, fates);
        std::mem::forget(guard);
    }
}
