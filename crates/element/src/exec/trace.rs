//! Traces: the steps of single packets from element to element.
//!
//! A trace chooses packets where sources emit them, and gives each a tag in its descriptor
//! ([`Packet::set_trace_tag`]). A worker that traces sends tagged packets through elements one by
//! one, past no fused chain, and reports each visit. Clones and copies have the tag too, and so has
//! a packet that an element emits while it has a tagged one. Elements that keep packets keep their
//! tags.

use super::{Counters, Lease, PacketFilter, PacketImage, TimeBudget, TraceElement};
use crate::fate::{DROP, LossReason, REASONS};
use crate::time::Time;
use castanet_packet::{Batch, Packet};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Choosing packets takes at most one of so many nanoseconds of a worker.
const SHARE: u32 = 64;
/// Nanoseconds for choosing that may be saved: bursts after a pause are looked at whole.
const SAVED: u32 = 1_000_000;
/// Bytes of steps that may wait for the control thread.
const MAX_PENDING: usize = 16 << 20;
/// Bytes that a step and each packet in it take beside the packet's own, about.
const OVERHEAD: usize = 256;
/// Packets of one visit that are reported.
const MAX_RESULTS: usize = 64;

/// A trace that a client has asked for. All workers share it.
pub struct TraceSession {
    filter: Box<dyn PacketFilter>,
    /// The source whose packets it is about; all sources if not given.
    source: Option<String>,
    /// Bytes of a packet that images have.
    snap_len: usize,
    /// Packets that it is about.
    packets: u32,
    /// Packets chosen so far.
    begun: AtomicU32,
    /// Packets whose first step was sent, or lost.
    entered: AtomicU32,
    lease: Lease,
    /// Packets that passed a source when there was no time to look at them, or no tag.
    missed: AtomicU64,
    pending: AtomicUsize,
    lost_steps: AtomicU64,
    steps: Sender<TraceStep>,
}

/// A step of a traced packet.
#[derive(Clone)]
pub struct TraceStep {
    /// Number of the packet in its trace, from 1 on.
    pub packet: u32,
    /// The time of the burst.
    pub time: Time,
    /// Index of the worker.
    pub worker: usize,
    /// Name of the element.
    pub element: String,
    /// Its class, as the configuration names it.
    pub class: String,
    /// The step.
    pub kind: TraceStepKind,
}

/// Kind of a step of a traced packet.
#[derive(Clone, Debug)]
pub enum TraceStepKind {
    /// A source emitted it, and it was chosen.
    Entered {
        /// The output.
        output: u8,
        /// The packet.
        packet: PacketImage,
    },
    /// It came to an element.
    Visited {
        /// The input.
        input: usize,
        /// The packet that came.
        before: PacketImage,
        /// Time in the element.
        nanoseconds: u64,
        /// All that became of it.
        results: Vec<TraceResult>,
    },
    /// It left an element that had kept it.
    Taken {
        /// The packet.
        packet: PacketImage,
    },
    /// An element dropped it that had kept it, or nothing is connected to the output by which it left.
    Dropped {
        /// The reason.
        reason: Arc<LossReason>,
    },
    /// It has ended, with all its clones.
    Finished,
}

/// Result of a visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceResult {
    /// A packet left by an output.
    Sent {
        /// The output.
        output: u8,
        /// The packet.
        packet: PacketImage,
    },
    /// The packet was dropped.
    Dropped {
        /// The reason.
        reason: Arc<LossReason>,
    },
    /// The packet ended here as it should: sent, written, used.
    Consumed,
    /// The element keeps the packet.
    Kept,
}

impl TraceSession {
    /// A trace of the next `packets` packets that match.
    pub fn new(
        filter: Box<dyn PacketFilter>,
        source: Option<String>,
        packets: u32,
        snap_len: usize,
        lease: Lease,
        steps: Sender<TraceStep>,
    ) -> TraceSession {
        TraceSession {
            filter,
            source,
            snap_len,
            packets,
            begun: 0.into(),
            entered: 0.into(),
            lease,
            missed: 0.into(),
            pending: 0.into(),
            lost_steps: 0.into(),
            steps,
        }
    }

    /// Its lease.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Packets chosen so far.
    pub fn begun(&self) -> u32 {
        self.begun.load(Relaxed)
    }

