//! `Error`: makes a configuration invalid.

use castanet_element::prelude::*;

/// Makes a configuration invalid: an error as soon as the router is built.
///
/// It may have any ports and arguments: programs that transform configurations put it in
/// place of unknown elements. It is no error until the element is built.
///
/// ```click
/// elementclass Unknown { input -> Error(anything, at all) -> output }
/// in -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "info", args = ErrorArgs, ports = "-/-", processing = "a/a", alias = "ErrorElement")]
pub struct Error;

#[derive(Args)]
pub struct ErrorArgs {
    /// Any arguments, which are ignored.
    #[arg(rest)]
    #[allow(dead_code)]
    rest: Vec<Words>,
}

impl Build for Error {
    type Args = ErrorArgs;

    fn build(_: ErrorArgs, _: &Setup) -> Result<Self, ArgError> {
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
