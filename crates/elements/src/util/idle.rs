//! `Idle`: neither sends nor pulls packets.

use castanet_element::prelude::*;

/// Connects ports that must be connected: sends no packets and pulls none.
///
/// It discards packets that are pushed to it.
///
/// ```click
/// in -> Idle -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "util", ports = "-/-", processing = "a/a", alias = "SimpleIdle")]
pub struct Idle;

impl PerBatch for Idle {
    type On = on::Any;
    type Local = ();
    type Fate = Never;

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }

    fn is_pulling(&self, _: &()) -> bool {
        false
    }
}
