//! Exponentially weighted moving averages and rates in fixed point, as in Click's counters.

use crate::units::fixed_point;

/// An average in which each observation has weight `1 / 2^SHIFT`, with `SCALE` fraction bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectEwma<const SHIFT: u32 = 4, const SCALE: u32 = 10> {
    scaled: u64,
}

impl<const SHIFT: u32, const SCALE: u32> DirectEwma<SHIFT, SCALE> {
    /// Rounds the shift by `SHIFT` to nearest.
    const COMPENSATION: i128 = 1 << (SHIFT - 1);

    /// The average, with `SCALE` fraction bits.
    pub fn scaled(&self) -> u64 {
        self.scaled
    }

    /// The average, rounded.
    pub fn average(&self) -> u64 {
        (self.scaled + (1 << SCALE >> 1)) >> SCALE
    }

    /// Resets the average to zero.
    pub fn clear(&mut self) {
        self.scaled = 0;
    }

    /// Adds an observation.
    #[inline]
    pub fn update(&mut self, value: u64) {
        let target = (i128::from(value) << SCALE) + Self::COMPENSATION;
        let moved = i128::from(self.scaled) + ((target - i128::from(self.scaled)) >> SHIFT);
        self.scaled = moved.clamp(0, i128::from(u64::MAX)) as u64;
    }

    /// Adds `n` equal observations; a hundred or more set the average to the value.
    pub fn update_n(&mut self, value: u64, n: u64) {
        if n >= 100 {
            self.scaled = u64::try_from(u128::from(value) << SCALE).unwrap_or(u64::MAX);
        } else {
            (0..n).for_each(|_| self.update(value));
        }
    }

    /// The average in decimal.
    pub fn text(&self) -> String {
        fixed_point(self.scaled, SCALE)
    }
}

/// Epochs per second: Click's user-level jiffies.
const EPOCHS: u64 = 1000;
/// An epoch, in nanoseconds.
const EPOCH: u64 = 1_000_000;

/// Events per second: a moving average of the events in each millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateEwma<const SHIFT: u32 = 4, const SCALE: u32 = 10> {
    epoch: Option<u64>,
    current: u64,
    average: DirectEwma<SHIFT, SCALE>,
}

impl<const SHIFT: u32, const SCALE: u32> RateEwma<SHIFT, SCALE> {
    /// Counts events at a time in nanoseconds. Zero events only advance the time.
    #[inline]
    pub fn update(&mut self, events: u64, now: u64) {
        let epoch = now / EPOCH;
        match self.epoch {
            Some(last) if epoch > last => {
                self.average.update(self.current);
                self.average.update_n(0, epoch - last - 1);
                (self.epoch, self.current) = (Some(epoch), events);
            }
            last => {
                self.epoch = last.or(Some(epoch));
                self.current += events;
            }
        }
    }

    /// Events per second at the last update, truncated.
    pub fn rate(&self) -> u64 {
        ((u128::from(self.average.scaled()) * u128::from(EPOCHS)) >> SCALE) as u64
    }

    /// Events per second at the last update, as printed by the `rate` handler of a `Counter`.
    pub fn text(&self) -> String {
        fixed_point(self.average.scaled().saturating_mul(EPOCHS), SCALE)
    }

    /// Resets the rate to zero.
    pub fn clear(&mut self) {
        *self = RateEwma::default();
    }
}

/// Packets and bytes over the time between the first and the last packet, for `AverageCounter`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Average {
    /// Packets since `ignore` nanoseconds after the first.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The times of the first and the last packet.
    span: Option<(u64, u64)>,
}

impl Average {
    /// Counts packets of `bytes` bytes in all at `now`. Packets in the first `ignore` nanoseconds
    /// only start the clock; packets after `max` nanoseconds are not counted.
    #[inline]
    pub fn update(&mut self, packets: u64, bytes: u64, now: u64, ignore: u64, max: Option<u64>) {
        let (first, last) = *self.span.get_or_insert((now, now));
        let elapsed = now.saturating_sub(first);
        if max.is_some_and(|max| elapsed >= max) {
            return;
        }
        self.span = Some((first, last.max(now)));
        if elapsed >= ignore {
            self.packets += packets;
            self.bytes += bytes;
        }
    }

    /// The times of the first and the last packet.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// Lets the measured time begin and end with other packets, too.
    pub fn extend_span(&mut self, (first, last): (u64, u64)) {
        let (own_first, own_last) = self.span.unwrap_or((first, last));
        self.span = Some((own_first.min(first), own_last.max(last).max(first)));
    }

    /// The bits on an Ethernet link, with preamble and gap of each packet, and a frame check
    /// sequence if `fcs`.
    pub fn link_bits(&self, fcs: bool) -> u64 {
        8 * (self.bytes + self.packets * if fcs { 24 } else { 20 })
    }

    /// The measured time in seconds, at least a millisecond.
    pub fn seconds(&self, ignore: u64) -> f64 {
        let span = self.span.map_or(0, |(first, last)| last - first);
        (span.saturating_sub(ignore) / EPOCH).max(1) as f64 / EPOCHS as f64
    }

    /// `count` per second of the measured time.
    pub fn per_second(&self, count: u64, ignore: u64) -> f64 {
        count as f64 / self.seconds(ignore)
    }

    /// Adds the counts of another worker.
    pub fn merge(&mut self, other: &Average) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.span = match (self.span, other.span) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (a, b) => a.or(b),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_approach_their_observations() {
        let mut ewma: DirectEwma = DirectEwma::default();
        ewma.update(16);
        assert_eq!(ewma.scaled(), 1024, "a sixteenth");
        (0..200).for_each(|_| ewma.update(16));
        // Rounding stops it seven 1024ths short, as in Click.
        assert_eq!((ewma.average(), ewma.text().as_str()), (16, "15.993"));
        ewma.update_n(0, 100);
        assert_eq!(ewma.scaled(), 0);
        let (mut a, mut b): (DirectEwma, DirectEwma) = Default::default();
        a.update_n(77, 9);
        (0..9).for_each(|_| b.update(77));
        assert_eq!(a, b);
    }

    #[test]
    fn rates_count_events_a_second() {
        let mut rate: RateEwma = RateEwma::default();
        for ms in 0..500 {
            rate.update(3, ms * EPOCH);
        }
        rate.update(0, 500 * EPOCH);
        assert_eq!((rate.rate(), rate.text().as_str()), (2993, "2993.164"));
        rate.update(0, 700 * EPOCH);
        assert_eq!(rate.text(), "0");
    }

    #[test]
    fn plain_averages_ignore_the_start() {
        let mut average = Average::default();
        for ms in 0..=2000 {
            average.update(1, 60, ms * EPOCH, 1000 * EPOCH, None);
        }
        assert_eq!((average.packets, average.bytes), (1001, 60_060));
        assert_eq!(average.seconds(1000 * EPOCH), 1.0);
        assert_eq!(average.per_second(average.packets, 1000 * EPOCH), 1001.0);
        assert_eq!(average.link_bits(true), 8 * 1001 * 84);
        let mut other = Average::default();
        other.update(1, 10, 5000 * EPOCH, 0, None);
        other.update(1, 10, 9000 * EPOCH, 0, Some(EPOCH));
        average.merge(&other);
        assert_eq!((average.packets, average.seconds(0)), (1002, 5.0));
    }
}
