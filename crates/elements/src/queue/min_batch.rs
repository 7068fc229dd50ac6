//! `MinBatch`: collects packets into bursts of a minimum length.

use castanet_element::prelude::*;

/// Collects packets until they make a burst of a minimum length.
///
/// Each worker collects its own packets. Without TIMER, packets may wait forever for the rest of
/// their burst.
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
    /// Minimum number of packets in a burst.
    #[arg(default = 32, range = 1..)]
    burst: usize,
    /// Time in microseconds after which the collected packets go on if no further packets come;
    /// negative for no limit.
    #[arg(default = -1)]
    timer: i64,
}

/// The packets of one worker that wait for their burst to be complete.
#[derive(Default, Local)]
#[local(methods)]
pub struct MinBatchState {
    #[portable]
    packets: Batch,
    due: Time,
}

#[handlers]
impl MinBatchState {
    /// Number of packets that wait.
    #[read]
    fn length(&self) -> usize {
        self.packets.len()
    }
}

impl PerBatch for MinBatch {
    type On = on::Any;
    type Local = MinBatchState;
    type Fate = ();

    fn batch(&self, state: &mut MinBatchState, _: usize, mut batch: Batch, cx: &mut Cx) {
        cx.keep(&mut batch, || state.packets.len());
        state.packets.append(&mut batch);
        if state.packets.len() >= self.burst {
            return cx.emit_batch((), std::mem::take(&mut state.packets));
        }
        self.schedule(state, cx);
    }

    fn after_take_state(&self, state: &mut MinBatchState, cx: &mut Cx) {
        if !state.packets.is_empty() {
            self.schedule(state, cx);
        }
    }

    fn run_timer(&self, state: &mut MinBatchState, cx: &mut Cx) {
        // A burst that was sent in the meantime may have requested this call.
        if cx.now() >= state.due {
            cx.emit_batch((), std::mem::take(&mut state.packets));
        }
    }

    fn held(&self, state: &MinBatchState) -> usize {
        state.packets.len()
    }
}

impl MinBatch {
    /// Sets the time at which the packets go on.
    fn schedule(&self, state: &mut MinBatchState, cx: &mut Cx) {
        if let Ok(timer) = u64::try_from(self.timer) {
            state.due = cx.now() + Duration::from_micros(timer);
            cx.set_timer(state.due);
        }
    }
}
