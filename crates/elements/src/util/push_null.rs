//! `PushNull`: passes packets on unchanged on a push path.

use castanet_element::prelude::*;

/// Passes every packet on unchanged on a push path.
///
/// Its ports are push ports, so agnostic elements next to it, such as a `Counter`, become push
/// elements.
///
/// ```click
/// in -> PushNull -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "util", processing = "h/h")]
pub struct PushNull;

impl PerBatch for PushNull {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.emit_batch((), batch);
    }
}
