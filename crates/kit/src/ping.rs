//! Statistics of pings, as in ping(8).
//!
//! There is no clock: callers pass the time in nanoseconds.

use std::fmt::Write as _;

/// The state of one sequence number.
#[derive(Clone, Copy, Debug, Default)]
struct PingState {
    at: u64,
    waiting: bool,
    answered: bool,
}

/// Pings by sequence number, and statistics of their replies.
#[derive(Clone, Debug, Default)]
pub struct Pings {
    /// By sequence number; allocated with the first ping.
    sent: Vec<PingState>,
    count: u64,
    received: u64,
    duplicates: u64,
    min: u64,
    max: u64,
    sum: u128,
    squares: u128,
}

const SEQUENCES: usize = 1 << 16;

impl Pings {
    /// How many pings were sent.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Records a ping.
    pub fn record_sent(&mut self, seq: u16, now: u64) {
        if self.sent.is_empty() {
            self.sent.resize(SEQUENCES, PingState::default());
        }
        self.sent[usize::from(seq)] = PingState { at: now, waiting: true, answered: false };
        self.count += 1;
    }

    /// Records a reply and returns its round trip time in microseconds; `None` if no such ping was
    /// sent.
    pub fn record_reply(&mut self, seq: u16, now: u64) -> Option<u64> {
        let sent = self.sent.get_mut(usize::from(seq)).filter(|sent| sent.waiting)?;
        let rtt = now.saturating_sub(sent.at) / 1000;
        if std::mem::replace(&mut sent.answered, true) {
            self.duplicates += 1;
        }
        self.min = if self.received == 0 { rtt } else { self.min.min(rtt) };
        self.max = self.max.max(rtt);
        self.sum += u128::from(rtt);
        self.squares += u128::from(rtt) * u128::from(rtt);
        self.received += 1;
        Some(rtt)
    }

    /// The shortest time in microseconds; 0 if there was no reply.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The mean time in microseconds; 0 if there was no reply.
    pub fn mean(&self) -> u64 {
        (self.sum / u128::from(self.received.max(1))) as u64
    }

    /// The longest time in microseconds; 0 if there was no reply.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The summary that ping prints at its end.
    pub fn summary(&self) -> String {
        let unique = self.received - self.duplicates;
        let mut text = format!("{} packets transmitted, {unique} received", self.count);
        // Writing to a string cannot fail.
        if self.duplicates > 0 {
            let _ = write!(text, ", +{} duplicates", self.duplicates);
        }
        let lost = self.count.saturating_sub(unique) * 100;
        if let Some(lost) = lost.checked_div(self.count) {
            let _ = writeln!(text, ", {lost}% packet loss");
        }
        if self.received > 0 {
            let mean = self.sum / u128::from(self.received);
            let spread = (self.squares / u128::from(self.received)).saturating_sub(mean * mean);
            let times = [self.min, self.mean(), self.max, spread.isqrt() as u64];
            let times = times.map(|us| format!("{}.{:03}", us / 1000, us % 1000));
            let _ = writeln!(text, "rtt min/avg/max/mdev = {}", times.join("/"));
        }
        text
    }
}

/// Microseconds as seconds, without trailing zeros, as in Click.
pub fn seconds(microseconds: u64) -> String {
    let (whole, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000);
    let fraction = format!("{fraction:06}");
    match fraction.trim_end_matches('0') {
        "" => whole.to_string(),
        digits => format!("{whole}.{digits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_counted_and_timed() {
        let mut pings = Pings::default();
        assert_eq!(pings.summary(), "0 packets transmitted, 0 received");
        assert_eq!(pings.record_reply(1, 0), None);
        for seq in 1..=4 {
            pings.record_sent(seq, u64::from(seq) * 1_000_000_000);
        }
        assert_eq!(pings.record_reply(1, 1_001_000_000), Some(1000));
        assert_eq!(pings.record_reply(2, 2_003_500_000), Some(3500));
        assert_eq!(pings.record_reply(2, 2_004_500_000), Some(4500));
        assert_eq!(pings.record_reply(9, 0), None);
        assert_eq!(
            pings.summary(),
            "4 packets transmitted, 2 received, +1 duplicates, 50% packet loss\n\
             rtt min/avg/max/mdev = 1.000/3.000/4.500/1.471\n"
        );
        assert_eq!((pings.min(), pings.mean(), pings.max()), (1000, 3000, 4500));
        assert_eq!(["0", "0.001", "1.5", "2"], [0, 1000, 1_500_000, 2_000_000].map(seconds)[..]);
    }
}
