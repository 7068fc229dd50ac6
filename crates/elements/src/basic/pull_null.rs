//! `PullNull`: nothing at all.

use castanet_engine::prelude::*;

/// Passes every packet on unchanged, in a place where packets are pulled.
///
/// Decides for elements that could do either, such as a `Counter` between two
/// others of that kind.
///
/// ```click
/// Idle -> PullNull -> c :: Counter -> Discard
/// = c.count 0
/// ```
#[derive(Element)]
#[element(processing = "l/l")]
pub struct PullNull;

impl PerBatch for PullNull {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.emit_batch((), batch);
    }
}
