//! Arguments of elements with any number of outputs, and the element of `Tee` and `PullTee`.

use castanet_element::prelude::*;
use std::marker::PhantomData;

/// The argument of `Tee` and `PullTee`.
#[derive(Args)]
pub(crate) struct TeeArgs {
    /// Number of outputs; it must be that of the connected outputs.
    #[arg]
    n: Option<u32>,
}

/// An element of the class `C` that copies every packet to all outputs.
pub(crate) struct PacketCopier<C> {
    outputs: u8,
    class: PhantomData<C>,
}

impl<C> Build for PacketCopier<C> {
    type Args = TeeArgs;

    fn build(args: TeeArgs, setup: &Setup) -> Result<Self, ArgError> {
        let outputs = setup.outputs;
        if args.n.is_some_and(|n| n as usize != outputs) {
            return Err(ArgError::new(format!(
                "N does not agree with {outputs} connected outputs"
            ))
            .click(format!("{outputs} outputs implies {outputs} arms")));
        }
        let outputs = u8::try_from(outputs);
        let outputs = outputs.map_err(|_| ArgError::new("more outputs than 255"))?;
        Ok(PacketCopier { outputs, class: PhantomData })
    }
}

impl<C: Send + Sync> PerBatch for PacketCopier<C>
where
    Self: Describe,
{
    type On = on::Any;
    type Local = ();
    type Fate = Port;

    fn batch(&self, _: &mut (), _: usize, mut batch: Batch, cx: &mut Cx) {
        cx.duplicate(&mut batch, self.outputs.saturating_sub(1), |cx, number, copies| {
            cx.emit_batch(Port::nth(number + 1), copies);
        });
        cx.emit_batch(Port::nth(0), batch);
    }
}

/// The output with this number; a negative number drops. Fails if there is no such output.
pub(super) fn output(number: i32, outputs: usize) -> Result<Port, ArgError> {
    let Ok(number) = usize::try_from(number) else { return Ok(Port::DROP) };
    Port::new(number).filter(|_| number < outputs).ok_or_else(|| {
        ArgError::new(format!("there is no output {number}"))
            .click(format!("output must be < {outputs}"))
            .unplaced()
            .help(format!("OUTPUT is less than {outputs}, or -1 to drop"))
    })
}
