//! Arguments of elements with any number of outputs.

use castanet_element::prelude::*;

/// The argument of `Tee` and `PullTee`.
#[derive(Args)]
pub struct TeeArgs {
    /// Number of outputs; it must be that of the connected outputs.
    #[arg]
    n: Option<u32>,
}

impl TeeArgs {
    /// The number of outputs. Fails unless it is N, if N is given.
    pub(super) fn check(&self, setup: &Setup) -> Result<u8, ArgError> {
        let outputs = setup.outputs;
        if self.n.is_some_and(|n| n as usize != outputs) {
            return Err(ArgError::new(format!(
                "N does not agree with {outputs} connected outputs"
            ))
            .click(format!("{outputs} outputs implies {outputs} arms")));
        }
        u8::try_from(outputs).map_err(|_| ArgError::new("more outputs than 255"))
    }
}

/// The output with this number; a negative number drops. Fails if there is no such output.
pub(super) fn output(number: i32, outputs: usize) -> Result<Port, ArgError> {
    let Ok(number) = usize::try_from(number) else { return Ok(Port::DROP) };
    Port::new(number).filter(|_| number < outputs).ok_or_else(|| {
        ArgError::new(format!("there is no output {number}"))
            .click(format!("output must be < {outputs}"))
            .help(format!("OUTPUT is less than {outputs}, or -1 to drop"))
    })
}
