//! Pauses between the end of a tenant and its next start.

use std::time::Duration;

/// The first pause.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);
/// Time for which a tenant has to run until its earlier ends are forgotten.
const STABLE: Duration = Duration::from_secs(60);

/// The pauses before restarts of a tenant, or of its process: 100 ms, and twice as long each time, up to 30 s.
#[derive(Debug, Default)]
pub struct Backoff {
    /// Ends since it has run for a minute.
    ends: u32,
}

impl Backoff {
    /// The pause after it has run for `lifetime`.
    pub fn after(&mut self, lifetime: Duration) -> Duration {
        if lifetime >= STABLE {
            self.ends = 0;
        }
        let pause = SHORTEST.saturating_mul(1 << self.ends.min(16));
        self.ends += 1;
        pause.min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_30_s_and_a_stable_minute_forgets_them() {
        let mut backoff = Backoff::default();
        let short = Duration::from_millis(5);
        let pauses: Vec<u128> = (0..11).map(|_| backoff.after(short).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
        assert_eq!(backoff.after(STABLE), SHORTEST);
        assert_eq!(backoff.after(short), SHORTEST * 2);
    }
}
