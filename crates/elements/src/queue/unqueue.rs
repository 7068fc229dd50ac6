//! `Unqueue`: from pull to push.

use castanet_engine::prelude::*;

/// Pulls packets as they come and pushes them on.
///
/// `BURST` is 1 in Click; here it is a whole burst.
///
/// ```click
/// in -> q :: Queue -> u :: Unqueue(BURST 2, LIMIT 3) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// > in 1.0.0.3 > 2.0.0.2 udp len 60
/// > in 1.0.0.4 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// < out 1.0.0.3 > 2.0.0.2 udp len 60
/// = u.count 3
/// = q.length 1
/// ! u.active false
/// ! u.reset
/// = q.length 1
/// ! u.active true
/// < out 1.0.0.4 > 2.0.0.2 udp len 60
/// = u.count 1
/// ```
#[derive(Clone, Element)]
#[element(room = "queue", ports = "1/1", processing = "l/h")]
pub struct Unqueue {
    /// How many packets to pull at a time; as many as there are if negative.
    #[arg(live, default = 32)]
    burst: i64,
    /// Whether to pull at all.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// How many packets to pull in all; no limit if negative.
    #[arg(keyword, live, default = -1)]
    limit: i64,
}

/// What has passed so far.
#[derive(Default, Local)]
#[write(reset, reset_counts)]
pub struct Passed {
    /// Packets.
    #[read]
    count: u64,
}

impl Source for Unqueue {
    type Local = Passed;
    type Fate = ();

    fn ask(&self, passed: &mut Passed, n: usize, cx: &mut Cx) -> Asked {
        let left = u64::try_from(self.limit).map_or(u64::MAX, |l| l.saturating_sub(passed.count));
        let burst =
            usize::try_from(self.burst).map_or(castanet_engine::packet::MAX_BURST, |b| b.min(n));
        let n = burst.min(usize::try_from(left).unwrap_or(burst));
        if !self.active || n == 0 {
            return Asked::Done;
        }
        let batch = cx.pull(0, n);
        if batch.is_empty() {
            return Asked::Empty;
        }
        passed.count += batch.len() as u64;
        cx.emit_batch((), batch);
        Asked::Again
    }
}
