//! A probe of the speed of a core.

use quanta::Instant;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// Turns of the timed loop: some microseconds.
const TURNS: u64 = 4000;
/// Repetitions, of which the fastest counts: interrupts are no slowness of the core.
const AGAIN: usize = 3;

/// The fastest time that this process has measured, in nanoseconds.
static FASTEST: AtomicU64 = AtomicU64::new(u64::MAX);

/// The speed of a core at a moment: the time of a loop that depends on nothing but the core. On a
/// virtual machine another one may have half of a core for seconds, without a trace in any clock;
/// all work then takes up to twice as long.
#[derive(Clone, Copy, Debug)]
pub struct CoreSpeed(pub(super) u64);

impl CoreSpeed {
    /// Probes the core of this thread; takes about 20 µs.
    #[inline(never)]
    pub fn probe() -> CoreSpeed {
        let times = (0..AGAIN).map(|_| {
            let started = Instant::now();
            work();
            started.elapsed().as_nanos() as u64
        });
        let fastest = times.min().unwrap_or(u64::MAX);
        FASTEST.fetch_min(fastest, Ordering::Relaxed);
        CoreSpeed(fastest)
    }

    /// Whether the time is within an eighth of the fastest that this process has measured until
    /// now.
    pub fn is_full(self) -> bool {
        self.0 <= (FASTEST.load(Ordering::Relaxed) / 8).saturating_mul(9)
    }
}

/// Four chains at once, as many instructions as a core can do.
#[inline(never)]
fn work() {
    let mut chains = black_box([1_u64, 2, 3, 4]);
    for turn in 0..TURNS {
        for chain in &mut chains {
            *chain = (*chain ^ turn).rotate_left(7).wrapping_add(turn);
        }
    }
    black_box(chains);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_speed_is_not_calm() {
        let probe = CoreSpeed::probe();
        assert!(probe.0 > 0 && !CoreSpeed(probe.0.saturating_mul(2)).is_full());
    }
}
