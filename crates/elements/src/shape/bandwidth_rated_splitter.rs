//! `BandwidthRatedSplitter`: splits packets at a bandwidth.

use super::rate_limit::{BurstBytesArgs, RESERVE, RateLimitState};
use castanet_element::prelude::*;

/// Splits packets: up to a bandwidth to output 0, the others to output 1.
///
/// A token bucket limits the bandwidth. It holds 20 ms worth of bytes unless BURST_DURATION or
/// BURST_BYTES says otherwise. It is filled at whole microseconds, with the rounding of Click.
///
/// ```click
/// in -> s :: BandwidthRatedSplitter(800bps, BURST_BYTES 50) -> out;  s[1] -> rest
/// > in 1.0.0.1 > 2.0.0.2 udp len 100
/// > in 1.0.0.2 > 2.0.0.2 udp len 100
/// < out 1.0.0.1 > 2.0.0.2 udp len 100
/// < rest 1.0.0.2 > 2.0.0.2 udp len 100
/// = s.rate 800bps
/// = s.config 800bps
/// + 500100us
/// > in 1.0.0.3 > 2.0.0.2 udp len 100
/// < out 1.0.0.3 > 2.0.0.2 udp len 100
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "shape", methods, args = BandwidthRatedSplitter, processing = "h/h")]
pub struct BandwidthRatedSplitter {
    /// Bandwidth; no limit if 0.
    #[arg(live)]
    rate: Bandwidth,
    #[arg(flatten)]
    burst: BurstBytesArgs,
}

#[handlers]
impl BandwidthRatedSplitter {
    /// The rate, which is all that Click shows of the arguments.
    #[read]
    fn config(&self) -> Bandwidth {
        self.rate
    }
}

#[derive(Fate)]
pub enum BandwidthRatedSplitterExit {
    /// Packets within the bandwidth.
    Within,
    /// Packets beyond the bandwidth.
    #[optional]
    Beyond,
}

impl Build for BandwidthRatedSplitter {
    type Args = BandwidthRatedSplitter;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        args.burst.capacity(args.rate)?;
        Ok(args)
    }
}

impl PerPacket for BandwidthRatedSplitter {
    type On = on::Any;
    type Local = RateLimitState;
    type Fate = BandwidthRatedSplitterExit;
    const SHARED: bool = true;

    fn begin_burst(&self, state: &mut RateLimitState, now: Time) {
        let capacity = self.burst.capacity(self.rate).unwrap_or(RESERVE);
        state.fill(self.rate.0, capacity, now);
    }

    #[inline]
    fn packet(
        &self,
        state: &mut RateLimitState,
        packet: &mut Packet,
    ) -> BandwidthRatedSplitterExit {
        match &mut state.bucket {
            Some(bucket) if bucket.contains(RESERVE) => {
                bucket.remove(packet.len() as u64);
                BandwidthRatedSplitterExit::Within
            }
            _ => BandwidthRatedSplitterExit::Beyond,
        }
    }
}
