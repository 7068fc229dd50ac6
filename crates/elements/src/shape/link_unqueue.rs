//! `LinkUnqueue`: as if over a line of some length and speed.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use std::collections::VecDeque;

/// Pulls packets and pushes them on as if a line of some latency and bandwidth had carried them.
///
/// A packet enters the line when the one before it is in, which takes the longer
/// the longer it is (EXTRA_LENGTH annotations count), and comes out a latency after it is in whole.
/// Packets that wait for the line stay where they are: in a queue, for example. Those
/// that come out carry the time when they do.
///
/// ```click
/// in -> q :: Queue -> l :: LinkUnqueue(1s, 800bps) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp len 100
/// > in 1.0.0.2 > 2.0.0.2 udp len 50
/// = q.length 1
/// = l.size 1
/// = l.latency 1s
/// = l.bandwidth 800bps
/// + 1s
/// = q.length 0
/// = l.size 2
/// + 1s
/// < out 1.0.0.1 > 2.0.0.2 udp len 100 ; time 1000000002.000000000
/// + 0.5s
/// < out 1.0.0.2 > 2.0.0.2 udp len 50 ; time 1000000002.500000000
/// > in 1.0.0.3 > 2.0.0.2 udp len 100
/// ! l.reset
/// = l.size 0
/// = l.drops.reset 1
/// ```
#[derive(Element, Args)]
#[element(room = "shape", args = LinkUnqueue, methods, ports = "1/1", processing = "l/h")]
pub struct LinkUnqueue {
    /// How long it takes from one end of the line to the other.
    #[arg]
    latency: Duration,
    /// How much enters the line.
    #[arg]
    bandwidth: Bandwidth,
}

#[handlers]
impl LinkUnqueue {
    /// How long it takes from one end of the line to the other.
    #[read]
    fn latency(&self) -> Duration {
        self.latency
    }
    /// How much enters the line.
    #[read]
    fn bandwidth(&self) -> Bandwidth {
        self.bandwidth
    }
}

/// What is on the line.
#[derive(Default, Local)]
#[local(methods)]
pub struct Line {
    /// Packets, with the time when they come out.
    packets: VecDeque<(Time, Packet)>,
    /// When the next packet may enter.
    free: Time,
    /// Whether the next packet has waited for that.
    waited: bool,
}

#[handlers]
impl Line {
    /// Packets on the line, or partly on it.
    #[read]
    fn size(&self) -> usize {
        self.packets.len()
    }
    /// Throws away all packets on the line.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        *self = Line::default();
        Ok(())
    }
}

impl Build for LinkUnqueue {
    type Args = LinkUnqueue;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        match args.bandwidth.0 {
            0 => Err(ArgError::new("a line carries something").at("BANDWIDTH")),
            _ => Ok(args),
        }
    }
}

impl LinkUnqueue {
    /// How long it takes until a packet is on the line.
    fn entering(&self, packet: &Packet) -> Duration {
        let bytes = packet.len() as u64 + u64::from(packet.anno_u32(anno::EXTRA_LENGTH));
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bandwidth.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Source for LinkUnqueue {
    type Local = Line;
    type Fate = ();

    fn ask(&self, line: &mut Line, n: usize, cx: &mut Cx) -> Asked {
        let now = cx.now();
        let mut sent = 0;
        while sent < n
            && line.packets.front().is_some_and(|(out, _)| *out <= now)
            && let Some((_, mut packet)) = line.packets.pop_front()
        {
            packet.set_timestamp(now.0);
            cx.emit((), packet);
            sent += 1;
        }
        while line.free <= now {
            let mut batch = cx.pull(0, 1);
            if batch.is_empty() {
                line.waited = false;
                if let Some((out, _)) = line.packets.front() {
                    cx.retry_at(*out);
                }
                return Asked::Empty;
            }
            cx.keep(&mut batch, || line.packets.len());
            let Some(packet) = batch.pop() else { continue };
            // Right behind the one before it, if it stood there already.
            let enters = if line.waited { line.free } else { now };
            (line.free, line.waited) = (enters + self.entering(&packet), true);
            line.packets.push_back((line.free + self.latency, packet));
        }
        let out = line.packets.front().map_or(line.free, |(out, _)| *out);
        Asked::At(out.min(line.free))
    }

    fn held(&self, line: &Line) -> usize {
        line.packets.len()
    }
}
