//! `RatedSplitter`: splits packets at a rate.

use super::rate_limit::{BurstSizeArgs, RateLimitState};
use castanet_element::prelude::*;

/// Splits packets: up to a rate to output 0, the others to output 1.
///
/// A token bucket limits the rate. It holds 20 ms worth of packets unless BURST_DURATION or
/// BURST_SIZE says otherwise. It is filled at whole microseconds, with the rounding of Click.
///
/// ```click
/// in -> s :: RatedSplitter(2, BURST_SIZE 1) -> out;  s[1] -> rest
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < rest 1.0.0.2 > 2.0.0.2 udp len 60
/// = s.rate 2
/// + 500001us
/// > in 1.0.0.3 > 2.0.0.2 udp len 60
/// < out 1.0.0.3 > 2.0.0.2 udp len 60
/// ! s.rate 1000
/// > in 1.0.0.4 > 2.0.0.2 udp len 60
/// < rest 1.0.0.4 > 2.0.0.2 udp len 60
/// + 1001us
/// > in 1.0.0.5 > 2.0.0.2 udp len 60
/// < out 1.0.0.5 > 2.0.0.2 udp len 60
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "shape", methods, args = RatedSplitter, processing = "h/h")]
pub struct RatedSplitter {
    /// Rate in packets per second; no limit if 0.
    #[arg(live)]
    rate: u64,
    #[arg(flatten)]
    burst: BurstSizeArgs,
}

#[handlers]
impl RatedSplitter {
    /// The rate, which is all that Click shows of the arguments.
    #[read]
    fn config(&self) -> u64 {
        self.rate
    }
}

#[derive(Fate)]
pub enum RatedSplitterExit {
    /// Packets within the rate.
    Within,
    /// Packets beyond the rate.
    #[optional]
    Beyond,
}

impl Build for RatedSplitter {
    type Args = RatedSplitter;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        args.burst.capacity(args.rate)?;
        Ok(args)
    }
}

impl PerPacket for RatedSplitter {
    type On = on::Any;
    type Local = RateLimitState;
    type Fate = RatedSplitterExit;
    const SHARED: bool = true;

    fn begin_burst(&self, state: &mut RateLimitState, now: Time) {
        let capacity = self.burst.capacity(self.rate).unwrap_or(1);
        state.fill(self.rate, capacity, now);
    }

    #[inline]
    fn packet(&self, state: &mut RateLimitState, _: &mut Packet) -> RatedSplitterExit {
        match state.bucket.as_mut().is_some_and(|bucket| bucket.remove_if(1)) {
            true => RatedSplitterExit::Within,
            false => RatedSplitterExit::Beyond,
        }
    }
}
