//! `BandwidthRatedSplitter`: splits packets at a bandwidth.

use castanet_element::prelude::*;
use castanet_kit::rate::{TokenBucket, burst_capacity};

/// Tokens that a packet needs to be in the bucket before it may go. More than the length of any
/// packet: the packet goes whole, and its bytes are taken from the bucket afterwards.
const RESERVE: u64 = 1 << 17;

/// Splits packets: up to a bandwidth to output 0, the others to output 1.
///
/// A token bucket limits the bandwidth. It holds 20 ms worth of bytes unless BURST_DURATION or
/// BURST_BYTES says otherwise.
///
/// ```click
/// in -> s :: BandwidthRatedSplitter(800bps, BURST_BYTES 50) -> out;  s[1] -> rest
/// > in 1.0.0.1 > 2.0.0.2 udp len 100
/// > in 1.0.0.2 > 2.0.0.2 udp len 100
/// < out 1.0.0.1 > 2.0.0.2 udp len 100
/// < rest 1.0.0.2 > 2.0.0.2 udp len 100
/// = s.rate 800bps
/// + 500ms
/// > in 1.0.0.3 > 2.0.0.2 udp len 100
/// < out 1.0.0.3 > 2.0.0.2 udp len 100
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "shape", args = BandwidthRatedSplitter, processing = "h/h")]
pub struct BandwidthRatedSplitter {
    /// Bandwidth; no limit if 0.
    #[arg(live)]
    rate: Bandwidth,
    /// Capacity of the token bucket, as a time at this bandwidth.
    #[arg(keyword)]
    burst_duration: Option<Duration>,
    /// Capacity of the token bucket in bytes.
    #[arg(keyword)]
    burst_bytes: Option<u64>,
}

/// The token bucket. All workers share it.
#[derive(Default, Local)]
pub struct BandwidthRatedSplitterState {
    bucket: Option<TokenBucket>,
}

#[derive(Fate)]
pub enum BandwidthRatedSplitterExit {
    /// Packets within the bandwidth.
    Within,
    /// Packets beyond the bandwidth.
    #[optional]
    Beyond,
}

impl BandwidthRatedSplitter {
    fn capacity(&self) -> Option<u64> {
        let duration = self.burst_duration.map(|d| d.as_nanos() as u64);
        Some(burst_capacity(self.rate.0, duration, self.burst_bytes)?.saturating_add(RESERVE))
    }
}

impl Build for BandwidthRatedSplitter {
    type Args = BandwidthRatedSplitter;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        match args.capacity() {
            Some(_) => Ok(args),
            None => Err(ArgError::new("cannot specify both BURST_DURATION and BURST_BYTES")),
        }
    }
}

impl PerPacket for BandwidthRatedSplitter {
    type On = on::Any;
    type Local = BandwidthRatedSplitterState;
    type Fate = BandwidthRatedSplitterExit;
    const SHARED: bool = true;

    fn begin_burst(&self, state: &mut BandwidthRatedSplitterState, now: Time) {
        let (now, capacity) = (now.nanos(), self.capacity().unwrap_or(RESERVE));
        let new = || TokenBucket::new(self.rate.0, capacity, now);
        let bucket = state.bucket.get_or_insert_with(new);
        if (bucket.rate(), bucket.capacity()) != (self.rate.0, capacity) {
            bucket.set(self.rate.0, capacity, now);
        }
        bucket.fill(now);
    }

    #[inline]
    fn packet(
        &self,
        state: &mut BandwidthRatedSplitterState,
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
