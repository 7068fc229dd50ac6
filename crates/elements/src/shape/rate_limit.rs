//! The token bucket of the elements that limit a rate, and the arguments of its capacity.

use castanet_element::prelude::*;
use castanet_kit::rate::burst_capacity;
use castanet_kit::tick_bucket::TickBucket;

/// Tokens that a packet needs to be in a bucket of bytes before it may go. More than the length of
/// any packet: the packet goes whole, and its bytes are taken from the bucket afterwards.
pub(super) const RESERVE: u64 = 1 << 17;

/// Capacity of a bucket of packets.
#[derive(Clone, Args)]
pub(super) struct BurstSizeArgs {
    /// Capacity of the token bucket, as a time at this rate.
    #[arg(keyword)]
    burst_duration: Option<Duration>,
    /// Capacity of the token bucket in packets.
    #[arg(keyword)]
    burst_size: Option<u64>,
}

impl BurstSizeArgs {
    /// The capacity at a rate in packets per second.
    pub(super) fn capacity(&self, rate: u64) -> Result<u64, ArgError> {
        let both = || ArgError::new("cannot specify both BURST_DURATION and BURST_SIZE");
        burst_capacity(rate, self.burst_duration.map(nanos), self.burst_size).ok_or_else(both)
    }
}

/// Capacity of a bucket of bytes.
#[derive(Clone, Args)]
pub(super) struct BurstBytesArgs {
    /// Capacity of the token bucket, as a time at this bandwidth.
    #[arg(keyword)]
    burst_duration: Option<Duration>,
    /// Capacity of the token bucket in bytes.
    #[arg(keyword)]
    burst_bytes: Option<u64>,
}

impl BurstBytesArgs {
    /// The capacity at a bandwidth, with [`RESERVE`].
    pub(super) fn capacity(&self, rate: Bandwidth) -> Result<u64, ArgError> {
        let both = || ArgError::new("cannot specify both BURST_DURATION and BURST_BYTES");
        let bytes = burst_capacity(rate.0, self.burst_duration.map(nanos), self.burst_bytes);
        Ok(bytes.ok_or_else(both)?.saturating_add(RESERVE))
    }
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

/// The token bucket; none before the first burst.
#[derive(Default, Local)]
pub struct RateLimitState {
    pub(super) bucket: Option<TickBucket>,
    /// Whether the bucket is to be empty at the first burst, and not full.
    is_emptied: bool,
}

impl RateLimitState {
    /// Empties the bucket.
    pub(super) fn clear(&mut self) {
        match &mut self.bucket {
            Some(bucket) => bucket.clear(),
            None => self.is_emptied = true,
        }
    }

    /// Returns the bucket with this rate and capacity, and the tokens that it has now.
    pub(super) fn fill(&mut self, rate: u64, capacity: u64, now: Time) -> &mut TickBucket {
        let now = now.nanos();
        let is_emptied = std::mem::take(&mut self.is_emptied);
        let bucket = self.bucket.get_or_insert_with(|| {
            let mut bucket = TickBucket::new(rate, capacity, now);
            if is_emptied {
                bucket.clear();
            }
            bucket
        });
        if (bucket.rate(), bucket.capacity()) != (rate, capacity) {
            bucket.set(rate, capacity, now);
        }
        bucket.fill(now);
        bucket
    }
}
