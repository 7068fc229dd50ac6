//! `Batcher`: passes batches on unchanged.

use castanet_element::prelude::*;

/// Passes batches on unchanged, for configurations of other engines.
///
/// Packets always travel in batches here, so elements that build batches from packets, or split
/// batches into packets, have no effect. All arguments are accepted and ignored. `MinBatch` makes
/// batches longer.
///
/// ```click
/// in -> Batcher(32, TIMEOUT 10) -> Unbatch -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "util")]
#[element(alias = "BatchFixed", alias = "Debatcher", alias = "Unbatch", alias = "Unbatcher")]
pub struct Batcher {
    /// Sizes and times of batches in other engines; ignored.
    #[arg(rest)]
    #[expect(dead_code, reason = "accepted for configurations of other engines")]
    ignored: Vec<String>,
}

impl PerBatch for Batcher {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.emit_batch((), batch);
    }
}
