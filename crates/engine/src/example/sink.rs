//! The end of packets in an example whose cost is measured.

use crate::class::{Class, per_batch};
use crate::cx::Cx;
use crate::element::{Never, PerBatch};
use castanet_macros::Element;
use castanet_packet::Batch;

/// Stands for the element of this name that collects: it lets packets go.
#[derive(Element)]
#[element(processing = "a/a", ports = "1-/0")]
pub(super) struct ExampleOutput;

impl PerBatch for ExampleOutput {
    type On = crate::on::Any;
    type Local = ();
    type Fate = Never;
    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }
}

/// The class that lets packets go.
pub(super) static SINK: Class = per_batch::<ExampleOutput>();
