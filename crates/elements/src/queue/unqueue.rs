//! `Unqueue`: pulls packets and pushes them on.

use castanet_element::packet::MAX_BURST;
use castanet_element::prelude::*;

/// Pulls packets as fast as they come and pushes them on.
///
/// The default of BURST is 1 in Click, and two bursts of the engine here: as many packets as a device gives at once, so
/// that a queue between the two does not overflow.
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
///
/// ```click
/// in -> Queue -> u :: Unqueue(-1) -> out
/// = u.burst 2147483647
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// ```
#[derive(Clone, Args, Element)]
#[element(room = "queue", args = Unqueue, ports = "1/1", processing = "l/h")]
pub struct Unqueue {
    /// Maximum number of packets per pull, at most two bursts of the engine; as many as a batch
    /// holds if negative, which reads 2147483647. With 0 no packets are pulled.
    #[arg(live, default = DEFAULT_BURST, shown = "128")]
    burst: i64,
    /// Whether to pull at all.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// Total number of packets to pull; no limit if negative.
    #[arg(keyword, live, default = -1)]
    limit: i64,
    /// An argument of FastClick without effect: the engine knows when there are packets.
    #[arg(keyword, default = true)]
    #[allow(dead_code)]
    signal: bool,
}

/// The burst without an argument: as many packets as a turn may take out of a queue.
const DEFAULT_BURST: i64 = 128;

/// The burst that a negative argument means.
const NO_LIMIT: i64 = i32::MAX as i64;

impl Build for Unqueue {
    type Args = Unqueue;

    fn build(mut it: Unqueue, setup: &Setup) -> Result<Self, ArgError> {
        if it.burst < 0 {
            it.burst = NO_LIMIT;
        } else if it.burst == 0 {
            (setup.warn)("BURST size 0, no packets will be pulled".into());
        }
        Ok(it)
    }
}

impl Unqueue {
    /// BURST as a number of packets; `None` if it is the default.
    fn packets(&self) -> Option<usize> {
        let bounded = usize::try_from(self.burst).map_or(MAX_BURST, |burst| burst.min(MAX_BURST));
        Some(bounded).filter(|_| self.burst != DEFAULT_BURST)
    }
}

/// Counter of the pulled packets.
#[derive(Default, Local)]
#[write(reset, reset_counts)]
pub struct UnqueueState {
    /// Number of packets pulled since the last reset.
    #[read]
    #[portable]
    count: u64,
}

impl Source for Unqueue {
    type Local = UnqueueState;
    type Fate = ();

    fn packets_a_turn(&self) -> usize {
        self.packets().unwrap_or(1)
    }

    fn produce(&self, state: &mut UnqueueState, n: usize, cx: &mut Cx) -> NextRun {
        let left = u64::try_from(self.limit).map_or(u64::MAX, |l| l.saturating_sub(state.count));
        let burst = match self.packets() {
            None => cx.long_burst(n),
            Some(burst) if (0..NO_LIMIT).contains(&self.burst) => {
                burst.min(cx.long_burst(cx.burst()))
            }
            Some(burst) => burst,
        };
        let n = burst.min(usize::try_from(left).unwrap_or(burst));
        if !self.active || n == 0 {
            return NextRun::Done;
        }
        let batch = cx.pull(0, n);
        if batch.is_empty() {
            return NextRun::Empty;
        }
        state.count += batch.len() as u64;
        cx.emit_batch((), batch);
        NextRun::More
    }
}
