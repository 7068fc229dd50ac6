//! `AverageCounter`: average rates from the first packet to the last.

use castanet_element::prelude::*;
use castanet_kit::ewma::Average;

/// Counts packets and bytes, with average rates from the first packet to the last.
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
///
/// With THRESHOLD, what comes before the rate is so high for a second does not count:
///
/// ```click
/// in -> c :: AverageCounter(THRESHOLD 1) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// = c.count 3
/// + 1500ms
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// ~ c :: AverageCounter: starting compute (rate 2 pps)
/// = c.count 0
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// = c.count 1
/// ```
#[derive(Element)]
#[element(room = "measure", alias = "AverageCounterMP", alias = "AverageCounterIMP")]
pub struct AverageCounter {
    /// Seconds after the first packet in which packets are not counted.
    #[arg(default = 0.0)]
    ignore: f64,
    /// Whether to add the 4 bytes of the frame check sequence to a frame on the link.
    #[arg(default = true)]
    link_fcs: bool,
    /// Seconds after the first packet at which counting ends; 0 for never.
    #[arg(keyword, default = 0)]
    max: u32,
    /// Rate in packets per second from which on counting begins; 0 to begin at once.
    #[arg(keyword, default = 0)]
    threshold: u32,
}

/// The counts since the last reset, of all workers.
#[derive(Default, Local)]
#[local(methods)]
#[portable(average)]
pub struct AverageCounterState {
    pub(super) average: Average,
    pub(super) ignore: u64,
    pub(super) fcs: bool,
    /// Whether the rate has been above the threshold.
    is_above: bool,
}

#[handlers]
impl AverageCounterState {
    /// Number of packets.
    #[read]
    fn count(&self) -> u64 {
        self.average.packets
    }
    /// Number of bytes.
    #[read]
    fn byte_count(&self) -> u64 {
        self.average.bytes
    }
    /// Number of bits.
    #[read]
    fn bit_count(&self) -> u64 {
        8 * self.average.bytes
    }
    /// Number of bits on an Ethernet link, with preambles and inter-frame gaps.
    #[read]
    fn link_count(&self) -> u64 {
        self.average.link_bits(self.fcs)
    }
    /// Packets per second.
    #[read]
    fn rate(&self) -> f64 {
        self.per_second(self.count())
    }
    /// Bytes per second.
    #[read]
    fn byte_rate(&self) -> f64 {
        self.per_second(self.byte_count())
    }
    /// Bits per second.
    #[read]
    fn bit_rate(&self) -> f64 {
        self.per_second(self.bit_count())
    }
    /// Bits per second on an Ethernet link.
    #[read]
    fn link_rate(&self) -> f64 {
        self.per_second(self.link_count())
    }
    /// Seconds from the start of counting to the last packet.
    #[read]
    fn time(&self) -> f64 {
        self.average.seconds(self.ignore)
    }
    /// Counts from 0 again.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.average = Average::default();
        Ok(())
    }
    /// Counts from 0 again.
    #[write]
    fn reset_now(&mut self, text: &str) -> Result<(), ArgError> {
        self.reset(text)
    }
    /// The average rate, once a second has passed.
    fn settled_rate(&self) -> Option<u64> {
        let (first, last) = self.average.span()?;
        let time = last.saturating_sub(first);
        (time > SECOND).then(|| self.average.packets.saturating_mul(SECOND) / time)
    }
    fn per_second(&self, count: u64) -> f64 {
        self.average.per_second(count, self.ignore)
    }
}

const SECOND: u64 = 1_000_000_000;

impl PerBatch for AverageCounter {
    type On = on::Any;
    type Local = AverageCounterState;
    type Fate = ();
    // From the first packet on any worker to the last on any.
    const SHARED: bool = true;
    const COUNTS_ONLY: bool = true;

    fn batch(&self, state: &mut AverageCounterState, _: usize, batch: Batch, cx: &mut Cx) {
        self.count(state, batch.totals(), cx);
        cx.emit_batch((), batch);
    }

    fn count(&self, state: &mut AverageCounterState, totals: PacketTotals, cx: &mut Cx) {
        state.ignore = (self.ignore * SECOND as f64) as u64;
        state.fcs = self.link_fcs;
        let max = (self.max > 0).then(|| u64::from(self.max) * SECOND);
        let (PacketTotals { packets, bytes }, now) = (totals, cx.now().0.unsigned_abs());
        state.average.update(packets, bytes, now, state.ignore, max);
        if self.threshold > 0
            && !state.is_above
            && let Some(rate) = state.settled_rate().filter(|&rate| rate > self.threshold.into())
        {
            cx.report(&format!("starting compute (rate {rate} pps)"));
            (state.average, state.is_above) = (Average::default(), true);
        }
    }
}
