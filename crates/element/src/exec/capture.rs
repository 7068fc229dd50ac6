//! Captures: copies of the packets that come to elements, leave them, or are dropped there.

use super::{Lease, PacketFilter, PacketImage, TimeBudget, TraceElement};
use crate::fate::LossReason;
use crate::time::Time;
use castanet_packet::Packet;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::mpsc::Sender;
use std::time::Instant;

/// Copying packets takes at most one of so many nanoseconds of a worker.
const SHARE: u32 = 8;
/// Nanoseconds for copying that may be saved: bursts after a pause are copied whole.
const SAVED: u32 = 20_000_000;
/// Bytes that may wait for the control thread.
const MAX_PENDING: usize = 16 << 20;
/// Bytes that a packet takes beside its own, about.
const OVERHEAD: usize = 128;

/// One side of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureSide {
    /// Packets that come in by an input.
    Input,
    /// Packets that leave by an output.
    Output,
}

/// A place in the graph whose packets are captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePoint {
    /// Name of the element.
    pub element: String,
    /// Inputs or outputs.
    pub side: CaptureSide,
    /// The number of the port; all ports if not given.
    pub port: Option<usize>,
}

/// The drops that are captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedDrops {
    /// Only those of these elements; of all if there are none.
    pub elements: Vec<String>,
    /// Only those for this reason, by its name.
    pub reason: Option<String>,
}

/// A capture that a client has asked for. All workers share it.
pub struct CaptureSession {
    filter: Box<dyn PacketFilter>,
    points: Vec<CapturePoint>,
    drops: Option<CapturedDrops>,
    snap_len: usize,
    lease: Lease,
    /// Packets that it is yet to copy.
    remaining: AtomicU64,
    /// Packets that were copied.
    copied: AtomicU64,
    /// Of these, packets that were sent, or lost.
    sent: AtomicU64,
    /// Packets for which there was no time.
    missed: AtomicU64,
    /// Packets for which too many others waited.
    overflowed: AtomicU64,
    pending: AtomicUsize,
    packets: Sender<Vec<CapturedPacket>>,
}

/// A captured packet.
#[derive(Clone)]
pub struct CapturedPacket {
    /// The time of the burst.
    pub time: Time,
    /// Index of the worker.
    pub worker: usize,
    /// Name of the element.
    pub element: String,
    /// Its class, as the configuration names it.
    pub class: String,
    /// The place of the packet there.
    pub place: CapturePlace,
    /// The packet.
    pub packet: PacketImage,
}

/// Place of a captured packet at an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapturePlace {
    /// It came in by this input.
    Input(usize),
    /// It left by this output.
    Output(usize),
    /// It was dropped, for this reason.
    Dropped(Arc<LossReason>),
}

impl CaptureSession {
    /// A capture of at most `packets` packets.
    pub fn new(
        filter: Box<dyn PacketFilter>,
        points: Vec<CapturePoint>,
        drops: Option<CapturedDrops>,
        packets: u64,
        snap_len: usize,
        lease: Lease,
        sender: Sender<Vec<CapturedPacket>>,
    ) -> CaptureSession {
        CaptureSession {
            filter,
            points,
            drops,
            snap_len,
            lease,
            remaining: packets.into(),
            copied: 0.into(),
            sent: 0.into(),
            missed: 0.into(),
            overflowed: 0.into(),
            pending: 0.into(),
            packets: sender,
        }
    }

    /// The places that it is about, but drops.
    pub fn points(&self) -> &[CapturePoint] {
        &self.points
    }

    /// Its lease.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Whether all packets that were asked for are there.
    pub fn is_full(&self) -> bool {
        let sent = self.sent.load(Acquire);
        self.needs_none() && sent == self.copied.load(Relaxed)
    }

    fn needs_none(&self) -> bool {
        self.remaining.load(Acquire) == 0
    }

    /// Packets for which there was no time.
    pub fn missed(&self) -> u64 {
        self.missed.load(Relaxed)
    }

