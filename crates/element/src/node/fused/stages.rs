//! The stages of a chain, and the path of a packet through them.

use super::{ChainMember, EXITED, NO_STAGE, STOP, Stage, StageSpec};
use crate::cx::Cx;
use crate::exec::{ChainExit, ExecState};
use crate::node::{RoleNode, ThroughRole};
use crate::time::Time;
use castanet_packet::{Packet, PinnedIpv4};
use std::cell::Cell;
use std::marker::PhantomData;

/// The stages of a chain: a nested pair of [`Stage`]s that ends in `()` or [`FinalStage`].
pub trait Stages: Send + Sized + 'static {
    /// Whether the fates of the last stage are those of the chain.
    const ENDS: bool;
    /// The stages' configurations and states, for one burst.
    type Borrowed<'a>: StageRun;
    /// Adds the requirements of each stage.
    fn list(into: &mut Vec<StageSpec>);
    /// Takes the nodes over, the first stage's first.
    fn own(nodes: &mut [Option<RoleNode>]) -> Option<Self>;
    /// The node of a stage.
    fn node(&mut self, stage: u8) -> Option<&mut dyn ThroughRole>;
    /// The node of a stage, to look at.
    fn peek(&self, stage: u8) -> Option<&dyn ThroughRole>;
    /// Borrows configurations and states for a burst; `None` if workers share one of the states.
    fn borrow(&mut self, next_ports: &[u8]) -> Option<Self::Borrowed<'_>>;
}

/// Stages that packets can go through.
pub trait StageRun {
    /// Before the burst.
    fn before(&mut self, now: Time);
    /// After the burst.
    fn after(&mut self, members: &[ChainMember], stage: u8, exec: &mut ExecState);
    /// Runs a packet up to stage `until`; returns its fate, or [`EXITED`] if it left before.
    fn run(&mut self, packet: &mut Packet, stage: u8, until: u8, log: &mut ExitLog) -> u8;
    /// Runs a packet that is known to be IPv4 through the next stages that keep it so; returns 0, or
    /// [`EXITED`].
    fn run_ipv4(&mut self, ip: &mut PinnedIpv4<'_>, stage: u8, until: u8, log: &mut ExitLog) -> u8;
    /// Runs a packet through the stages behind those.
    fn run_rest(&mut self, packet: &mut Packet, stage: u8, until: u8, log: &mut ExitLog) -> u8;
}

/// Log of packets that leave before the end of the chain.
pub struct ExitLog<'a> {
    pub(super) exits: &'a mut Vec<ChainExit>,
    /// Address of the burst's first packet.
    pub(super) start: usize,
    /// The stage that takes a packet only as part of a batch: all packets after that one must stay behind
    /// it.
    pub(super) stopped: u8,
    /// The stage that panicked.
    pub(super) panicked: &'a Cell<u8>,
}

impl ExitLog<'_> {
    /// Logs a packet that does not go on from a stage.
    #[inline(always)]
    fn exit(&mut self, packet: &Packet, stage: u8, fate: u8) -> u8 {
        self.note(packet, stage, fate);
        EXITED
    }

    /// Whether a stage takes all packets after the last logged one.
    // Never inlined: the compiler would merge this test with the one before,
    // and make it for packets that go on, too.
    #[cold]
    #[inline(never)]
    pub(super) fn has_stopped(&self) -> bool {
        self.stopped != NO_STAGE
    }

    /// Logs where a packet leaves, and whether those after it may go on.
    #[cold]
    #[inline(never)]
    fn note(&mut self, packet: &Packet, stage: u8, fate: u8) {
        let index = (std::ptr::from_ref(packet).addr() - self.start) / size_of::<Packet>();
        if fate == STOP {
            self.stopped = stage;
        }
        let fate = (fate != STOP).then_some(fate);
        self.exits.push(ChainExit { index: index as u16, stage, fate });
    }
}

/// Records the stage that runs, if it panics.
struct PanicGuard<'a> {
    stage: u8,
    log: &'a ExitLog<'a>,
}

impl Drop for PanicGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.log.panicked.set(self.stage);
    }
}

