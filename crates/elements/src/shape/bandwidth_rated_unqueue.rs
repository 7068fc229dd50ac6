//! `BandwidthRatedUnqueue`: from pull to push, at a bandwidth.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_kit::rate::{TokenBucket, burst_capacity};

/// More than any packet has: so many tokens are always kept back, so that a
/// packet goes whole and its bytes are paid for afterwards.
const RESERVE: u64 = 1 << 17;
/// Preamble, start delimiter, checksum and gap of a frame on an Ethernet link.
const LINK_OVERHEAD: u64 = 24;

/// Pulls packets at a bandwidth and pushes them on.
///
/// A token bucket that holds 20 ms worth of bytes keeps the rate.
///
/// ```click
/// in -> q :: Queue -> u :: BandwidthRatedUnqueue(800bps, BURST_BYTES 100) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 100
/// > in 1.0.0.2 > 2.0.0.2 udp len 100
/// > in 1.0.0.3 > 2.0.0.2 udp len 100
/// < out 1.0.0.1 > 2.0.0.2 udp len 100
/// < out 1.0.0.2 > 2.0.0.2 udp len 100
/// = q.length 1
/// = u.rate 800bps
/// + 999ms
/// = q.length 1
/// + 1ms
/// < out 1.0.0.3 > 2.0.0.2 udp len 100
/// ```
///
/// ```click
/// in -> q :: Queue -> u :: BandwidthRatedUnqueue(RATE 672Mbps, LINK_RATE true, EXTRA_LENGTH true) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// ! u.rate 1Gbps
/// = u.rate 1Gbps
/// ```
#[derive(Clone, Element, Args)]
#[element(room = "shape", args = BandwidthRatedUnqueue, ports = "1/1", processing = "l/h")]
pub struct BandwidthRatedUnqueue {
    /// Bandwidth; no limit if 0.
    #[arg(live)]
    rate: Bandwidth,
    /// Time's worth of bytes that may go at once after a pause.
    #[arg(keyword)]
    burst_duration: Option<Duration>,
    /// Bytes that may go at once after a pause.
    #[arg(keyword)]
    burst_bytes: Option<u64>,
    /// Whether to count what the `EXTRA_LENGTH` annotation says, too.
    #[arg(keyword, default = false)]
    extra_length: bool,
    /// Whether to count what each packet takes on an Ethernet link beside its bytes.
    #[arg(keyword, default = false)]
    link_rate: bool,
    /// Whether to pull at all.
    #[arg(keyword, live, default = true)]
    active: bool,
}

/// What may still go.
#[derive(Default, Local)]
pub struct Allowance {
    bucket: Option<TokenBucket>,
}

impl BandwidthRatedUnqueue {
    fn capacity(&self) -> Option<u64> {
        let duration = self.burst_duration.map(|d| d.as_nanos() as u64);
        Some(burst_capacity(self.rate.0, duration, self.burst_bytes)?.saturating_add(RESERVE))
    }

    fn cost(&self, packet: &Packet) -> u64 {
        let extra = if self.extra_length { packet.anno_u32(anno::EXTRA_LENGTH) } else { 0 };
        let link = if self.link_rate { LINK_OVERHEAD } else { 0 };
        packet.len() as u64 + u64::from(extra) + link
    }
}

impl Build for BandwidthRatedUnqueue {
    type Args = BandwidthRatedUnqueue;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        match args.capacity() {
            Some(_) => Ok(args),
            None => Err(ArgError::new("cannot specify both BURST_DURATION and BURST_BYTES")),
        }
    }
}

impl Source for BandwidthRatedUnqueue {
    type Local = Allowance;
    type Fate = ();

    fn ask(&self, local: &mut Allowance, n: usize, cx: &mut Cx) -> Asked {
        if !self.active {
            return Asked::Done;
        }
        let (now, capacity) = (cx.now(), self.capacity().unwrap_or(RESERVE));
        let bucket = local
            .bucket
            .get_or_insert_with(|| TokenBucket::new(self.rate.0, capacity, now.nanos()));
        if (bucket.rate(), bucket.capacity()) != (self.rate.0, capacity) {
            bucket.set(self.rate.0, capacity, now.nanos());
        }
        bucket.fill(now.nanos());
        if let Some(wait) = bucket.time_until(RESERVE).filter(|&wait| wait > 0) {
            return Asked::At(now + Duration::from_nanos(wait));
        }
        let mut sent = 0;
        while sent < n && bucket.contains(RESERVE) {
            let batch = cx.pull(0, 1);
            let Some(packet) = batch.iter().next() else { break };
            bucket.remove(self.cost(packet));
            cx.emit_batch((), batch);
            sent += 1;
        }
        if sent == 0 { Asked::Empty } else { Asked::Again }
    }
}
