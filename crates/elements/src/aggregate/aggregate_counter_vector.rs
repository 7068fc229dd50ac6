//! `AggregateCounterVector`: how much of each aggregate, in a table of fixed size.

use super::amount::Amount;
use castanet_engine::packet::anno;
use castanet_engine::prelude::*;

/// Counts packets or bytes by the lower bits of their aggregate annotation.
///
/// Each worker has a table of its own, with a place for every value that MASK leaves;
/// a read adds them up.
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
#[element(room = "aggregate", args = Table)]
pub struct AggregateCounterVector {
    mask: u32,
    amount: Amount,
    /// Whether anything is counted.
    #[arg(live)]
    active: bool,
}

#[derive(Args)]
pub struct Table {
    /// The bits of the annotation that count, the lower ones.
    #[arg(range = ..=MOST)]
    mask: u32,
    /// Whether devices mark packets with an epoch, in FastClick; here there are none.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    mark: bool,
    /// How much each packet counts.
    #[arg(flatten)]
    amount: Amount,
}

/// The largest table.
const MOST: u32 = (1 << 28) - 1;

impl Build for AggregateCounterVector {
    type Args = Table;

    fn build(args: Table, setup: &Setup) -> Result<Self, ArgError> {
        let counts = (u64::from(args.mask) + 1) * setup.workers.len().max(1) as u64;
        castanet_engine::args::affordable(counts, size_of::<u64>(), "counts")
            .map_err(|error| error.at("MASK"))?;
        Ok(AggregateCounterVector { mask: args.mask, amount: args.amount, active: true })
    }
}

/// A worker's table.
#[derive(Default, Local)]
#[local(methods)]
pub struct Counts {
    counts: Vec<u64>,
}

#[handlers]
impl Counts {
    /// What was counted in all.
    #[read]
    fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
    /// How many aggregates were counted.
    #[read]
    fn nagg(&self) -> Value {
        self.say(|counts| counts.iter().filter(|count| **count > 0).count().to_string())
    }
    /// Aggregates and their counts, one a line.
    #[read]
    fn dump(&self) -> Value {
        self.say(|counts| {
            let seen = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            seen.map(|(aggregate, count)| format!("{aggregate} {count}\n")).collect()
        })
    }
    /// Forgets all counts.
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
    fn say(&self, say: fn(&[u64]) -> String) -> Value {
        castanet_engine::class::Sums::new(self.counts.clone(), say).into()
    }
}

impl PerPacket for AggregateCounterVector {
    type On = on::Any;
    type Local = Counts;
    type Fate = ();

    fn burst(&self, counts: &mut Counts, _: Time) {
        counts.counts.resize(self.mask as usize + 1, 0);
    }

    #[inline]
    fn packet(&self, counts: &mut Counts, packet: &mut Packet) {
        let at = packet.anno_u32(anno::AGGREGATE) & self.mask;
        if self.active {
            counts.counts[at as usize] += self.amount.of(packet);
        }
    }
}
