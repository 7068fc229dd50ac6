//! `BenchRing`: replays packets from memory, and takes them back.

use super::traffic::{FLOWS, FRAME, Frames, Traffic, frames};
use castanet_element::prelude::*;
use std::collections::VecDeque;

/// Time after which a ring looks again whether packets have come back.
const PAUSE: Duration = Duration::from_micros(1);

/// Number of packets whose frames are prefetched before as many others are filled. With fewer than twice as many
/// flows none are.
const AHEAD: usize = 4;

/// Replays packets from memory and takes back what comes round.
///
/// Frames go round in turn, so that as many are in use as are asked for;
/// each gets its bytes copied in anew, as from a device.
///
/// ```click
/// r :: BenchRing(64) -> r
/// ```
#[derive(Element)]
#[element(ports = "1-/1", processing = "h/h")]
pub(crate) struct BenchRing {
    /// Number of frames in use.
    #[arg]
    frames: usize,
    /// Number of packets to send.
    #[arg(keyword, default = u64::MAX)]
    limit: u64,
    /// Kind of packets.
    #[arg(keyword, default = Traffic::Plain)]
    traffic: Traffic,
    /// Length of the packets in bytes.
    #[arg(keyword, default = 64, range = 64..=1500)]
    length: usize,
    /// Number of flows.
    #[arg(keyword, default = FLOWS, range = 1..)]
    flows: usize,
    /// Number of packets to send at once; 0 for what a device receives at once.
    #[arg(keyword, default = 0, range = 0..=256)]
    burst: usize,
}

/// The frames that wait for their turn.
#[derive(Default, Local)]
pub(crate) struct Ring {
    waiting: VecDeque<Batch>,
    templates: Option<Frames>,
    /// The same, filled up to the length of the packets, where they are longer.
    long: Vec<Vec<u8>>,
    next: usize,
    /// Packets sent.
    #[read]
    count: u64,
    /// Packets that came back.
    #[read]
    returned: u64,
}

impl BenchRing {
    fn burst(&self, cx: &Cx) -> usize {
        if self.burst > 0 { self.burst } else { cx.long_burst(cx.burst()) }
    }
}

impl Source for BenchRing {
    type Local = Ring;
    type Fate = ();

    fn init(&self, ring: &mut Ring, cx: &mut Cx) -> Result<(), ArgError> {
        let templates = frames(self.traffic, self.flows);
        if self.length > FRAME {
            let filled = |frame: &[u8; FRAME]| [&frame[..], &vec![0; self.length - FRAME]].concat();
            ring.long = templates.iter().map(filled).collect();
        }
        ring.templates = Some(templates);
        let mut batch = Batch::new();
        for _ in 0..self.frames {
            let packet = cx.pool().alloc();
            batch.push(packet.ok_or_else(|| ArgError::new("the pool has too few frames"))?);
            if batch.len() == self.burst(cx) {
                ring.waiting.push_back(std::mem::take(&mut batch));
            }
        }
        if !batch.is_empty() {
            ring.waiting.push_back(batch);
        }
        Ok(())
    }

    fn produce(&self, ring: &mut Ring, _: usize, cx: &mut Cx) -> NextRun {
        if ring.count >= self.limit {
            return NextRun::Done;
        }
        let Some(templates) = &ring.templates else { return NextRun::Done };
        let Some(mut batch) = ring.waiting.pop_front() else {
            // Packets that come back wake no source.
            return NextRun::At(cx.now() + PAUSE);
        };
        // Apart, as the length of short ones is a constant, and the copy a few instructions.
        match ring.long.is_empty() {
            true => receive(&mut batch, &templates[..], ring.next),
            false => receive(&mut batch, &ring.long, ring.next),
        }
        ring.next = (ring.next + batch.len()) % self.flows;
        ring.count += batch.len() as u64;
        cx.count_received(batch.len());
        cx.emit_batch((), batch);
        NextRun::Again
    }
}

impl PerBatch for BenchRing {
    type On = on::Any;
    type Local = Ring;
    type Fate = ();

    fn batch(&self, ring: &mut Ring, _: usize, mut batch: Batch, cx: &mut Cx) {
        cx.count_consumed(batch.len());
        ring.returned += batch.len() as u64;
        // Bursts that the path has split are joined to whole ones again, as in a device's ring.
        if let Some(last) = ring.waiting.back_mut() {
            let room = self.burst(cx).saturating_sub(last.len());
            if room > 0 {
                let rest = batch.split_off(room.min(batch.len()));
                last.append(&mut batch);
                batch = rest;
            }
        }
        if !batch.is_empty() {
            ring.waiting.push_back(batch);
        }
    }

    fn held(&self, _: &Ring) -> usize {
        0
    }
}

/// Fills the packets in turn with the templates from index `next` on.
#[inline]
fn receive(batch: &mut Batch, templates: &[impl AsRef<[u8]>], next: usize) {
    let mut packets = batch.as_mut_slice();
    let mut fresh = &templates[next..];
    while !packets.is_empty() {
        let (now, later) = packets.split_at_mut(fresh.len().min(packets.len()));
        receive_each(now, &fresh[..now.len()]);
        (packets, fresh) = (later, templates);
    }
}

/// Fills each packet with the bytes at its place.
#[inline]
fn receive_each(packets: &mut [Packet], bytes: &[impl AsRef<[u8]>]) {
    let (groups, last) = packets.as_chunks_mut::<AHEAD>();
    let (bytes, rest) = bytes.as_chunks::<AHEAD>();
    for (n, bytes) in (0..groups.len()).zip(bytes) {
        if let Some(next) = groups.get(n + 1) {
            next.iter().for_each(Packet::prefetch_contents);
        }
        groups[n].iter_mut().zip(bytes).for_each(|(packet, bytes)| packet.receive(bytes.as_ref()));
    }
    last.iter_mut().zip(rest).for_each(|(packet, bytes)| packet.receive(bytes.as_ref()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_get_the_bytes_of_the_templates_in_turn() {
        for (flows, count, next) in
            [(1, 64, 0), (3, 64, 2), (7, 67, 5), (8, 64, 3), (256, 64, 250), (256, 3, 0)]
        {
            let templates: Vec<[u8; FRAME]> = (0..flows).map(|n| [n as u8; FRAME]).collect();
            let mut batch = Batch::new();
            (0..count).for_each(|_| batch.push(Packet::from_bytes(&[0xff; 2 * FRAME])));
            receive(&mut batch, &templates, next);
            for (n, packet) in batch.iter().enumerate() {
                assert_eq!(packet.bytes(), templates[(next + n) % flows], "{flows}: {n}");
            }
        }
    }
}