/// Has a stage decide, under a guard.
#[inline(always)]
fn decide<S: Stage>(
    element: &mut S::Borrowed<'_>,
    packet: &mut Packet,
    stage: u8,
    log: &ExitLog,
) -> u8 {
    let guard = PanicGuard { stage, log };
    let fate = S::decide(element, packet);
    std::mem::forget(guard);
    fate
}

/// The same about a packet that is known to be IPv4.
#[inline(always)]
fn decide_kept<S: Stage>(
    element: &mut S::Borrowed<'_>,
    ip: &mut PinnedIpv4<'_>,
    stage: u8,
    log: &ExitLog,
) -> u8 {
    let guard = PanicGuard { stage, log };
    let fate = S::decide_kept(element, ip);
    std::mem::forget(guard);
    fate
}

/// A stage, and those after it.
pub struct StageList<'a, S: Stage, T> {
    stage: S::Borrowed<'a>,
    next_port: u8,
    rest: T,
}

impl<S: Stage, T: Stages> Stages for (S, T) {
    const ENDS: bool = T::ENDS;
    type Borrowed<'a> = StageList<'a, S, T::Borrowed<'a>>;

    fn list(into: &mut Vec<StageSpec>) {
        into.push(StageSpec { class: S::CLASS, open: S::OPEN, optional: S::OPTIONAL });
        T::list(into);
    }
    fn own(nodes: &mut [Option<RoleNode>]) -> Option<Self> {
        let (first, nodes) = nodes.split_first_mut()?;
        Some((S::own(first.take())?, T::own(nodes)?))
    }
    fn node(&mut self, stage: u8) -> Option<&mut dyn ThroughRole> {
        if stage == 0 { self.0.node() } else { self.1.node(stage - 1) }
    }
    fn peek(&self, stage: u8) -> Option<&dyn ThroughRole> {
        if stage == 0 { self.0.peek() } else { self.1.peek(stage - 1) }
    }
    #[inline(always)]
    fn borrow(&mut self, next_ports: &[u8]) -> Option<Self::Borrowed<'_>> {
        let (&next_port, next_ports) = next_ports.split_first()?;
        Some(StageList { stage: self.0.borrow()?, next_port, rest: self.1.borrow(next_ports)? })
    }
}

impl<S: Stage, T: StageRun> StageRun for StageList<'_, S, T> {
    #[inline(always)]
    fn before(&mut self, now: Time) {
        S::before(&mut self.stage, now);
        self.rest.before(now);
    }

    #[inline(always)]
    fn after(&mut self, members: &[ChainMember], stage: u8, exec: &mut ExecState) {
        let mut members = members;
        if let Some((member, rest)) = members.split_first().filter(|(m, _)| m.stage == stage) {
            S::after(&mut self.stage, &mut Cx { exec, me: member.node, peers: None });
            members = rest;
        }
        self.rest.after(members, stage + 1, exec);
    }

    #[inline(always)]
    fn run(&mut self, packet: &mut Packet, stage: u8, until: u8, log: &mut ExitLog) -> u8 {
        if !S::KEEPS {
            return self.run_one(packet, stage, until, log);
        }
        // Where several stages in a row see IPv4, one check is enough for all.
        let Some(mut ip) = packet.marked_ipv4() else {
            return self.run_unmarked(packet, stage, until, log);
        };
        match self.run_ipv4(&mut ip, stage, until, log) {
            EXITED => EXITED,
            _ => self.run_rest(packet, stage, until, log),
        }
    }

    #[inline(always)]
    fn run_ipv4(&mut self, ip: &mut PinnedIpv4<'_>, stage: u8, until: u8, log: &mut ExitLog) -> u8 {
        if !S::KEEPS {
            return 0;
        }
        if stage == until {
            return log.exit(ip.packet(), stage, STOP);
        }
        let fate = decide_kept::<S>(&mut self.stage, ip, stage, log);
        if fate != self.on() {
            return log.exit(ip.packet(), stage, fate);
        }
        self.rest.run_ipv4(ip, stage + 1, until, log)
    }

    #[inline(always)]
    fn run_rest(&mut self, packet: &mut Packet, stage: u8, until: u8, log: &mut ExitLog) -> u8 {
        match S::KEEPS {
            true => self.rest.run_rest(packet, stage + 1, until, log),
            false => self.run(packet, stage, until, log),
        }
    }
}