    /// Packets for which too many others waited.
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Relaxed)
    }

    /// Counts these packets as received; returns the bytes that they take, about.
    pub fn received(&self, packets: &[CapturedPacket]) -> usize {
        let weight = weight(packets);
        self.pending.fetch_sub(weight, Relaxed);
        weight
    }

    fn is_open(&self, now: Time) -> bool {
        !self.needs_none() && !self.lease.is_over(now)
    }

    fn is_about(&self, name: &str, place: &CapturePlace) -> bool {
        let (side, port) = match place {
            CapturePlace::Input(port) => (CaptureSide::Input, *port),
            CapturePlace::Output(port) => (CaptureSide::Output, *port),
            CapturePlace::Dropped(reason) => return self.is_about_drop(name, &reason.name),
        };
        let is_there = |point: &CapturePoint| {
            point.side == side
                && point.element == name
                && point.port.is_none_or(|wanted| wanted == port)
        };
        self.points.iter().any(is_there)
    }

    fn is_about_drop(&self, name: &str, reason: &str) -> bool {
        let Some(drops) = &self.drops else { return false };
        (drops.elements.is_empty() || drops.elements.iter().any(|element| element == name))
            && drops.reason.as_deref().is_none_or(|wanted| wanted == reason)
    }

    fn send(&self, mut packets: Vec<CapturedPacket>) {
        let count = packets.len() as u64;
        let less = |n: u64| Some(n.saturating_sub(count));
        // Before fewer are left to copy, so that a reader never sees too few copies.
        self.copied.fetch_add(count, Relaxed);
        let left = self.remaining.fetch_update(AcqRel, Relaxed, less).unwrap_or(0);
        packets.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        if !packets.is_empty() {
            self.send_all(packets);
        }
        self.sent.fetch_add(count, Release);
    }

    /// Sends packets, or counts them where too many others wait.
    fn send_all(&self, packets: Vec<CapturedPacket>) {
        let (count, weight) = (packets.len() as u64, weight(&packets));
        let waiting = self.pending.fetch_add(weight, Relaxed);
        if waiting > MAX_PENDING || self.packets.send(packets).is_err() {
            self.pending.fetch_sub(weight, Relaxed);
            self.overflowed.fetch_add(count, Relaxed);
        }
    }
}

fn weight(packets: &[CapturedPacket]) -> usize {
    packets.iter().map(|it| it.packet.bytes.len() + OVERHEAD).sum()
}

/// The captures of one worker.
pub struct WorkerCapture {
    sessions: Vec<Arc<CaptureSession>>,
    elements: Arc<[TraceElement]>,
    worker: usize,
    budget: TimeBudget,
}

impl WorkerCapture {
    /// The captures of a worker with these elements.
    pub fn new(
        sessions: Vec<Arc<CaptureSession>>,
        elements: Arc<[TraceElement]>,
        worker: usize,
        now: Time,
    ) -> WorkerCapture {
        WorkerCapture { sessions, elements, worker, budget: TimeBudget::new(SHARE, SAVED, now) }
    }

    /// Whether the leases of all captures have ended.
    pub fn is_over(&self, now: Time) -> bool {
        self.sessions.iter().all(|session| session.lease.is_over(now))
    }

    /// Copies packets that element `me` drops, for the captures that are about it.
    pub fn take_dropped(&mut self, me: usize, fate: u8, packets: &[Packet], now: Time) {
        if self.sessions.iter().any(|session| session.drops.is_some()) {
            let place = CapturePlace::Dropped(self.elements[me].reason(fate));
            self.take(me, &place, packets, now);
        }
    }

    /// Copies packets that are at a place of element `me`, for the captures that are about it.
    pub fn take(&mut self, me: usize, place: &CapturePlace, packets: &[Packet], now: Time) {
        let TraceElement { name, class, .. } = &self.elements[me];
        let is_for =
            |session: &&Arc<CaptureSession>| session.is_open(now) && session.is_about(name, place);
        if packets.is_empty() || !self.sessions.iter().any(|session| is_for(&session)) {
            return;
        }
        let is_open = self.budget.is_open(now);
        let begun = Instant::now();
        for session in self.sessions.iter().filter(is_for) {
            if !is_open {
                session.missed.fetch_add(packets.len() as u64, Relaxed);
                continue;
            }
            let wanted = packets.iter().filter(|packet| session.filter.matches(packet));
            let wanted = wanted.map(|packet| CapturedPacket {
                time: now,
                worker: self.worker,
                element: name.clone(),
                class: class.clone(),
                place: place.clone(),
                packet: PacketImage::of(packet, session.snap_len),
            });
            session.send(wanted.collect());
        }
        self.budget.spend(begun.elapsed());
    }
}
