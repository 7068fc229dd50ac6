//! Whether a core does its work at full speed.

use quanta::Instant;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// Turns of the loop that is timed: some microseconds.
const TURNS: u64 = 4000;
/// How often in a row, of which the fastest counts: an interrupt is nobody's slowness.
const AGAIN: usize = 3;

/// The fastest that this process has felt, in nanoseconds.
static FASTEST: AtomicU64 = AtomicU64::new(u64::MAX);

/// How fast a core is at a moment: what a loop takes that needs nothing but the core. Where
/// machines are virtual, another one may have the other half of a core for seconds, and no clock
/// tells; then all takes up to twice as long.
#[derive(Clone, Copy, Debug)]
pub struct Pulse(pub(super) u64);

impl Pulse {
    /// Feels the pulse of the core that this thread is on; takes about 20 µs.
    #[inline(never)]
    pub fn feel() -> Pulse {
        let times = (0..AGAIN).map(|_| {
            let started = Instant::now();
            work();
            started.elapsed().as_nanos() as u64
        });
        let fastest = times.min().unwrap_or(u64::MAX);
        FASTEST.fetch_min(fastest, Ordering::Relaxed);
        Pulse(fastest)
    }

    /// Whether it is within an eighth of the fastest that this process has felt until now.
    pub fn is_calm(self) -> bool {
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
        let pulse = Pulse::feel();
        assert!(pulse.0 > 0 && !Pulse(pulse.0.saturating_mul(2)).is_calm());
    }
}