    /// Packets that are yet to be chosen, or whose first step is yet to be sent.
    pub fn remaining(&self) -> u32 {
        self.packets - self.entered.load(Acquire)
    }

    /// Packets that passed a source unseen.
    pub fn missed(&self) -> u64 {
        self.missed.load(Relaxed)
    }

    /// Steps that found too many others waiting.
    pub fn lost_steps(&self) -> u64 {
        self.lost_steps.load(Relaxed)
    }

    /// Counts a step as received; returns the bytes that it takes, about.
    pub fn received(&self, step: &TraceStep) -> usize {
        let weight = step.weight();
        self.pending.fetch_sub(weight, Relaxed);
        weight
    }

    fn wants(&self, source: &str, now: Time) -> bool {
        let is_source = self.source.as_deref().is_none_or(|its| its == source);
        is_source && self.begun() < self.packets && !self.lease.is_over(now)
    }

    /// Takes the number of the next packet; `None` if there are enough.
    fn next_number(&self) -> Option<u32> {
        let one_more = |n: u32| (n < self.packets).then_some(n + 1);
        Some(self.begun.fetch_update(Relaxed, Relaxed, one_more).ok()? + 1)
    }

    fn send(&self, step: TraceStep) {
        let (weight, is_first) =
            (step.weight(), matches!(step.kind, TraceStepKind::Entered { .. }));
        let waiting = self.pending.fetch_add(weight, Relaxed);
        if waiting >= MAX_PENDING || self.steps.send(step).is_err() {
            self.pending.fetch_sub(weight, Relaxed);
            self.lost_steps.fetch_add(1, Relaxed);
        }
        if is_first {
            self.entered.fetch_add(1, Release);
        }
    }
}

impl TraceStep {
    /// Bytes that it takes, about.
    fn weight(&self) -> usize {
        let packets = match &self.kind {
            TraceStepKind::Entered { packet, .. } | TraceStepKind::Taken { packet } => {
                packet.bytes.len() + OVERHEAD
            }
            TraceStepKind::Visited { before, results, .. } => {
                let sent = results.iter().map(|result| match result {
                    TraceResult::Sent { packet, .. } => packet.bytes.len() + OVERHEAD,
                    _ => OVERHEAD,
                });
                before.bytes.len() + sent.sum::<usize>()
            }
            TraceStepKind::Dropped { .. } | TraceStepKind::Finished => 0,
        };
        packets + OVERHEAD
    }
}

/// The tagged packets of a router. All workers share it; they lock it for traced packets alone.
#[derive(Default)]
pub struct TraceTable {
    /// Number of tags in use.
    live: AtomicU32,
    tags: Mutex<TraceTags>,
}

#[derive(Default)]
struct TraceTags {
    /// The tag that was given last.
    last: u8,
    packets: [Option<TracedPacket>; Packet::MAX_TRACE_TAG as usize + 1],
}

/// A packet with a tag, and its clones.
#[derive(Clone)]
struct TracedPacket {
    session: Arc<TraceSession>,
    number: u32,
    /// Number of packets with the tag.
    clones: u32,
}

impl TraceTable {
    fn lock(&self) -> MutexGuard<'_, TraceTags> {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a tag; `None` if all are in use.
    fn give(&self, session: &Arc<TraceSession>) -> Option<(u8, u32)> {
        let mut tags = self.lock();
        // In turn, so that packets kept from an earlier trace are not taken for others.
        let all = (1..=Packet::MAX_TRACE_TAG).cycle().skip(tags.last.into());
        let mut all = all.take(Packet::MAX_TRACE_TAG.into());
        let tag = all.find(|&tag| tags.packets[usize::from(tag)].is_none())?;
        let number = session.next_number()?;
        let packet = TracedPacket { session: session.clone(), number, clones: 1 };
        tags.packets[usize::from(tag)] = Some(packet);
        tags.last = tag;
        self.live.fetch_add(1, Relaxed);
        Some((tag, number))
    }

    fn get(&self, tag: u8) -> Option<TracedPacket> {
        self.lock().packets.get(usize::from(tag))?.clone()
    }

