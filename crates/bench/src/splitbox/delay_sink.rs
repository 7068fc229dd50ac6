//! `DelaySink`: counts packets, and the delays since their timestamps.

use castanet_element::prelude::*;

/// Drops packets, and counts them by the ticks of the time-stamp counter since their timestamps.
/// `TimestampDiff` reads the runtime's clock, which stands still while a packet goes through all parties.
///
/// ```text
/// in -> d :: DelaySink
/// ```
#[derive(Element)]
#[element(ports = "1/0")]
pub(crate) struct DelaySink;

/// Buckets of a power of two.
const STEPS: u32 = 16;

/// Counts by delay: 16 buckets for each power of two.
#[derive(Local)]
#[local(methods)]
pub(crate) struct DelaySinkState {
    clock: quanta::Clock,
    /// Packets.
    #[read]
    count: u64,
    counts: Vec<u64>,
}

impl Default for DelaySinkState {
    fn default() -> DelaySinkState {
        let counts = vec![0; 64 * STEPS as usize];
        DelaySinkState { clock: quanta::Clock::new(), count: 0, counts }
    }
}

/// The bucket of a delay.
fn bucket(delay: u64) -> usize {
    let high = delay.max(1).ilog2();
    let low = (delay >> high.saturating_sub(STEPS.ilog2())) as u32 & (STEPS - 1);
    (high * STEPS + low) as usize
}

/// The least delay of a bucket.
fn least(bucket: usize) -> u64 {
    let (high, low) = (bucket as u32 / STEPS, bucket as u64 % u64::from(STEPS));
    let shift = STEPS.ilog2();
    match high.checked_sub(shift) {
        Some(shift) => (u64::from(STEPS) + low) << shift,
        None => 1 << high,
    }
}

#[handlers]
impl DelaySinkState {
    /// The delay in ticks that half of the packets do not exceed.
    #[read]
    fn p50(&self) -> u64 {
        self.delay(500)
    }
    /// The delay in ticks that 99 % of the packets do not exceed.
    #[read]
    fn p99(&self) -> u64 {
        self.delay(990)
    }
    /// Forgets all delays.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.counts.fill(0);
        Ok(())
    }
}

impl DelaySinkState {
    /// The delay in ticks that so many of a thousand packets do not exceed.
    fn delay(&self, share: u64) -> u64 {
        let total: u64 = self.counts.iter().sum();
        let mut sum = 0;
        let at = self.counts.iter().position(|count| {
            sum += count;
            sum > 0 && sum * 1000 >= total * share
        });
        at.map_or(0, least)
    }
}

impl PerBatch for DelaySink {
    type On = on::Any;
    type Local = DelaySinkState;
    type Fate = Never;

    fn batch(&self, state: &mut DelaySinkState, _: usize, batch: Batch, cx: &mut Cx) {
        let now = state.clock.raw();
        for packet in batch.iter() {
            let delay = now.saturating_sub(packet.timestamp().unsigned_abs());
            if let Some(count) = state.counts.get_mut(bucket(delay)) {
                *count += 1;
            }
        }
        state.count += batch.len() as u64;
        cx.consume(batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut before = 0;
        for delay in (0..200_000).step_by(7).chain((1 << 40..1 << 41).step_by(1 << 33)) {
            let bucket = bucket(delay);
            assert!(bucket >= before || delay == 1 << 40);
            before = bucket;
            assert!(least(bucket) <= delay.max(1), "{delay}");
            assert!(delay < 16 || (delay - least(bucket)) * 16 <= delay, "{delay}");
        }
    }
}
