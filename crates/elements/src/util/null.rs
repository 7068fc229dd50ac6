//! `Null`: passes packets on unchanged.

use castanet_element::prelude::*;

/// Passes every packet on unchanged.
///
/// It gives a name to a point of the graph at which several paths meet, and it shows the cost of an
/// element in measurements.
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
