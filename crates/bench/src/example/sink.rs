//! The end of packets in an example whose cost is measured.

use castanet_element::class::{Class, per_batch};
use castanet_element::cx::Cx;
use castanet_element::element::PerBatch;
use castanet_element::fate::Never;
use castanet_element::prelude::Element;
use castanet_packet::Batch;

/// Takes the place of the collecting element of the same name: frees the packets.
#[derive(Element)]
#[element(processing = "a/a", ports = "1-/0")]
pub(super) struct ExampleOutput;

impl PerBatch for ExampleOutput {
    type On = castanet_element::on::Any;
    type Local = ();
    type Fate = Never;
    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }
}

/// The class that lets packets go.
pub(super) static SINK: Class = per_batch::<ExampleOutput>();
