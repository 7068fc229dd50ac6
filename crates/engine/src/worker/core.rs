//! What one worker keeps beside its elements: counts, timers, buffers.

use super::calls::Call;
use super::visits::Visits;
use crate::element::{DROP, MAX_OUTPUTS, REASONS};
use crate::frames::{Frames, Short};
use crate::node::NO_FRAME;
use crate::node::fused::Leaver;
use crate::time::Time;
use castanet_packet::{Batch, Pool};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// Counts of one element on one worker. At every moment
/// `input + made = output + consumed + drops + open + what it keeps`.
#[derive(Clone, Default, Debug)]
pub struct Ledger {
    /// Packets that came in.
    pub input: u64,
    /// Packets that it made.
    pub made: u64,
    /// Packets that it gave to connected outputs.
    pub output: u64,
    /// Packets that ended here as they should.
    pub consumed: u64,
    /// Packets dropped, by reason.
    pub drops: [u64; REASONS],
    /// Packets for outputs that nothing is connected to, by output.
    pub open: Vec<u64>,
}

impl Ledger {
    /// All packets dropped or sent to an open output.
    pub fn lost(&self) -> u64 {
        self.drops.iter().sum::<u64>() + self.open.iter().sum::<u64>()
    }
    /// Packets that entered and have not left again.
    pub(crate) fn inside(&self) -> u64 {
        let left = self.output + self.consumed + self.lost();
        (self.input + self.made).saturating_sub(left)
    }
    /// Adds another worker's counts.
    pub fn add(&mut self, other: &Ledger) {
        self.input += other.input;
        self.made += other.made;
        self.output += other.output;
        self.consumed += other.consumed;
        self.drops.iter_mut().zip(&other.drops).for_each(|(a, b)| *a += b);
        self.open.resize(self.open.len().max(other.open.len()), 0);
        self.open.iter_mut().zip(&other.open).for_each(|(a, b)| *a += b);
    }
}

/// A batch on its way to an element.
pub(crate) struct Hop {
    pub(crate) node: usize,
    pub(crate) port: usize,
    pub(crate) depth: u32,
    pub(crate) batch: Batch,
    /// To this element alone, not to the pass that begins with it.
    pub(crate) alone: bool,
    /// A call of this element, to be made before its packets and those below go on.
    pub(crate) call: Option<Box<Call>>,
}

impl Hop {
    /// Packets on their way to an input.
    #[inline]
    pub(crate) fn new(node: usize, port: usize, depth: u32, batch: Batch) -> Hop {
        Hop { node, port, depth, batch, alone: false, call: None }
    }
}

/// What one worker keeps beside its elements.
pub struct Core {
    pub(crate) now: Time,
    pub(crate) burst: usize,
    pub(crate) emitted: Vec<(u8, Batch)>,
    pub(crate) mark: usize,
    pub(crate) fates: Vec<u8>,
    /// Packets that left a fused pass on the way, in order.
    pub(crate) leavers: Vec<Leaver>,
    /// The same packets by where they go, while they are sorted.
    pub(crate) leaving: Vec<(Leaver, Batch)>,
    pub(crate) ledger: Vec<Ledger>,
    pub(crate) stack: Vec<Hop>,
    pub(crate) hops: u32,
    pub(crate) timers: Timers,
    pub(crate) retry: Option<Time>,
    /// The output that a source is asked for.
    pub(crate) asked: usize,
    /// How many packets the stores keep that the element watches which is run.
    pub(crate) watched: usize,
    /// How many pulls are waiting for one another.
    pub(crate) pulls: usize,
    pub(crate) progress: u64,
    pub(crate) frames: Frames,
    /// Whether the source that is asked takes its frames from storage ([`crate::cx::Cx::grant`]).
    pub(crate) from_storage: bool,
    pub(crate) stops: u32,
    /// Calls among what was emitted, in order.
    pub(crate) calls: VecDeque<Box<Call>>,
    /// Calls of elements that were pulled, to be made when the pull is over.
    pub(crate) pulled: Vec<Hop>,
    /// How many packets a pull may bring.
    pub(crate) most: usize,
    pub(crate) worker: usize,
    /// By element: whether this worker is its home.
    pub(crate) at_home: Vec<bool>,
    pub(crate) panics: u64,
    pub(crate) chatter: String,
    /// By element: what messages call it.
    pub(crate) labels: Arc<[String]>,
    pub(crate) woken: Vec<super::TaskRef>,
    pub(crate) seed: u64,
    /// What elements cost, where somebody wants to know.
    pub(crate) visits: Option<Box<Visits>>,
}

