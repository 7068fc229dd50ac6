//! Fair comparisons on a noisy machine.

use super::io::cores;
use crate::example::CoreSpeed;
use castanet_runtime::cores::allowed;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// One run: nanoseconds of processor time a packet, and whether the machine
/// gave the run the processor it asked for.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Run {
    /// Nanoseconds of processor time a packet: what others take away from a
    /// shared machine does not count.
    pub(crate) ns: f64,
    /// Whether its processor time was at least 97 % of what it should be, and
    /// all cores were at full speed before and after; if not, others have used
    /// the caches meanwhile, or halves of the cores.
    pub(crate) undisturbed: bool,
}

/// Times for which a run that passed nothing is repeated.
const AGAIN: usize = 100;

/// Times `run`, which keeps `workers` cores busy all the time and gives the
/// number of packets.
pub(crate) fn watched(workers: usize, mut run: impl FnMut() -> u64) -> Run {
    let was_calm = are_calm();
    let (before, started) = (processor_time(), Instant::now());
    // On a busy machine a short run may be over before it got a processor.
    let packets = (0..AGAIN).map(|_| run()).find(|&packets| packets > 0).unwrap_or(0);
    let (spent, wall) = (processor_time() - before, started.elapsed().as_secs_f64());
    let ns = spent * 1e9 / packets as f64;
    Run { ns, undisturbed: spent >= 0.97 * wall * workers as f64 && was_calm & are_calm() }
}

/// Whether all cores are at full speed.
pub(crate) fn are_calm() -> bool {
    let pulse = |core| cores::on(core, CoreSpeed::probe).is_ok_and(CoreSpeed::is_full);
    allowed().into_iter().all(pulse)
}

/// Seconds of processor time that this process has had.
pub(crate) fn processor_time() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| {
        (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
    })
}

/// The middle of the undisturbed runs, in nanoseconds; of all runs if every one
/// was disturbed.
pub(crate) fn median(runs: &[Run]) -> f64 {
    middle(runs.iter().map(|run| (run.ns, run.undisturbed))).0
}

/// The middle of the values beside which stands that nothing disturbed them, or
/// of all if there are none, and how many of these there are.
pub(crate) fn middle(values: impl Iterator<Item = (f64, bool)>) -> (f64, usize) {
    let (mut calm, mut others) = (Vec::new(), Vec::new());
    for (value, undisturbed) in values {
        if undisturbed { &mut calm } else { &mut others }.push(value);
    }
    let undisturbed = calm.len();
    let mut counted = if calm.is_empty() { others } else { calm };
    counted.sort_by(f64::total_cmp);
    (counted.get(counted.len() / 2).copied().unwrap_or(f64::NAN), undisturbed)
}

/// Whether a list of names has one; an empty list has all.
pub(crate) fn is_selected(names: &[String], name: &str) -> bool {
    names.is_empty() || names.iter().any(|it| it == name)
}

/// Ticks of the time-stamp counter in a nanosecond.
pub(crate) fn ticks_per_ns() -> f64 {
    let clock = quanta::Clock::new();
    let (raw, started) = (clock.raw(), Instant::now());
    while started.elapsed().as_millis() < 20 {
        std::hint::spin_loop();
    }
    (clock.raw() - raw) as f64 / started.elapsed().as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::middle;

    #[test]
    fn disturbed_runs_count_only_where_there_are_no_others() {
        let calm = [(1.0, true), (9.0, false), (2.0, true), (3.0, true)];
        assert_eq!(middle(calm.into_iter()), (2.0, 3));
        assert_eq!(middle([(1.0, false), (9.0, false), (2.0, false)].into_iter()), (2.0, 0));
        assert!(middle(std::iter::empty()).0.is_nan());
    }
}
