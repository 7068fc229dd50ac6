//! `Discard`: discards all packets.

use castanet_element::prelude::*;

/// Discards all packets.
///
/// If its input is pulled, it pulls whenever there are packets. Discarded packets count as
/// delivered, not as dropped.
///
/// ```click
/// in -> d :: Discard
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.1 > 2.0.0.2 tcp
/// = d.count 2
/// ! d.active false
/// = d.active false
/// > in 1.0.0.1 > 2.0.0.2 udp
/// = d.count 3
/// ! d.reset_counts
/// = d.count 0
/// ```
#[derive(Clone, Element)]
#[element(room = "util", alias = "DiscardNoFree")]
pub struct Discard {
    /// Whether the element pulls packets; packets that are pushed to it are always discarded.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// Number of packets that a turn of the task pulls under the name `click`; else, the burst size of
    /// the engine decides.
    #[arg(keyword, default = 1)]
    burst: u32,
}

/// Counter of the packets that one worker has discarded.
#[derive(Default, Local)]
#[write(reset_counts)]
pub struct DiscardState {
    /// Number of discarded packets.
    #[read]
    #[portable]
    count: u64,
}

impl PerBatch for Discard {
    type On = on::Any;
    type Local = DiscardState;
    type Fate = Never;

    fn batch(&self, state: &mut DiscardState, _: usize, batch: Batch, cx: &mut Cx) {
        state.count += batch.len() as u64;
        cx.consume(batch);
    }

    fn is_pulling(&self, _: &DiscardState) -> bool {
        self.active
    }

    fn packets_a_turn(&self) -> usize {
        self.burst as usize
    }
}
