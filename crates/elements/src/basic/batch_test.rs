//! `BatchTest`: a line about each burst.

use castanet_engine::prelude::*;

/// Writes a line about each burst and how many packets it has, to standard error.
///
/// ```click
/// in -> b :: BatchTest -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ~ b: burst of 1
/// ```
#[derive(Element)]
#[element(args = Nothing, alias = "BatchElementTest")]
pub struct BatchTest {
    name: String,
}

/// There is nothing to say.
#[derive(Args)]
pub struct Nothing {}

impl Build for BatchTest {
    type Args = Nothing;

    fn build(_: Nothing, setup: &Setup) -> Result<Self, ArgError> {
        Ok(BatchTest { name: setup.name.to_owned() })
    }
}

impl PerBatch for BatchTest {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.chatter(&format!("{}: burst of {}", self.name, batch.len()));
        cx.emit_batch((), batch);
    }
}
