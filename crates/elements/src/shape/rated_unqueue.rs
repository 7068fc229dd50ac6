//! `RatedUnqueue`: pulls packets at a limited rate.

use super::rate_limit::BurstSizeArgs;
use super::shaped_traffic::RatedUnqueueState;
use castanet_element::prelude::*;

/// Pulls packets at a limited rate and pushes them on.
///
/// A token bucket limits the rate. It holds 20 ms worth of packets unless BURST_DURATION or
/// BURST_SIZE says otherwise.
///
/// ```click
/// in -> q :: Queue -> u :: RatedUnqueue(4, BURST_SIZE 2) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// > in 1.0.0.3 > 2.0.0.2 udp len 60
/// > in 1.0.0.4 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.2 > 2.0.0.2 udp len 60
/// = q.length 2
/// = u.rate 4
/// + 250ms
/// < out 1.0.0.3 > 2.0.0.2 udp len 60
/// ! u.active false
/// + 1s
/// = q.length 1
/// ! u.rate 1000
/// ! u.active true
/// < out 1.0.0.4 > 2.0.0.2 udp len 60
/// = u.count 4
/// = u.byte_count 240
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "shape", args = RatedUnqueue, ports = "1/1", processing = "l/h")]
pub struct RatedUnqueue {
    /// Rate in packets per second; no limit if 0.
    #[arg(live)]
    rate: u64,
    #[arg(flatten)]
    burst: BurstSizeArgs,
    /// Whether the element pulls packets.
    #[arg(keyword, live, default = true)]
    active: bool,
}

impl Build for RatedUnqueue {
    type Args = RatedUnqueue;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        args.burst.capacity(args.rate)?;
        Ok(args)
    }
}

impl Source for RatedUnqueue {
    type Local = RatedUnqueueState;
    type Fate = ();

    fn produce(&self, state: &mut RatedUnqueueState, n: usize, cx: &mut Cx) -> NextRun {
        if !self.active {
            return NextRun::Done;
        }
        let (now, capacity) = (cx.now(), self.burst.capacity(self.rate).unwrap_or(1));
        let bucket = state.limit.fill(self.rate, capacity, now);
        let n = n.min(usize::try_from(bucket.tokens()).unwrap_or(n));
        if n == 0 {
            let wait = bucket.time_until(1).map(Duration::from_nanos);
            return wait.map_or(NextRun::Done, |wait| NextRun::At(now + wait));
        }
        let batch = cx.pull(0, n);
        if batch.is_empty() {
            return NextRun::Empty;
        }
        bucket.remove(batch.len() as u64);
        state.shaped.add(&batch);
        cx.emit_batch((), batch);
        NextRun::More
    }
}
