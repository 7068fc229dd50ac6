//! `BandwidthRatedUnqueue`: pulls packets at a limited bandwidth.

use super::rate_limit::{BurstBytesArgs, RESERVE};
use super::shaped_traffic::RatedUnqueueState;
use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Bytes of an Ethernet link per frame in addition to the packet: preamble, start delimiter,
/// checksum and gap.
const LINK_OVERHEAD: u64 = 24;

/// Pulls packets at a limited bandwidth and pushes them on.
///
/// A token bucket limits the bandwidth. It holds 20 ms worth of bytes unless BURST_DURATION or
/// BURST_BYTES says otherwise. It is filled at whole microseconds, with the rounding of Click.
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
/// = u.config 800bps
/// + 999ms
/// = q.length 1
/// + 1100us
/// < out 1.0.0.3 > 2.0.0.2 udp len 100
/// = u.count 3
/// = u.byte_count 300
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
#[element(room = "shape", methods, args = BandwidthRatedUnqueue, ports = "1/1", processing = "l/h")]
pub struct BandwidthRatedUnqueue {
    /// Bandwidth; no limit if 0.
    #[arg(live)]
    rate: Bandwidth,
    #[arg(flatten)]
    burst_bytes: BurstBytesArgs,
    /// Maximum number of packets per run.
    #[arg(keyword, default = 1, range = 1..)]
    burst: usize,
    /// Whether the `EXTRA_LENGTH` annotation counts too.
    #[arg(keyword, default = false)]
    extra_length: bool,
    /// Whether the bytes that a frame needs on an Ethernet link in addition to the packet count
    /// too: 24 per packet.
    #[arg(keyword, default = false)]
    link_rate: bool,
    /// Whether the element pulls packets.
    #[arg(keyword, live, default = true)]
    active: bool,
}

#[handlers]
impl BandwidthRatedUnqueue {
    /// The rate, which is all that Click shows of the arguments.
    #[read]
    fn config(&self) -> Bandwidth {
        self.rate
    }
}

impl BandwidthRatedUnqueue {
    /// Number of bytes of the bandwidth that a packet uses.
    fn cost(&self, packet: &Packet) -> u64 {
        let extra = if self.extra_length { packet.anno_u32(anno::EXTRA_LENGTH) } else { 0 };
        let link = if self.link_rate { LINK_OVERHEAD } else { 0 };
        packet.len() as u64 + u64::from(extra) + link
    }
}

impl Build for BandwidthRatedUnqueue {
    type Args = BandwidthRatedUnqueue;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        args.burst_bytes.capacity(args.rate)?;
        Ok(args)
    }
}

impl Source for BandwidthRatedUnqueue {
    type Local = RatedUnqueueState;
    type Fate = ();

    fn packets_a_turn(&self) -> usize {
        self.burst
    }

    fn produce(&self, state: &mut RatedUnqueueState, n: usize, cx: &mut Cx) -> NextRun {
        if !self.active {
            return NextRun::Done;
        }
        let limit = (self.rate.0, self.burst_bytes.capacity(self.rate).unwrap_or(RESERVE));
        if let Err(next_run) = state.begin_run(limit, RESERVE, cx.now()) {
            return next_run;
        }
        let mut sent = 0;
        while sent < n.min(self.burst)
            && state.limit.bucket.as_ref().is_some_and(|bucket| bucket.contains(RESERVE))
        {
            let batch = cx.pull(0, 1);
            state.count_pull(&batch);
            let Some(packet) = batch.iter().next() else { break };
            let cost = self.cost(packet);
            state.limit.bucket.iter_mut().for_each(|bucket| bucket.remove(cost));
            cx.emit_batch((), batch);
            sent += 1;
        }
        if sent == 0 { NextRun::Empty } else { NextRun::More }
    }
}
