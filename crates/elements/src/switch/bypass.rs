//! `Bypass`: sends packets through optional elements.

use castanet_element::prelude::*;

/// Sends packets straight on or, while active, through a branch.
///
/// On a push path an active Bypass sends packets from input 0 to output 1. On a pull path it pulls
/// from input 1 instead of input 0. The branch may lead back to input 1; then it is the same in
/// both cases.
///
/// ```click
/// in -> b :: Bypass -> out;  b[1] -> Paint(7) -> [1] b
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ! b.active true
/// = b.active true
/// > in  1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp ; paint 7
/// ```
///
/// ```click
/// in -> Queue -> b :: Bypass(ACTIVE true, INLINE true) -> Unqueue -> out;  b[1] -> Paint(7) -> [1] b
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; paint 7
/// ! b.active false
/// > in  1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "switch", args = BypassArgs, ports = "1-2/1-2", processing = "a/a")]
pub struct Bypass {
    /// Whether packets take the branch.
    #[arg(live)]
    active: bool,
    inputs: usize,
    outputs: usize,
}

#[derive(Args)]
pub struct BypassArgs {
    /// Whether packets take the branch.
    #[arg(default = false)]
    active: bool,
    /// Whether Click removes the element when the router is initialized; ignored, it always stays
    /// here.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    inline: bool,
}

#[derive(Fate)]
pub enum BypassExit {
    /// Packets that go straight on, or come back from the branch.
    Straight,
    /// Packets that take the branch.
    #[optional]
    Round,
}

impl Build for Bypass {
    type Args = BypassArgs;

    fn build(args: BypassArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(Bypass { active: args.active, inputs: setup.inputs, outputs: setup.outputs })
    }
}

impl PerBatch for Bypass {
    type On = on::Any;
    type Local = ();
    type Fate = BypassExit;

    fn batch(&self, _: &mut (), port: usize, batch: Batch, cx: &mut Cx) {
        // Pulled packets leave by the output that was pulled.
        let is_bypassed = match cx.pulling_output() {
            Some(output) => output == 1,
            None => self.active && port == 0 && self.outputs > 1,
        };
        cx.emit_batch(if is_bypassed { BypassExit::Round } else { BypassExit::Straight }, batch);
    }

    fn pull_input(&self, output: usize) -> Option<usize> {
        Some(usize::from(self.active && output == 0 && self.inputs > 1))
    }
}
