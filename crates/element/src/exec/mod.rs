//! State of one worker that elements reach through a [`Cx`](crate::cx::Cx): counters, timers, emitted
//! batches, pools. The runtime owns it.

mod accounting;
mod calls;
mod capture;
mod chain;
mod counters;
mod drop_examples;
mod image;
mod lease;
mod observers;
mod output_groups;
mod outputs;
mod packet_filter;
mod random;
mod time_budget;
mod timers;
mod trace;

pub use accounting::{ChargedRun, CycleAccounting, ElementCost, RunCost, RunKind, Traffic};
pub use calls::{AfterCall, CallState, HandlerCall};
pub use capture::{
    CapturePlace, CapturePoint, CaptureSession, CaptureSide, CapturedDrops, CapturedPacket,
    WorkerCapture,
};
pub use chain::{BranchCounts, ChainExit, MAX_BRANCHES, StagePlace};
pub use counters::Counters;
pub use drop_examples::{DropExample, DropExamples};
pub use image::{ImageAnnotations, PacketImage, first_layer};
pub use lease::Lease;
pub use observers::{Observers, TraceElement};
pub use output_groups::OutputGroups;
pub use outputs::{Destination, Next, Outputs};
pub use packet_filter::{AnyPacket, IpPatternFilter, PacketFilter};
pub use random::RandomNumbers;
pub use time_budget::TimeBudget;
pub use timers::Timers;
pub use trace::{
    TraceResult, TraceSession, TraceStep, TraceStepKind, TraceTable, TraceVisit, WorkerTrace,
};

use crate::account::KeptPackets;
use crate::fate::{DROP, MAX_OUTPUTS, NO_FRAME};
use crate::frames::{Frames, Shortage};
use crate::time::Time;
use castanet_packet::{MAX_BURST, Packet, Pool};
use std::slice;
use std::sync::Arc;

/// The name of the channel whose lines go to standard error.
pub const DEFAULT_CHANNEL: &str = "default";

/// Whether this is a name of the default channel.
pub fn is_default_channel(name: &str) -> bool {
    matches!(name, "" | DEFAULT_CHANNEL)
}

/// State of one worker that elements reach through a [`Cx`](crate::cx::Cx).
pub struct ExecState {
    /// The time, read once a turn.
    pub now: Time,
    /// Packets that a source is asked for by default.
    pub burst: usize,
    /// Emitted batches.
    pub outputs: Outputs,
    /// Fates of the packets of a burst, while an element decides.
    pub fates: Vec<u8>,
    /// Packets that left a fused chain before its end, in order.
    pub exits: Vec<ChainExit>,
    /// How many of its packets came to each branch of a fused chain.
    pub branch_counts: BranchCounts,
    /// By element: its packet counters on this worker.
    pub counters: Vec<Counters>,
    /// Those who look at packets: examples of drops, traces, captures.
    pub observers: Observers,
    /// By element: the packets that its account counts; empty where no account has limits of memory.
    pub kept: Vec<Option<KeptPackets>>,
    /// Packets that came into stores since accounts were charged last; `None` without accounts.
    pub store_inputs: Option<Vec<StoreInput>>,
    /// Timers of elements.
    pub timers: Timers,
    /// The earliest time at which a puller that found nothing is to try again.
    pub retry: Option<Time>,
    /// The output for which a source produces.
    pub requested_output: usize,
    /// Packets in the stores that the running element watches.
    pub watched: usize,
    /// Depth of pulls that wait for one another.
    pub pulls: usize,
    /// The two pools of the router.
    pub frames: Frames,
    /// Whether the source that runs takes its frames from the storage pool
    /// ([`Cx::grant`](crate::cx::Cx::grant)).
    pub from_storage: bool,
    /// Stop requests of elements that the driver has not been sent yet.
    pub stops: u32,
    /// Index of the worker.
    pub worker: usize,
    /// By element: whether this worker is its home.
    pub at_home: Vec<bool>,
    /// Bursts lost to a panic in an element.
    pub panics: u64,
    /// Panics that the driver has not been told of, by element.
    pub new_panics: Vec<(usize, u64)>,
    /// Lines that elements have written and the console has not been sent yet.
    pub chatter: String,
    /// Lines for other channels, in order.
    pub channel_lines: Vec<ChannelLine>,
    /// By element: `name :: Class`, for messages.
    pub labels: Arc<[String]>,
    /// By element: its outputs that lead to the same input, if there are such.
    pub output_groups: Arc<[Option<Box<OutputGroups>>]>,
    /// Random numbers.
    pub random: RandomNumbers,
    /// Cycles of each element, while they are counted.
    pub cycles: Option<Box<CycleAccounting>>,
}

