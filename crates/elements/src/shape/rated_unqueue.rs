//! `RatedUnqueue`: pulls packets at a limited rate.

use super::rate_limit::BurstSizeArgs;
use super::shaped_traffic::RatedUnqueueState;
use castanet_element::prelude::*;
use castanet_kit::tick_bucket::TickBucket;

/// Pulls packets at a limited rate and pushes them on.
///
/// A token bucket limits the rate. It holds 20 ms worth of packets unless BURST_DURATION or
/// BURST_SIZE says otherwise. It is filled at whole microseconds, with the rounding of Click.
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
/// = q.length 2
/// + 1us
/// < out 1.0.0.3 > 2.0.0.2 udp len 60
/// ! u.active false
/// + 1s
/// = q.length 1
/// ! u.rate 1000
/// ! u.active true
/// < out 1.0.0.4 > 2.0.0.2 udp len 60
/// = u.count 4
/// = u.byte_count 240
/// ! u.rate 2
/// ! u.reset
/// > in 1.0.0.5 > 2.0.0.2 udp len 60
/// = q.length 1
/// + 1s
/// < out 1.0.0.5 > 2.0.0.2 udp len 60
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "shape", methods, args = RatedUnqueue, ports = "1/1", processing = "l/h")]
pub struct RatedUnqueue {
    /// Rate in packets per second; no limit if 0.
    #[arg(live)]
    rate: u64,
    #[arg(flatten)]
    burst_size: BurstSizeArgs,
    /// Maximum number of packets per run.
    #[arg(keyword, default = 32, range = 1..)]
    burst: usize,
    /// Whether the element pulls packets.
    #[arg(keyword, live, default = true)]
    active: bool,
}

#[handlers]
impl RatedUnqueue {
    /// The rate, which is all that Click shows of the arguments.
    #[read]
    fn config(&self) -> u64 {
        self.rate
    }
}

impl Build for RatedUnqueue {
    type Args = RatedUnqueue;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        args.burst_size.capacity(args.rate)?;
        Ok(args)
    }
}

impl Source for RatedUnqueue {
    type Local = RatedUnqueueState;
    type Fate = ();

    fn packets_a_turn(&self) -> usize {
        self.burst
    }

    fn produce(&self, state: &mut RatedUnqueueState, n: usize, cx: &mut Cx) -> NextRun {
        if !self.active {
            return NextRun::Done;
        }
        let limit = (self.rate, self.burst_size.capacity(self.rate).unwrap_or(1));
        if let Err(next_run) = state.begin_run(limit, 1, cx.now()) {
            return next_run;
        }
        let tokens = state.limit.bucket.as_ref().map_or(0, TickBucket::tokens);
        let n = n.min(self.burst).min(usize::try_from(tokens).unwrap_or(n));
        let batch = cx.pull(0, n);
        state.count_pull(&batch);
        if batch.is_empty() {
            return NextRun::Empty;
        }
        if let Some(bucket) = &mut state.limit.bucket {
            bucket.remove(batch.len() as u64);
        }
        cx.emit_batch((), batch);
        NextRun::More
    }
}
