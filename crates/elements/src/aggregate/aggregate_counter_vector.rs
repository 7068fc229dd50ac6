//! `AggregateCounterVector`: counts by aggregate in a table of fixed size.

use super::packet_weight::PacketWeightArgs;
use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Counts packets or bytes by the lower bits of their aggregate annotation.
///
/// Each worker has a table of its own, with an entry for every value of the bits in MASK;
/// a read adds up the tables of the workers.
///
/// ```click
/// in -> Paint(7, 20) -> c :: AggregateCounterVector(0xf) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// = c.count 2
/// = c.nagg 1
/// = c.dump 7 2
/// ! c.active false
/// = c.active false
/// > in  1.0.0.3 > 2.0.0.2 udp
/// < out 1.0.0.3 > 2.0.0.2 udp
/// = c.count 2
/// ! c.clear
/// = c.count 0
/// ! c.stop
/// ```
#[derive(Clone, Element)]
#[element(room = "aggregate", args = AggregateCounterVectorArgs)]
pub struct AggregateCounterVector {
    mask: u32,
    weight: PacketWeightArgs,
    /// Whether packets are counted.
    #[arg(live)]
    active: bool,
}

#[derive(Args)]
pub struct AggregateCounterVectorArgs {
    /// The bits of the annotation that select the entry, the lower ones.
    #[arg(range = ..=MOST, syntax = "a number up to 268435455")]
    mask: u32,
    /// An argument of FastClick without effect.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    mark: bool,
    /// The weight of each packet.
    #[arg(flatten)]
    weight: PacketWeightArgs,
}

/// The largest mask.
const MOST: u32 = (1 << 28) - 1;

impl Build for AggregateCounterVector {
    type Args = AggregateCounterVectorArgs;

    fn build(args: AggregateCounterVectorArgs, setup: &Setup) -> Result<Self, ArgError> {
        let counts = (u64::from(args.mask) + 1) * setup.workers.len().max(1) as u64;
        castanet_element::args::affordable(counts, size_of::<u64>(), "counts")
            .map_err(|error| error.at("MASK"))?;
        Ok(AggregateCounterVector { mask: args.mask, weight: args.weight, active: true })
    }
}

/// A worker's table of counts.
#[derive(Default, Local)]
#[local(methods)]
pub struct AggregateCounterVectorState {
    #[portable]
    counts: Vec<u64>,
}

#[handlers]
impl AggregateCounterVectorState {
    /// Total count.
    #[read]
    fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
    /// Number of aggregates that were counted.
    #[read]
    fn nagg(&self) -> Value {
        self.summarize(|counts| counts.iter().filter(|count| **count > 0).count().to_string())
    }
    /// Aggregates and their counts, one per line.
    #[read]
    fn dump(&self) -> Value {
        self.summarize(|counts| {
            let nonzero = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            nonzero.map(|(aggregate, count)| format!("{aggregate} {count}\n")).collect()
        })
    }
    /// Resets all counts to zero.
    #[write]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.counts.clear();
        Ok(())
    }
    /// Asks the router to stop.
    #[write(stop, stops)]
    fn stop(&mut self, _: &str) -> Result<(), ArgError> {
        Ok(())
    }
    /// Applies a function to the sum of all workers' counts.
    fn summarize(&self, format: fn(&[u64]) -> String) -> Value {
        castanet_element::handler::Sums::new(self.counts.clone(), format).into()
    }
}

impl PerPacket for AggregateCounterVector {
    type On = on::Any;
    type Local = AggregateCounterVectorState;
    type Fate = ();

    fn begin_burst(&self, state: &mut AggregateCounterVectorState, _: Time) {
        state.counts.resize(self.mask as usize + 1, 0);
    }

    #[inline]
    fn packet(&self, state: &mut AggregateCounterVectorState, packet: &mut Packet) {
        let at = packet.anno_u32(anno::AGGREGATE) & self.mask;
        if self.active {
            state.counts[at as usize] += self.weight.of(packet);
        }
    }
}
