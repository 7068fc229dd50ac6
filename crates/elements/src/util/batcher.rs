//! `Batcher`: a name that configurations of other engines have.

use castanet_engine::prelude::*;

/// Passes packets on in the batches in which they come.
///
/// Packets always travel in batches here, so what makes batches of packets
/// elsewhere, and packets of batches, has nothing to do: whatever its arguments
/// are. `MinBatch` makes batches longer.
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
    /// Sizes and times, elsewhere.
    #[arg(rest)]
    #[expect(dead_code, reason = "for configurations that say so")]
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
