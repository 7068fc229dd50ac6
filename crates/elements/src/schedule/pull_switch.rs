//! `PullSwitch`: pulls from one of its inputs.

use castanet_element::args::Names;
use castanet_element::prelude::*;

/// Pulls from one input, which a handler can change.
///
/// A number that is no input's stands for none, as a negative one does. Elements that pull from here wake
/// when an input is chosen that has packets.
///
/// ```click
/// a -> Queue -> [0] s :: PullSwitch -> out
/// b -> Queue -> [1] s
/// > a 1.0.0.1 > 2.0.0.2 udp len 60
/// > b 1.0.1.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// ! s.switch 1
/// = s.switch 1
/// < out 1.0.1.1 > 2.0.0.2 udp len 60
/// ! s.switch -1
/// > b 1.0.1.2 > 2.0.0.2 udp len 60
/// ! s.switch 1
/// < out 1.0.1.2 > 2.0.0.2 udp len 60
/// ! s.switch 2
/// = s.switch -1
/// = s.config -1
/// ```
///
/// ```click
/// in -> q :: Queue -> s :: PullSwitch(-1) -> d :: Discard
/// Idle -> [1] s
/// > in 1.0.0.1 > 2.0.0.2 udp
/// = d.scheduled false
/// = d.count 0
/// ! s.switch 0
/// = d.count 1
/// ```
#[derive(Clone, Element)]
#[element(room = "schedule", args = PullSwitchArgs, methods, ports = "1-/1", processing = "l/l", alias = "SimplePullSwitch")]
pub struct PullSwitch {
    /// The chosen input.
    input: Option<usize>,
    inputs: usize,
}

#[derive(Args)]
pub struct PullSwitchArgs {
    /// Number of the input to pull from; negative for none.
    #[arg(default = 0)]
    input: i64,
}

impl PullSwitch {
    fn new(input: i64, inputs: usize) -> PullSwitch {
        let input = usize::try_from(input).ok().filter(|&input| input < inputs);
        PullSwitch { input, inputs }
    }
}

#[handlers]
impl PullSwitch {
    /// The arguments as they are in effect: the number of the input.
    #[read]
    fn config(&self) -> i64 {
        self.switch()
    }
    /// Number of the input to pull from; -1 for none.
    #[read]
    fn switch(&self) -> i64 {
        self.input.and_then(|input| i64::try_from(input).ok()).unwrap_or(-1)
    }
    /// Sets the input to pull from; negative for none.
    #[write(switch)]
    fn set_switch(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let input = i64::from_arg(text, names).map_err(|e| e.reworded("syntax error"))?;
        Ok(PullSwitch::new(input, self.inputs))
    }
}

impl Build for PullSwitch {
    type Args = PullSwitchArgs;

    fn build(args: PullSwitchArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(PullSwitch::new(args.input, setup.inputs))
    }
}

impl PerBatch for PullSwitch {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        cx.emit_batch((), batch);
    }

    fn pull_input(&self, _: usize) -> Option<usize> {
        self.input
    }
}
