//! `RatedSplitter`: splits packets at a rate.

use castanet_element::prelude::*;
use castanet_kit::rate::{TokenBucket, burst_capacity};

/// Splits packets: up to a rate to output 0, the others to output 1.
///
/// A token bucket limits the rate. It holds 20 ms worth of packets unless BURST_DURATION or
/// BURST_SIZE says otherwise.
///
/// ```click
/// in -> s :: RatedSplitter(2, BURST_SIZE 1) -> out;  s[1] -> rest
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// > in 1.0.0.2 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < rest 1.0.0.2 > 2.0.0.2 udp len 60
/// = s.rate 2
/// + 500ms
/// > in 1.0.0.3 > 2.0.0.2 udp len 60
/// < out 1.0.0.3 > 2.0.0.2 udp len 60
/// ! s.rate 1000
/// > in 1.0.0.4 > 2.0.0.2 udp len 60
/// < rest 1.0.0.4 > 2.0.0.2 udp len 60
/// + 1ms
/// > in 1.0.0.5 > 2.0.0.2 udp len 60
/// < out 1.0.0.5 > 2.0.0.2 udp len 60
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "shape", args = RatedSplitter, processing = "h/h")]
pub struct RatedSplitter {
    /// Rate in packets per second; no limit if 0.
    #[arg(live)]
    rate: u64,
    /// Capacity of the token bucket, as a time at this rate.
    #[arg(keyword)]
    burst_duration: Option<Duration>,
    /// Capacity of the token bucket in packets.
    #[arg(keyword)]
    burst_size: Option<u64>,
}

/// The token bucket. All workers share it.
#[derive(Default, Local)]
pub struct RatedSplitterState {
    bucket: Option<TokenBucket>,
}

#[derive(Fate)]
pub enum RatedSplitterExit {
    /// Packets within the rate.
    Within,
    /// Packets beyond the rate.
    #[optional]
    Beyond,
}

impl RatedSplitter {
    fn capacity(&self) -> Option<u64> {
        let duration = self.burst_duration.map(|d| d.as_nanos() as u64);
        burst_capacity(self.rate, duration, self.burst_size)
    }
}

impl Build for RatedSplitter {
    type Args = RatedSplitter;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        match args.capacity() {
            Some(_) => Ok(args),
            None => Err(ArgError::new("cannot specify both BURST_DURATION and BURST_SIZE")),
        }
    }
}

impl PerPacket for RatedSplitter {
    type On = on::Any;
    type Local = RatedSplitterState;
    type Fate = RatedSplitterExit;
    const SHARED: bool = true;

    fn begin_burst(&self, state: &mut RatedSplitterState, now: Time) {
        let (now, capacity) = (now.nanos(), self.capacity().unwrap_or(1));
        let new = || TokenBucket::new(self.rate, capacity, now);
        let bucket = state.bucket.get_or_insert_with(new);
        if (bucket.rate(), bucket.capacity()) != (self.rate, capacity) {
            bucket.set(self.rate, capacity, now);
        }
        bucket.fill(now);
    }

    #[inline]
    fn packet(&self, state: &mut RatedSplitterState, _: &mut Packet) -> RatedSplitterExit {
        match state.bucket.as_mut().is_some_and(|bucket| bucket.remove_if(1)) {
            true => RatedSplitterExit::Within,
            false => RatedSplitterExit::Beyond,
        }
    }
}
