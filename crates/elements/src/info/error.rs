//! `Error`: no router.

use castanet_engine::prelude::*;

/// Refuses the configuration that it stands in.
///
/// It may have any ports and arguments: programs put it in the place of what they do
/// not know. Where nothing is built from it, it does no harm.
///
/// ```click
/// elementclass Unknown { input -> Error(anything, at all) -> output }
/// in -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "info", args = Anything, ports = "-/-", processing = "a/a", alias = "ErrorElement")]
pub struct Error;

#[derive(Args)]
pub struct Anything {
    /// Whatever.
    #[arg(rest)]
    #[allow(dead_code)]
    rest: Vec<Words>,
}

impl Build for Error {
    type Args = Anything;

    fn build(_: Anything, _: &Setup) -> Result<Self, ArgError> {
        Err(ArgError::new("this element stands for one that there is not"))
    }
}

impl PerBatch for Error {
    type On = on::Any;
    type Local = ();
    type Fate = Never;

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }
}