impl<S: Stage, T: StageRun> StageList<'_, S, T> {
    /// The fate that leads to the next stage.
    #[inline(always)]
    fn on(&self) -> u8 {
        if S::OPEN { self.next_port } else { 0 }
    }

    /// Runs a packet through this stage, and on.
    #[inline(always)]
    fn run_one(&mut self, packet: &mut Packet, stage: u8, until: u8, log: &mut ExitLog) -> u8 {
        if stage == until {
            return log.exit(packet, stage, STOP);
        }
        let fate = decide::<S>(&mut self.stage, packet, stage, log);
        if fate != self.on() {
            return log.exit(packet, stage, fate);
        }
        self.rest.run(packet, stage + 1, until, log)
    }

    /// The same, for a packet that is not marked as IPv4.
    #[cold]
    #[inline(never)]
    fn run_unmarked(&mut self, packet: &mut Packet, stage: u8, until: u8, log: &mut ExitLog) -> u8 {
        self.run_one(packet, stage, until, log)
    }
}

impl Stages for () {
    const ENDS: bool = false;
    type Borrowed<'a> = ();
    fn list(_: &mut Vec<StageSpec>) {}
    fn own(_: &mut [Option<RoleNode>]) -> Option<()> {
        Some(())
    }
    fn node(&mut self, _: u8) -> Option<&mut dyn ThroughRole> {
        None
    }
    fn peek(&self, _: u8) -> Option<&dyn ThroughRole> {
        None
    }
    fn borrow(&mut self, _: &[u8]) -> Option<()> {
        Some(())
    }
}

impl StageRun for () {
    fn before(&mut self, _: Time) {}
    fn after(&mut self, _: &[ChainMember], _: u8, _: &mut ExecState) {}
    #[inline(always)]
    fn run(&mut self, _: &mut Packet, _: u8, _: u8, _: &mut ExitLog) -> u8 {
        0
    }
    #[inline(always)]
    fn run_ipv4(&mut self, _: &mut PinnedIpv4<'_>, _: u8, _: u8, _: &mut ExitLog) -> u8 {
        0
    }
    #[inline(always)]
    fn run_rest(&mut self, _: &mut Packet, _: u8, _: u8, _: &mut ExitLog) -> u8 {
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
    fn list(into: &mut Vec<StageSpec>) {
        into.push(StageSpec { class: S::CLASS, open: S::OPEN, optional: S::OPTIONAL });
    }
    fn own(nodes: &mut [Option<RoleNode>]) -> Option<Self> {
        S::own(nodes.first_mut()?.take()).map(FinalStage)
    }
    fn node(&mut self, stage: u8) -> Option<&mut dyn ThroughRole> {
        if stage == 0 { self.0.node() } else { None }
    }
    fn peek(&self, stage: u8) -> Option<&dyn ThroughRole> {
        if stage == 0 { self.0.peek() } else { None }
    }
    #[inline(always)]
    fn borrow(&mut self, _: &[u8]) -> Option<Self::Borrowed<'_>> {
        Some(FinalRun(self.0.borrow()?, PhantomData))
    }
}

impl<S: Stage> StageRun for FinalRun<'_, S> {
    #[inline(always)]
    fn before(&mut self, now: Time) {
        S::before(&mut self.0, now);
    }
    #[inline(always)]
    fn after(&mut self, members: &[ChainMember], stage: u8, exec: &mut ExecState) {
        if let Some(member) = members.first().filter(|m| m.stage == stage) {
            S::after(&mut self.0, &mut Cx { exec, me: member.node, peers: None });
        }
    }
    #[inline(always)]
    fn run(&mut self, packet: &mut Packet, stage: u8, until: u8, log: &mut ExitLog) -> u8 {
        if stage == until {
            return log.exit(packet, stage, STOP);
        }
        decide::<S>(&mut self.0, packet, stage, log)
    }
    // The last stage checks for itself.
    #[inline(always)]
    fn run_ipv4(&mut self, _: &mut PinnedIpv4<'_>, _: u8, _: u8, _: &mut ExitLog) -> u8 {
        0
    }
    #[inline(always)]
    fn run_rest(&mut self, packet: &mut Packet, stage: u8, until: u8, log: &mut ExitLog) -> u8 {
        self.run(packet, stage, until, log)
    }
}
