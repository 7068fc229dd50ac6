//! `BandwidthRatedSplitter`: up to a bandwidth this way, the rest that way.

use castanet_engine::prelude::*;
use castanet_kit::rate::{TokenBucket, burst_capacity};

/// More than any packet has: so many tokens are always kept back, so that a
/// packet goes whole and its bytes are paid for afterwards.
const RESERVE: u64 = 1 << 17;

/// Sends packets up to a bandwidth out of the first output, and others out of the second.
///
/// A token bucket that holds 20 ms worth of bytes keeps the rate.
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
    /// Time's worth of bytes that may go at once after a pause.
    #[arg(keyword)]
    burst_duration: Option<Duration>,
    /// Bytes that may go at once after a pause.
    #[arg(keyword)]
    burst_bytes: Option<u64>,
}

/// What may still go.
#[derive(Default, Local)]
pub struct Allowance {
    bucket: Option<TokenBucket>,
}

#[derive(Fate)]
pub enum Way {
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
    type Local = Allowance;
    type Fate = Way;
    const SHARED: bool = true;

    fn burst(&self, local: &mut Allowance, now: Time) {
        let (now, capacity) = (now.nanos(), self.capacity().unwrap_or(RESERVE));
        let new = || TokenBucket::new(self.rate.0, capacity, now);
        let bucket = local.bucket.get_or_insert_with(new);
        if (bucket.rate(), bucket.capacity()) != (self.rate.0, capacity) {
            bucket.set(self.rate.0, capacity, now);
        }
        bucket.fill(now);
    }

    #[inline]
    fn packet(&self, local: &mut Allowance, packet: &mut Packet) -> Way {
        match &mut local.bucket {
            Some(bucket) if bucket.contains(RESERVE) => {
                bucket.remove(packet.len() as u64);
                Way::Within
            }
            _ => Way::Beyond,
        }
    }
}
