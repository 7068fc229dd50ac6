//! `MinBatch`: bursts of some length.

use castanet_engine::prelude::*;

/// Keeps short bursts back until they have become one of a certain length.
///
/// Each worker waits for itself. Without a time to wait at most, packets may
/// wait for ever.
///
/// ```click
/// in -> m :: MinBatch(3, 1000) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// = m.length 1
/// + 2ms
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = m.length 0
/// ```
#[derive(Element)]
#[element(room = "queue", ports = "1/1", processing = "h/h")]
pub struct MinBatch {
    /// How many packets make a burst.
    #[arg(default = 32, range = 1..)]
    burst: usize,
    /// Microseconds after the last short burst when what there is goes on; negative is never.
    #[arg(default = -1)]
    timer: i64,
}

/// What waits.
#[derive(Default, Local)]
#[local(methods)]
pub struct Waiting {
    packets: Batch,
    due: Time,
}

#[handlers]
impl Waiting {
    /// How many packets wait.
    #[read]
    fn length(&self) -> usize {
        self.packets.len()
    }
}

impl PerBatch for MinBatch {
    type On = on::Any;
    type Local = Waiting;
    type Fate = ();

    fn batch(&self, waiting: &mut Waiting, _: usize, mut batch: Batch, cx: &mut Cx) {
        cx.keep(&mut batch, || waiting.packets.len());
        waiting.packets.append(&mut batch);
        if waiting.packets.len() >= self.burst {
            return cx.emit_batch((), std::mem::take(&mut waiting.packets));
        }
        if let Ok(timer) = u64::try_from(self.timer) {
            waiting.due = cx.now() + Duration::from_micros(timer);
            cx.wake_at(waiting.due);
        }
    }

    fn wake(&self, waiting: &mut Waiting, cx: &mut Cx) {
        // The call may be one that a burst sent on meanwhile had asked for.
        if cx.now() >= waiting.due {
            cx.emit_batch((), std::mem::take(&mut waiting.packets));
        }
    }

    fn held(&self, waiting: &Waiting) -> usize {
        waiting.packets.len()
    }
}
