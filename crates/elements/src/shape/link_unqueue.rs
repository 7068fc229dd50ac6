//! `LinkUnqueue`: delays packets like a link with a latency and a bandwidth.

use super::link_packets::LinkUnqueueState;
use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Pulls packets and delays them like a link with a given latency and bandwidth.
///
/// The link transmits one packet at a time. The transmission time follows from the length of the
/// packet (EXTRA_LENGTH annotations count) and the bandwidth; the packet arrives one latency after
/// its transmission has ended. Packets that wait for the transmission stay upstream, in a queue for
/// example. A packet that arrives gets the current time as its timestamp.
///
/// ```click
/// in -> q :: Queue -> l :: LinkUnqueue(1s, 800bps) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 100
/// > in 1.0.0.2 > 2.0.0.2 udp len 50
/// = q.length 1
/// = l.size 1
/// = l.latency 1s
/// = l.bandwidth 100
/// + 1s
/// = q.length 0
/// = l.size 2
/// = l.count 2
/// = l.byte_count 150
/// + 1s
/// < out 1.0.0.1 > 2.0.0.2 udp len 100 ; time 1000000002.000000000
/// + 0.5s
/// < out 1.0.0.2 > 2.0.0.2 udp len 50 ; time 1000000002.500000000
/// > in 1.0.0.3 > 2.0.0.2 udp len 100
/// ! l.reset
/// = l.size 0
/// = l.drops.reset 1
/// ! l.latency 0s
/// ! l.bandwidth 1600bps
/// > in 1.0.0.4 > 2.0.0.2 udp len 100
/// + 0.5s
/// < out 1.0.0.4 > 2.0.0.2 udp len 100 ; time 1000000003.000000000
/// ```
///
/// ```click
/// in -> Queue -> l :: LinkUnqueue(1s, 0) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 100
/// + 1s
/// < out 1.0.0.1 > 2.0.0.2 udp len 100 ; time 1000000001.000000000
/// ! l.bandwidth 0
/// ```
#[derive(Clone, Element)]
#[element(room = "shape", args = LinkUnqueueArgs, methods, ports = "1/1", processing = "l/h")]
pub struct LinkUnqueue {
    latency: Duration,
    bandwidth: Bandwidth,
    /// Number of times that a handler has changed the link.
    writes: u64,
}

#[derive(Args)]
pub struct LinkUnqueueArgs {
    /// Latency of the link: the propagation delay from one end to the other.
    #[arg]
    latency: Duration,
    /// Bandwidth of the link; no limit if 0.
    #[arg]
    bandwidth: Bandwidth,
}

#[handlers]
impl LinkUnqueue {
    /// Latency of the link: the propagation delay from one end to the other.
    #[read]
    fn latency(&self) -> Duration {
        self.latency
    }
    /// Sets the latency; packets on the link are dropped.
    #[write(latency)]
    fn set_latency(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let latency = Duration::from_arg(text, names);
        let latency = latency.map_err(|e| e.reworded("latency must be a timestamp"))?;
        Ok(LinkUnqueue { latency, writes: self.writes + 1, ..*self })
    }
    /// Bandwidth of the link in bytes per second; 0 if there is no limit.
    #[read]
    fn bandwidth(&self) -> u64 {
        self.bandwidth.0
    }
    /// Sets the bandwidth, no limit if 0; packets on the link are dropped.
    #[write(bandwidth)]
    fn set_bandwidth(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let bandwidth = Bandwidth::from_arg(text, names)?;
        Ok(LinkUnqueue { bandwidth, writes: self.writes + 1, ..*self })
    }
}

impl Build for LinkUnqueue {
    type Args = LinkUnqueueArgs;

    fn build(args: LinkUnqueueArgs, _: &Setup) -> Result<Self, ArgError> {
        Ok(LinkUnqueue { latency: args.latency, bandwidth: args.bandwidth, writes: 0 })
    }
}

impl LinkUnqueue {
    /// Time that the link needs to transmit a packet.
    fn transmission_time(&self, packet: &Packet) -> Duration {
        let bytes = packet.len() as u64 + u64::from(packet.anno_u32(anno::EXTRA_LENGTH));
        let nanos = (u128::from(bytes) * 1_000_000_000).checked_div(self.bandwidth.0.into());
        Duration::from_nanos(u64::try_from(nanos.unwrap_or(0)).unwrap_or(u64::MAX))
    }
}

impl Source for LinkUnqueue {
    type Local = LinkUnqueueState;
    type Fate = ();

    fn produce(&self, state: &mut LinkUnqueueState, n: usize, cx: &mut Cx) -> NextRun {
        let now = cx.now();
        let mut sent = 0;
        while sent < n
            && state.packets.front().is_some_and(|(arrival, _)| *arrival <= now)
            && let Some((_, mut packet)) = state.packets.pop_front()
        {
            packet.set_timestamp(now.0);
            cx.emit((), packet);
            sent += 1;
        }
        while state.free <= now {
            let mut batch = cx.pull(0, 1);
            if batch.is_empty() {
                state.queued = false;
                if let Some((arrival, _)) = state.packets.front() {
                    cx.retry_at(*arrival);
                }
                return NextRun::Empty;
            }
            cx.keep(&mut batch, || state.packets.len());
            state.shaped.add(&batch);
            let Some(packet) = batch.pop() else { continue };
            // Back to back with the packet before, if this one was ready when that one's
            // transmission ended.
            let start = if state.queued { state.free } else { now };
            (state.free, state.queued) = (start + self.transmission_time(&packet), true);
            state.packets.push_back((state.free + self.latency, packet));
        }
        let next = state.packets.front().map_or(state.free, |(arrival, _)| *arrival);
        NextRun::At(next.min(state.free))
    }

    fn held(&self, state: &LinkUnqueueState) -> usize {
        state.packets.len()
    }

    fn shrink(&self, state: &mut LinkUnqueueState) {
        let is_changed = self.writes > state.writes;
        if is_changed {
            (state.free, state.queued) = (Time::default(), false);
            state.packets.clear();
        }
        state.writes = self.writes;
    }
}
