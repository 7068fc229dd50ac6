//! `Null`: nothing at all.

use castanet_engine::prelude::*;

/// Passes every packet on unchanged.
///
/// A name for a place in the graph, where several ways meet; or, for
/// measurements, what an element costs that does nothing.
///
/// ```click
/// in -> Null -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "util", alias = "NullElement", alias = "Null1", alias = "Null2", alias = "Null3")]
#[element(alias = "Null4", alias = "Null5", alias = "Null6", alias = "Null7", alias = "Null8")]
pub struct Null;

impl PerBatch for Null {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.emit_batch((), batch);
    }
}