    /// Changes the number of packets with a tag; whether there are none left.
    fn change(&self, tag: u8, more: u32, less: u32) -> bool {
        let mut tags = self.lock();
        let Some(entry) = tags.packets.get_mut(usize::from(tag)) else { return false };
        let Some(packet) = entry else { return false };
        packet.clones = (packet.clones + more).saturating_sub(less);
        let is_over = packet.clones == 0;
        if is_over {
            *entry = None;
            self.live.fetch_sub(1, Relaxed);
        }
        is_over
    }

    /// Forgets the packets of a trace that has ended.
    pub fn forget(&self, session: &Arc<TraceSession>) {
        let mut tags = self.lock();
        for entry in &mut tags.packets {
            if entry.as_ref().is_some_and(|packet| Arc::ptr_eq(&packet.session, session)) {
                *entry = None;
                self.live.fetch_sub(1, Relaxed);
            }
        }
    }
}

/// The traces of one worker.
pub struct WorkerTrace {
    sessions: Vec<Arc<TraceSession>>,
    table: Arc<TraceTable>,
    elements: Arc<[TraceElement]>,
    worker: usize,
    budget: TimeBudget,
    /// Packets that passed sources unseen since a burst was looked at.
    missed: u64,
    /// The tag of the packet whose visit is traced; 0 for none.
    current: u8,
    /// Fates by which the visited element has dropped the packet or clones of it.
    noted: Vec<u8>,
}

/// A visit that is traced.
pub struct TraceVisit {
    tag: u8,
    traced: TracedPacket,
    input: usize,
    before: PacketImage,
    consumed: u64,
    drops: [u64; REASONS],
    begun: Instant,
}

impl WorkerTrace {
    /// The traces of a worker with these elements.
    pub fn new(
        sessions: Vec<Arc<TraceSession>>,
        table: Arc<TraceTable>,
        elements: Arc<[TraceElement]>,
        worker: usize,
        now: Time,
    ) -> WorkerTrace {
        WorkerTrace {
            sessions,
            table,
            elements,
            worker,
            budget: TimeBudget::new(SHARE, SAVED, now),
            missed: 0,
            current: 0,
            noted: Vec::new(),
        }
    }

    /// Whether any packet has a tag.
    #[inline]
    pub fn has_tagged(&self) -> bool {
        self.table.live.load(Relaxed) > 0
    }

    /// Whether the leases of all traces have ended.
    pub fn is_over(&self, now: Time) -> bool {
        self.sessions.iter().all(|session| session.lease.is_over(now))
    }

    fn step(&self, me: usize, time: Time, traced: &TracedPacket, kind: TraceStepKind) {
        let TraceElement { name, class, .. } = &self.elements[me];
        traced.session.send(TraceStep {
            packet: traced.number,
            time,
            worker: self.worker,
            element: name.clone(),
            class: class.clone(),
            kind,
        });
    }

    /// Chooses among packets that source `me` emits by each output.
    pub fn choose<'b>(
        &mut self,
        me: usize,
        now: Time,
        emitted: impl Iterator<Item = (u8, &'b mut Batch)>,
    ) {
        let name = &self.elements[me].name;
        if !self.sessions.iter().any(|session| session.wants(name, now)) {
            return;
        }
        if !self.budget.is_open(now) {
            self.missed += emitted.map(|(_, batch)| batch.len() as u64).sum::<u64>();
            return;
        }
        let begun = Instant::now();
        let missed = std::mem::take(&mut self.missed);
        for session in &self.sessions {
            if missed > 0 && session.wants(name, now) {
                session.missed.fetch_add(missed, Relaxed);
            }
        }
        for (output, batch) in emitted {
            for packet in batch.iter_mut().filter(|packet| packet.trace_tag() == 0) {
                let is_for = |session: &&Arc<TraceSession>| {
                    session.wants(name, now) && session.filter.matches(packet)
                };
                if let Some(session) = self.sessions.iter().find(is_for) {
                    self.enter(me, now, session, output, packet);
                }
            }
        }
        self.budget.spend(begun.elapsed());
    }

    #[cold]
    fn enter(
        &self,
        me: usize,
        now: Time,
        session: &Arc<TraceSession>,
        output: u8,
        packet: &mut Packet,
    ) {
        let Some((tag, number)) = self.table.give(session) else {
            session.missed.fetch_add(1, Relaxed);
            return;
        };
        packet.set_trace_tag(tag);
        let traced = TracedPacket { session: session.clone(), number, clones: 1 };
        let image = PacketImage::of(packet, session.snap_len);
        self.step(me, now, &traced, TraceStepKind::Entered { output, packet: image });
    }

