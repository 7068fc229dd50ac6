//! `PullSwitch`: pulls from one of its inputs.

use castanet_element::args::Names;
use castanet_element::prelude::*;

/// Pulls from one input, which a handler can change.
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
/// ```
#[derive(Clone, Element)]
#[element(room = "schedule", args = PullSwitchArgs, methods, ports = "1-/1", processing = "l/l", alias = "SimplePullSwitch")]
pub struct PullSwitch {
    input: i64,
    inputs: usize,
}

#[derive(Args)]
pub struct PullSwitchArgs {
    /// Number of the input to pull from; negative for none.
    #[arg(default = 0)]
    input: i64,
}

impl PullSwitch {
    fn checked(self) -> Result<Self, ArgError> {
        match usize::try_from(self.input).is_ok_and(|input| input >= self.inputs) {
            true => Err(ArgError::new(format!("input must be < {}", self.inputs))),
            false => Ok(self),
        }
    }
}

#[handlers]
impl PullSwitch {
    /// Number of the input to pull from; negative for none.
    #[read]
    fn switch(&self) -> i64 {
        self.input
    }
    /// Sets the input to pull from; negative for none.
    #[write(switch)]
    fn set_switch(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        PullSwitch { input: i64::from_arg(text, names)?, inputs: self.inputs }.checked()
    }
}

impl Build for PullSwitch {
    type Args = PullSwitchArgs;

    fn build(args: PullSwitchArgs, setup: &Setup) -> Result<Self, ArgError> {
        PullSwitch { input: args.input, inputs: setup.inputs }.checked()
    }
}

impl Source for PullSwitch {
    type Local = ();
    type Fate = ();

    fn produce(&self, _: &mut (), n: usize, cx: &mut Cx) -> NextRun {
        if let Ok(input) = usize::try_from(self.input) {
            let batch = cx.pull(input, n);
            cx.emit_batch((), batch);
        }
        NextRun::Empty
    }
}
