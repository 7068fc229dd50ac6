//! `RED`: drops before the queue is full.

use castanet_engine::prelude::*;
use castanet_kit::red::{Curve, MAX_THRESH, Red};

/// Drops packets at random, the more often the longer the queues are on average.
///
/// It watches the nearest queues downstream, or upstream where it is pulled,
/// unless QUEUES names others. While they keep MIN_THRESH packets on average
/// nothing is dropped; at MAX_THRESH the probability is MAX_P, and it goes on
/// rising, to 1 at twice MAX_THRESH (gentle RED). Each packet moves the average
/// by `2^-STABILITY` of its distance from the length that it finds.
///
/// ```click
/// in -> r :: RED(1, 2, 1, STABILITY 0) -> q :: Queue -> u :: Unqueue(ACTIVE false) -> out
/// r[1] -> early
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > in 1.0.0.3 > 2.0.0.2 udp
/// = q.length 3
/// > in 1.0.0.4 > 2.0.0.2 udp
/// < early 1.0.0.4 > 2.0.0.2 udp
/// = r.drops 1
/// = r.avg_queue_size 3
/// = r.queues q
/// = r.stats 3 current queue\n3 avg queue\n1 drops
/// = r.min_thresh 1
/// = r.max_thresh 2
/// = r.max_p 1
/// ! r.max_thresh 100
/// ! r.min_thresh 90
/// ! r.max_p 0.5
/// > in 1.0.0.5 > 2.0.0.2 udp
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.3 > 2.0.0.2 udp
/// < out 1.0.0.5 > 2.0.0.2 udp
/// ```
///
/// ```click
/// in -> q :: Queue -> r :: RED(0, 0, 1, QUEUES q, STABILITY 0) -> u :: Unqueue(ACTIVE false) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// ! u.active true
/// < out 1.0.0.2 > 2.0.0.2 udp
/// = r.drops 1
/// ```
#[derive(Clone, Element)]
#[element(room = "queue", args = Wishes, methods)]
pub struct RED {
    /// Up to this average length nothing is dropped.
    #[arg(live, range = ..=MAX_THRESH)]
    min_thresh: u32,
    /// At this average length the probability is MAX_P.
    #[arg(live, range = ..=MAX_THRESH)]
    max_thresh: u32,
    /// A probability.
    #[arg(live, range = 0.0..=1.0)]
    max_p: f64,
    stability: u32,
    /// Their names, one a line.
    queues: String,
}

#[derive(Args)]
pub struct Wishes {
    /// Up to this average length nothing is dropped.
    #[arg(range = ..=MAX_THRESH)]
    min_thresh: u32,
    /// At this average length the probability is MAX_P.
    #[arg(range = ..=MAX_THRESH)]
    max_thresh: u32,
    /// A probability.
    #[arg(range = 0.0..=1.0)]
    max_p: f64,
    /// The queues to watch; the nearest ones if there are none.
    #[arg(keyword, default = Vec::new())]
    queues: Vec<String>,
    /// How slowly the average follows, as the exponent of 1/2.
    #[arg(keyword, default = 4, range = 0..=16)]
    stability: u32,
}

impl RED {
    /// The names of the queues to watch.
    pub(super) fn queues(config: &str, names: &Names) -> Option<Vec<String>> {
        Some(Wishes::parse(config, names).ok()?.queues)
    }
}

impl Build for RED {
    type Args = Wishes;

    fn build(args: Wishes, setup: &Setup) -> Result<Self, ArgError> {
        let Wishes { min_thresh, max_thresh, max_p, stability, .. } = args;
        if min_thresh > max_thresh {
            return Err(ArgError::new("MIN_THRESH greater than MAX_THRESH"));
        }
        let queues = setup.stores.iter().fold(String::new(), |all, name| all + name + "\n");
        Ok(RED { min_thresh, max_thresh, max_p, stability, queues })
    }
}

#[handlers]
impl RED {
    /// The queues that it watches, one a line.
    #[read(queues)]
    fn watched(&self) -> String {
        self.queues.clone()
    }
}

/// What it has seen.
#[derive(Default, Local)]
#[local(methods)]
pub struct Seen {
    red: Red,
    /// The length that the last packet found.
    length: usize,
    /// Packets dropped.
    #[read]
    drops: u64,
}

#[handlers]
impl Seen {
    /// The average length.
    #[read]
    fn avg_queue_size(&self) -> String {
        self.red.average_text()
    }
    /// The length that the last packet found, the average, and the drops.
    #[read]
    fn stats(&self) -> String {
        let (length, average, drops) = (self.length, self.red.average_text(), self.drops);
        format!("{length} current queue\n{average} avg queue\n{drops} drops\n")
    }
}

#[derive(Fate)]
pub enum Way {
    /// Packets that pass.
    Passed,
    /// Packets that are dropped early.
    #[optional]
    Early,
}

impl PerBatch for RED {
    type On = on::Any;
    type Local = Seen;
    type Fate = Way;
    const SHARED: bool = true;

    fn batch(&self, seen: &mut Seen, _: usize, batch: Batch, cx: &mut Cx) {
        let curve = Curve { min: self.min_thresh, max: self.max_thresh, max_p: self.max_p };
        let (now, pulled) = (cx.now().nanos(), cx.pulled().is_some());
        // As if packets came one by one: those still to be pulled are in the
        // queue yet, those that have passed are in it already.
        seen.length = cx.watched() + if pulled { batch.len() } else { 0 };
        for packet in batch {
            seen.length -= usize::from(pulled);
            seen.red.observe(seen.length, self.stability, now);
            if seen.red.drops(&curve, || cx.random()) {
                seen.drops += 1;
                cx.emit(Way::Early, packet);
            } else {
                seen.length += usize::from(!pulled);
                cx.emit(Way::Passed, packet);
            }
        }
    }
}
