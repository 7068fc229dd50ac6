//! `StaticPullSwitch`: pulls from one fixed input.

use castanet_element::prelude::*;

/// Pulls from one fixed input.
///
/// ```click
/// a -> q :: Queue -> [0] s :: StaticPullSwitch(1) -> out
/// b -> Queue -> [1] s
/// > a 1.0.0.1 > 2.0.0.2 udp
/// > b 1.0.1.1 > 2.0.0.2 udp
/// < out 1.0.1.1 > 2.0.0.2 udp
/// = q.length 1
/// ```
///
/// ```click
/// in -> q :: Queue -> StaticPullSwitch(5) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// = q.length 1
/// ```
#[derive(Element)]
#[element(room = "schedule", args = StaticPullSwitchArgs, ports = "-/1", processing = "l/l")]
pub struct StaticPullSwitch {
    input: Option<usize>,
}

#[derive(Args)]
pub struct StaticPullSwitchArgs {
    /// Number of the input to pull from; none is pulled if there is no such input.
    #[arg]
    input: i64,
}

impl Build for StaticPullSwitch {
    type Args = StaticPullSwitchArgs;

    fn build(args: StaticPullSwitchArgs, setup: &Setup) -> Result<Self, ArgError> {
        let input = usize::try_from(args.input).ok();
        Ok(StaticPullSwitch { input: input.filter(|&input| input < setup.inputs) })
    }
}

impl Source for StaticPullSwitch {
    type Local = ();
    type Fate = ();

    fn produce(&self, _: &mut (), n: usize, cx: &mut Cx) -> NextRun {
        if let Some(input) = self.input {
            let batch = cx.pull(input, n);
            cx.emit_batch((), batch);
        }
        NextRun::Empty
    }
}
