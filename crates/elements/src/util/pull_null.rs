//! `PullNull`: passes packets on unchanged on a pull path.

use castanet_element::prelude::*;

/// Passes every packet on unchanged on a pull path.
///
/// Its ports are pull ports, so agnostic elements next to it, such as a `Counter`, become pull
/// elements.
///
/// ```click
/// in -> Queue -> PullNull -> c :: Counter -> Unqueue -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = c.count 1
/// ```
#[derive(Element)]
#[element(room = "util", processing = "l/l")]
pub struct PullNull;

impl PerBatch for PullNull {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.emit_batch((), batch);
    }
}
