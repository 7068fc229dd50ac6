//! `RED`: drops packets at random before the queue is full.

use super::red_state::REDState;
use castanet_element::args::within;
use castanet_element::prelude::*;
use castanet_kit::red::{Curve, MAX_THRESH};

/// Drops packets at random by the average queue length: random early detection (RED).
///
/// It watches the nearest queues downstream, or upstream if it is pulled, unless QUEUES names
/// others. While they hold MIN_THRESH packets or fewer on average, no packet is dropped. At
/// MAX_THRESH the probability of a drop is MAX_P; it rises further, to 1 at twice MAX_THRESH, if
/// GENTLE, else every packet beyond MAX_THRESH is dropped. Each packet moves the average by `2^-STABILITY` of the difference between the
/// current length and the average.
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
/// = r.config 90, 100, 0.5, QUEUES q, STABILITY 0
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
///
/// ```click
/// in -> r :: RED(0, 1, 0, STABILITY 0, GENTLE false) -> q :: Queue -> u :: Unqueue(ACTIVE false) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// > in 1.0.0.3 > 2.0.0.2 udp
/// = r.drops 1
/// = r.config 0, 1, 0, QUEUES q, STABILITY 0, GENTLE false
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "queue", args = REDArgs, methods)]
pub struct RED {
    /// Average queue length, in packets, up to which no packet is dropped.
    #[read]
    min_thresh: u32,
    /// Average queue length, in packets, at which the probability of a drop is MAX_P.
    #[read]
    max_thresh: u32,
    /// Probability of a drop at MAX_THRESH, from 0 to 1.
    #[arg(live, range = 0.0..=1.0)]
    max_p: f64,
    stability: u32,
    gentle: bool,
    /// Names of the watched queues, one per line.
    queues: String,
}

#[derive(Args)]
pub struct REDArgs {
    /// Average queue length, in packets, up to which no packet is dropped.
    #[arg(range = ..=MAX_THRESH, syntax = "a number up to 2097151")]
    min_thresh: u32,
    /// Average queue length, in packets, at which the probability of a drop is MAX_P.
    #[arg(range = ..=MAX_THRESH, syntax = "a number up to 2097151")]
    max_thresh: u32,
    /// Probability of a drop at MAX_THRESH, from 0 to 1.
    #[arg(range = 0.0..=1.0)]
    max_p: f64,
    /// The queues to watch; the nearest ones if it is empty.
    #[arg(keyword, default = Vec::new())]
    queues: Vec<String>,
    /// The weight of one packet in the average is 2 to the power of minus this number.
    #[arg(keyword, default = 4, range = 0..=16)]
    stability: u32,
    /// Whether the probability rises gradually beyond MAX_THRESH.
    #[arg(keyword, default = true)]
    gentle: bool,
}

impl RED {
    /// The names of the queues to watch.
    pub(super) fn queues(config: &str, names: &Names) -> Option<Vec<String>> {
        Some(REDArgs::parse(config, names).ok()?.queues)
    }

    /// The element itself if its thresholds are in order.
    fn checked(self) -> Result<Self, ArgError> {
        if self.min_thresh > self.max_thresh {
            let error = ArgError::new("MIN_THRESH greater than MAX_THRESH");
            return Err(error.click("MIN_THRESH must be <= MAX_THRESH"));
        }
        Ok(self)
    }
}

/// Parses a threshold that a handler writes, as its argument is parsed.
fn threshold(text: &str, names: &Names) -> Result<u32, ArgError> {
    within(text, names, &(..=MAX_THRESH), "a number up to 2097151")
}

impl Build for RED {
    type Args = REDArgs;

    fn build(args: REDArgs, setup: &Setup) -> Result<Self, ArgError> {
        let REDArgs { min_thresh, max_thresh, max_p, stability, gentle, .. } = args;
        let queues = setup.stores.iter().fold(String::new(), |all, name| all + name + "\n");
        RED { min_thresh, max_thresh, max_p, stability, gentle, queues }.checked()
    }
}

#[handlers]
impl RED {
    /// Names of the watched queues, one per line.
    #[read(queues)]
    fn queue_names(&self) -> String {
        self.queues.clone()
    }
    /// The arguments as they are in effect.
    #[read]
    fn config(&self) -> String {
        let RED { min_thresh, max_thresh, max_p, stability, .. } = self;
        let queues = self.queues.lines().fold("QUEUES".to_owned(), |all, name| all + " " + name);
        let gentle = if self.gentle { "" } else { ", GENTLE false" };
        format!("{min_thresh}, {max_thresh}, {max_p}, {queues}, STABILITY {stability}{gentle}")
    }
    /// Sets the average queue length up to which no packet is dropped.
    #[write(min_thresh)]
    fn set_min_thresh(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        RED { min_thresh: threshold(text, names)?, ..self.clone() }.checked()
    }
    /// Sets the average queue length at which the probability of a drop is MAX_P.
    #[write(max_thresh)]
    fn set_max_thresh(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        RED { max_thresh: threshold(text, names)?, ..self.clone() }.checked()
    }
}

#[derive(Fate)]
pub enum REDExit {
    /// Packets that are not dropped.
    Passed,
    /// Packets that are dropped early.
    #[optional]
    Early,
}

impl PerBatch for RED {
    type On = on::Any;
    type Local = REDState;
    type Fate = REDExit;
    const SHARED: bool = true;

    fn batch(&self, state: &mut REDState, _: usize, batch: Batch, cx: &mut Cx) {
        let (min, max, max_p) = (self.min_thresh, self.max_thresh, self.max_p);
        let curve = Curve { min, max, max_p, gentle: self.gentle };
        let (now, pulled) = (cx.now().nanos(), cx.pulling_output().is_some());
        // The lengths are those that packets would find if they came one by one: packets still to
        // be pulled are in the queue, and so are packets that this burst has already pushed.
        state.length = cx.watched() + if pulled { batch.len() } else { 0 };
        for packet in batch {
            state.length -= usize::from(pulled);
            state.red.observe(state.length, self.stability, now);
            if state.red.drops(&curve, || u64::from(cx.random_numbers().number() >> 5)) {
                state.drops += 1;
                cx.emit(REDExit::Early, packet);
            } else {
                state.length += usize::from(!pulled);
                cx.emit(REDExit::Passed, packet);
            }
        }
    }
}
