//! `AverageCounter`: how many a second, from first to last.

use castanet_engine::prelude::*;
use castanet_kit::ewma::Average;

/// Counts packets and bytes, and averages them from the first packet to the last.
///
/// ```click
/// in -> c :: AverageCounter -> out
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// + 2s
/// > in  1.0.0.1 > 2.0.0.2 udp len 40
/// < out 1.0.0.1 > 2.0.0.2 udp len 40
/// = c.count 2
/// = c.byte_count 100
/// = c.bit_count 800
/// = c.link_count 1184
/// = c.time 2
/// = c.rate 1
/// = c.byte_rate 50
/// = c.bit_rate 400
/// = c.link_rate 592
/// ! c.reset
/// = c.count 0
/// ```
///
/// ```click
/// in -> c :: AverageCounter(IGNORE 1, LINK_FCS false, MAX 10) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// + 2s
/// > in  1.0.0.1 > 2.0.0.2 udp len 40
/// < out 1.0.0.1 > 2.0.0.2 udp len 40
/// + 10s
/// > in  1.0.0.1 > 2.0.0.2 udp len 40
/// < out 1.0.0.1 > 2.0.0.2 udp len 40
/// = c.count 1
/// = c.rate 1
/// = c.link_count 480
/// ! c.reset_now
/// = c.byte_count 0
/// ```
#[derive(Element)]
#[element(room = "measure", alias = "AverageCounterMP", alias = "AverageCounterIMP")]
pub struct AverageCounter {
    /// Seconds after the first packet in which nothing is counted.
    #[arg(default = 0.0)]
    ignore: f64,
    /// Whether a frame on the link has four bytes more, its check sequence.
    #[arg(default = true)]
    link_fcs: bool,
    /// Seconds after the first packet when counting ends; 0 is never.
    #[arg(keyword, default = 0)]
    max: u32,
}

/// What was seen since the last reset.
#[derive(Default, Local)]
#[local(methods)]
#[write(reset, reset_now)]
pub struct Seen {
    average: Average,
    ignore: u64,
    fcs: bool,
}

#[handlers]
impl Seen {
    /// Packets.
    #[read]
    fn count(&self) -> u64 {
        self.average.packets
    }
    /// Bytes.
    #[read]
    fn byte_count(&self) -> u64 {
        self.average.bytes
    }
    /// Bits.
    #[read]
    fn bit_count(&self) -> u64 {
        8 * self.average.bytes
    }
    /// Bits on an Ethernet link, preambles and gaps included.
    #[read]
    fn link_count(&self) -> u64 {
        self.average.link_bits(self.fcs)
    }
    /// Packets a second.
    #[read]
    fn rate(&self) -> f64 {
        self.per_second(self.count())
    }
    /// Bytes a second.
    #[read]
    fn byte_rate(&self) -> f64 {
        self.per_second(self.byte_count())
    }
    /// Bits a second.
    #[read]
    fn bit_rate(&self) -> f64 {
        self.per_second(self.bit_count())
    }
    /// Bits a second on an Ethernet link.
    #[read]
    fn link_rate(&self) -> f64 {
        self.per_second(self.link_count())
    }
    /// Seconds over which was counted.
    #[read]
    fn time(&self) -> f64 {
        self.average.seconds(self.ignore)
    }
    fn per_second(&self, count: u64) -> f64 {
        self.average.per_second(count, self.ignore)
    }
}

const SECOND: u64 = 1_000_000_000;

impl PerBatch for AverageCounter {
    type On = on::Any;
    type Local = Seen;
    type Fate = ();
    // From the first packet on any worker to the last on any.
    const SHARED: bool = true;

    fn batch(&self, seen: &mut Seen, _: usize, batch: Batch, cx: &mut Cx) {
        seen.ignore = (self.ignore * SECOND as f64) as u64;
        seen.fcs = self.link_fcs;
        let bytes = batch.iter().map(|packet| packet.len() as u64).sum();
        let max = (self.max > 0).then(|| u64::from(self.max) * SECOND);
        let (packets, now) = (batch.len() as u64, cx.now().0.unsigned_abs());
        seen.average.update(packets, bytes, now, seen.ignore, max);
        cx.emit_batch((), batch);
    }
}