    /// Reports tagged packets that leave element `me`, which had kept them.
    pub fn take(&self, me: usize, now: Time, packets: &[Packet]) {
        for packet in packets.iter().filter(|packet| packet.trace_tag() > 0) {
            if let Some(traced) = self.table.get(packet.trace_tag()) {
                let image = PacketImage::of(packet, traced.session.snap_len);
                self.step(me, now, &traced, TraceStepKind::Taken { packet: image });
            }
        }
    }

    /// Begins the visit of an element by a tagged packet; `None` if no trace is about it any more.
    pub fn begin_visit(
        &mut self,
        input: usize,
        packet: &Packet,
        counters: &Counters,
    ) -> Option<TraceVisit> {
        let tag = packet.trace_tag();
        let traced = (tag > 0).then(|| self.table.get(tag)).flatten()?;
        (self.current, self.noted) = (tag, Vec::new());
        let before = PacketImage::of(packet, traced.session.snap_len);
        let (consumed, drops) = (counters.consumed, counters.drops);
        Some(TraceVisit { tag, traced, input, before, consumed, drops, begun: Instant::now() })
    }

    /// Ends a visit of element `me` that has emitted these batches, each by an output that is
    /// connected or not.
    pub fn end_visit<'b>(
        &mut self,
        visit: TraceVisit,
        me: usize,
        now: Time,
        counters: &Counters,
        emitted: impl Iterator<Item = (u8, bool, &'b mut Batch)>,
    ) {
        let TraceVisit { tag, traced, input, before, consumed, drops, begun } = visit;
        let nanoseconds = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.current = 0;
        let (mut results, mut clones) = (Vec::new(), 0);
        for (output, is_connected, batch) in emitted {
            for packet in batch.iter_mut().filter(|it| [0, tag].contains(&it.trace_tag())) {
                packet.set_trace_tag(if is_connected { tag } else { 0 });
                if !is_connected {
                    results.push(TraceResult::Dropped { reason: self.elements[me].reason(output) });
                } else {
                    clones += 1;
                    let packet = PacketImage::of(packet, traced.session.snap_len);
                    results.push(TraceResult::Sent { output, packet });
                }
            }
        }
        results.sort_by_key(|result| match result {
            TraceResult::Sent { output, .. } => *output,
            _ => u8::MAX,
        });
        let noted = std::mem::take(&mut self.noted);
        let dropped = |fate| TraceResult::Dropped { reason: self.elements[me].reason(fate) };
        let mut ends: Vec<_> = noted.into_iter().map(dropped).collect();
        if counters.consumed > consumed {
            ends.push(TraceResult::Consumed);
        }
        if ends.is_empty() && results.is_empty() {
            // Let go before it was counted, or kept.
            let more = (0..REASONS).find(|&reason| counters.drops[reason] > drops[reason]);
            ends.push(match more {
                Some(reason) => dropped(DROP - reason as u8),
                None => {
                    clones = 1;
                    TraceResult::Kept
                }
            });
        }
        results.extend(ends);
        results.truncate(MAX_RESULTS);
        let kind = TraceStepKind::Visited { input, before, nanoseconds, results };
        self.step(me, now, &traced, kind);
        self.end_clones(me, now, tag, &traced, clones, 1);
    }

    /// Notes that element `me` drops a tagged packet, or that it leaves by an open output.
    pub fn note_drop(&mut self, me: usize, now: Time, fate: u8, packet: &Packet) {
        let tag = packet.trace_tag();
        if tag > 0 && tag == self.current {
            self.noted.push(fate);
        } else if tag > 0
            && let Some(traced) = self.table.get(tag)
        {
            let reason = self.elements[me].reason(fate);
            self.step(me, now, &traced, TraceStepKind::Dropped { reason });
            self.end_clones(me, now, tag, &traced, 0, 1);
        }
    }

    fn end_clones(
        &self,
        me: usize,
        now: Time,
        tag: u8,
        traced: &TracedPacket,
        more: u32,
        less: u32,
    ) {
        if self.table.change(tag, more, less) {
            self.step(me, now, traced, TraceStepKind::Finished);
        }
    }
}