/// A line for another channel than the default one.
#[derive(Clone, Debug)]
pub struct ChannelLine {
    /// The channel.
    pub channel: String,
    /// The line, with its end.
    pub line: String,
    /// Number of bytes of the default channel's lines ([`ExecState::chatter`]) that come before it.
    pub after: usize,
}

/// Packets that came into a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreInput {
    /// The store.
    pub element: usize,
    /// Number of packets.
    pub packets: u64,
    /// Packets that still find room.
    pub room: usize,
}

impl ExecState {
    /// Packets that a device receives at once, and that a task takes out of a queue, where a run takes `n`: two bursts, so
    /// that more packets share the worker's turn. Where packets go one at a time, and where accounts bound what a run
    /// takes, it is `n`.
    pub fn long_burst(&self, n: usize) -> usize {
        let is_bounded = n == 1 || self.store_inputs.is_some();
        if is_bounded { n } else { (2 * n).min(MAX_BURST) }
    }

    /// State for that many elements.
    pub fn new(elements: usize, frames: Frames, burst: usize, random: RandomNumbers) -> ExecState {
        ExecState {
            now: Time::default(),
            burst,
            outputs: Outputs::default(),
            fates: vec![0; MAX_BURST],
            exits: Vec::new(),
            branch_counts: BranchCounts::default(),
            counters: vec![Counters::default(); elements],
            observers: Observers::new(elements),
            kept: Vec::new(),
            store_inputs: None,
            timers: Timers::new(elements),
            retry: None,
            requested_output: 0,
            watched: 0,
            pulls: 0,
            frames,
            from_storage: false,
            stops: 0,
            worker: 0,
            at_home: vec![true; elements],
            panics: 0,
            new_panics: Vec::new(),
            chatter: String::new(),
            channel_lines: Vec::new(),
            labels: Arc::default(),
            output_groups: Arc::default(),
            random,
            cycles: None,
        }
    }

    /// The pool of new packets.
    #[inline]
    pub fn new_packets(&self) -> &Pool {
        if self.from_storage { &self.frames.storage } else { &self.frames.pool }
    }

    /// Counts `n` packets of element `me` for which there was no frame, and reports that once.
    #[cold]
    pub fn count_shortage(&mut self, me: usize, shortage: Shortage, n: u64) {
        self.count_drops(me, NO_FRAME, n);
        self.report_shortage(me, shortage);
    }

    /// Reports once that element `me` met a shortage.
    #[cold]
    pub fn report_shortage(&mut self, me: usize, shortage: Shortage) {
        let label = self.labels.get(me).map_or("", |label| label);
        if let Some(line) = self.frames.report(shortage, label) {
            self.chatter.push_str(&line);
            self.chatter.push('\n');
        }
    }

    /// Counts a panic in element `me`.
    #[cold]
    pub fn count_panic(&mut self, me: usize) {
        self.panics += 1;
        match self.new_panics.iter_mut().find(|(element, _)| *element == me) {
            Some((_, count)) => *count += 1,
            None => self.new_panics.push((me, 1)),
        }
    }

    /// Reports once that the account of element `me` has no memory.
    #[cold]
    pub fn report_no_memory(&mut self, me: usize) {
        let Some(Some(kept)) = self.kept.get(me) else { return };
        if let Some(line) = kept.memory().report() {
            let label = self.labels.get(me).map_or("", |label| label);
            self.chatter.push_str(&format!("{label}: {line}\n"));
        }
    }

    /// Whether the index of a fate is a reason to drop, and no output.
    #[inline]
    pub fn is_drop(&self, index: u8) -> bool {
        usize::from(index) >= MAX_OUTPUTS
    }

    /// Counts `n` packets that element `element` has dropped for a reason.
    #[inline]
    pub fn count_drops(&mut self, element: usize, reason: u8, n: u64) {
        self.counters[element].drops[usize::from(DROP - reason)] += n;
    }

    /// Drops packets: counts those that element `element` drops for a reason, and keeps the first as
    /// an example if one is wanted. The caller lets them go.
    #[inline]
    pub fn drop_packets(&mut self, element: usize, reason: u8, packets: &[Packet]) {
        self.count_drops(element, reason, packets.len() as u64);
        if self.observers.examples.wants(element, reason) {
            self.observers.show_drops(element, reason, packets, self.now);
        }
    }

    /// Shows a packet that element `element` drops, and that is counted elsewhere, to those who want
    /// it: as an example, in a trace or in a capture. Its fate is a reason to drop or an output that
    /// nothing is connected to.
    #[inline]
    pub fn keep_example(&mut self, element: usize, fate: u8, packet: &Packet) {
        if self.observers.examples.wants(element, fate) {
            self.observers.show_drops(element, fate, slice::from_ref(packet), self.now);
        }
    }
}
