//! `Bypass`: another way round, when it is wanted.

use castanet_engine::prelude::*;

/// Sends packets straight on or, while active, round by a second way.
///
/// Where it pushes, an active one sends what comes in on its first input out of
/// its second output; where it is pulled, it pulls its second input instead of
/// the first. The way round may come back to its second input, and is then the
/// same in both cases.
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
#[element(room = "switch", args = Choice, ports = "1-2/1-2", processing = "a/a")]
pub struct Bypass {
    /// Whether packets go round.
    #[arg(live)]
    active: bool,
    inputs: usize,
    outputs: usize,
}

#[derive(Args)]
pub struct Choice {
    /// Whether packets go round.
    #[arg(default = false)]
    active: bool,
    /// Whether Click leaves the element between its neighbours; here it always stays.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    inline: bool,
}

#[derive(Fate)]
pub enum Way {
    /// Packets that go straight on, or come back from the way round.
    Straight,
    /// Packets that go round.
    #[optional]
    Round,
}

impl Build for Bypass {
    type Args = Choice;

    fn build(args: Choice, setup: &Setup) -> Result<Self, ArgError> {
        Ok(Bypass { active: args.active, inputs: setup.inputs, outputs: setup.outputs })
    }
}

impl PerBatch for Bypass {
    type On = on::Any;
    type Local = ();
    type Fate = Way;

    fn batch(&self, _: &mut (), port: usize, batch: Batch, cx: &mut Cx) {
        // What was pulled leaves by the output that was pulled.
        let round = match cx.pulled() {
            Some(output) => output == 1,
            None => self.active && port == 0 && self.outputs > 1,
        };
        cx.emit_batch(if round { Way::Round } else { Way::Straight }, batch);
    }

    fn behind(&self, output: usize) -> Option<usize> {
        Some(usize::from(self.active && output == 0 && self.inputs > 1))
    }
}
