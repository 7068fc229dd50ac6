//! `BenchRing`: replays packets from memory, and takes them back.

use super::traffic::{FRAME, frames};
use castanet_engine::prelude::*;
use std::collections::VecDeque;

/// Replays packets from memory and takes back what comes round.
///
/// Frames go round in turn, so that as many are in use as are asked for;
/// each gets its 64 bytes copied in anew, as from a device.
///
/// ```click
/// r :: BenchRing(64) -> r
/// ```
#[derive(Element)]
#[element(ports = "1-/1", processing = "h/h")]
pub(crate) struct BenchRing {
    /// How many frames are in use.
    #[arg]
    frames: usize,
}

/// The frames, and when which were sent.
#[derive(Default, Local)]
#[local(methods)]
pub(crate) struct Ring {
    waiting: VecDeque<Batch>,
    templates: Vec<[u8; FRAME]>,
    next: usize,
    first: Option<Time>,
    last: Time,
    /// Packets sent since the first burst, the last burst excepted.
    count: u64,
    burst: u64,
}

#[handlers]
impl Ring {
    /// Packets sent between the first burst and the last.
    #[read]
    fn count(&self) -> u64 {
        self.count
    }
    /// Nanoseconds between the first burst and the last.
    #[read]
    fn elapsed(&self) -> u64 {
        self.last.since(self.first.unwrap_or(self.last))
    }
    /// Starts counting anew.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        (self.first, self.count, self.burst) = (None, 0, 0);
        Ok(())
    }
}

impl Source for BenchRing {
    type Local = Ring;
    type Fate = ();

    fn begin(&self, ring: &mut Ring, cx: &mut Cx) -> Result<(), ArgError> {
        ring.templates = frames();
        let mut batch = Batch::new();
        for _ in 0..self.frames {
            let packet = cx.pool().alloc();
            batch.push(packet.ok_or_else(|| ArgError::new("the pool has too few frames"))?);
            if batch.len() == cx.burst() {
                ring.waiting.push_back(std::mem::take(&mut batch));
            }
        }
        ring.waiting.push_back(batch);
        Ok(())
    }

    fn ask(&self, ring: &mut Ring, _: usize, cx: &mut Cx) -> Asked {
        let Some(mut batch) = ring.waiting.pop_front() else { return Asked::Empty };
        for packet in batch.iter_mut() {
            packet.replace_contents(&ring.templates[ring.next]);
            ring.next = (ring.next + 1) % ring.templates.len();
        }
        ring.first.get_or_insert(cx.now());
        ring.last = cx.now();
        ring.count += ring.burst;
        ring.burst = batch.len() as u64;
        cx.received(batch.len());
        cx.emit_batch((), batch);
        Asked::Again
    }
}

impl PerBatch for BenchRing {
    type On = on::Any;
    type Local = Ring;
    type Fate = ();

    fn batch(&self, ring: &mut Ring, _: usize, batch: Batch, cx: &mut Cx) {
        cx.consumed(batch.len());
        ring.waiting.push_back(batch);
    }

    fn held(&self, _: &Ring) -> usize {
        0
    }
}