impl Core {
    pub(crate) fn new(elements: usize, frames: Frames, burst: usize, seed: u64) -> Core {
        Core {
            now: Time::default(),
            burst,
            emitted: Vec::new(),
            mark: 0,
            fates: vec![0; castanet_packet::MAX_BURST],
            leavers: Vec::new(),
            leaving: Vec::new(),
            ledger: vec![Ledger::default(); elements],
            stack: Vec::new(),
            hops: 0,
            timers: Timers::new(elements),
            retry: None,
            asked: 0,
            watched: 0,
            pulls: 0,
            progress: 0,
            frames,
            from_storage: false,
            stops: 0,
            calls: VecDeque::new(),
            pulled: Vec::new(),
            most: usize::MAX,
            worker: 0,
            at_home: vec![true; elements],
            panics: 0,
            chatter: String::new(),
            labels: Arc::default(),
            woken: Vec::new(),
            seed: seed.max(1),
            visits: None,
        }
    }

    /// The pool of new packets.
    #[inline]
    pub(crate) fn new_packets(&self) -> &Pool {
        if self.from_storage { &self.frames.storage } else { &self.frames.pool }
    }

    /// Counts `n` packets of element `me` for which there was no frame, and says so once.
    #[cold]
    pub(crate) fn count_short(&mut self, me: usize, short: Short, n: u64) {
        self.count_drops(me, NO_FRAME, n);
        self.say_short(me, short);
    }

    /// Says once that element `me` met a shortage.
    #[cold]
    pub(crate) fn say_short(&mut self, me: usize, short: Short) {
        let label = self.labels.get(me).map_or("", |label| label);
        if let Some(line) = self.frames.report(short, label) {
            self.chatter.push_str(&line);
            self.chatter.push('\n');
        }
    }

    /// Emits a batch for an output, and leaves an empty one. It goes straight to where it is to lie:
    /// a pair made elsewhere first would be read in wider words than it was written, for which
    /// processors wait until all that was written before is in the cache, the burst's packets included.
    #[inline]
    pub(crate) fn emit(&mut self, output: u8, batch: &mut Batch) {
        self.emitted.push((output, Batch::new()));
        if let Some((_, emitted)) = self.emitted.last_mut() {
            std::mem::swap(emitted, batch);
        }
    }

    #[inline]
    pub(crate) fn is_drop(&self, index: u8) -> bool {
        usize::from(index) >= MAX_OUTPUTS
    }

    pub(crate) fn count_drops(&mut self, node: usize, reason: u8, n: u64) {
        self.ledger[node].drops[usize::from(DROP - reason)] += n;
    }

    /// xorshift64*: fast, and good enough for sampling and random switches.
    pub(crate) fn random(&mut self) -> u64 {
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// At most one wish a holder: "wake me at".
pub(crate) struct Timers {
    at: Vec<Option<Time>>,
    heap: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Timers {
    pub(crate) fn new(holders: usize) -> Timers {
        Timers { at: vec![None; holders], heap: BinaryHeap::new() }
    }

    pub(crate) fn set(&mut self, holder: usize, time: Time) {
        if self.at[holder] != Some(time) {
            self.at[holder] = Some(time);
            self.heap.push(Reverse((time, holder)));
        }
    }

    pub(crate) fn cancel(&mut self, holder: usize) {
        self.at[holder] = None;
    }

    /// What `holder` has asked for.
    pub(crate) fn of(&self, holder: usize) -> Option<Time> {
        self.at[holder]
    }

    /// Takes a wish back; for when it was.
    pub(crate) fn take(&mut self, holder: usize) -> Option<Time> {
        self.at[holder].take()
    }

    /// The time of the earliest wish that still stands.
    pub(crate) fn next(&mut self) -> Option<Time> {
        while let Some(&Reverse((time, holder))) = self.heap.peek() {
            if self.at[holder] == Some(time) {
                return Some(time);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes one wish that is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<usize> {
        if self.next()? > now {
            return None;
        }
        let Reverse((_, holder)) = self.heap.pop()?;
        self.at[holder] = None;
        Some(holder)
    }
}
