//! The arguments of `ReplayUnqueue`.

use super::replay_unqueue::ReplayUnqueue;
use castanet_element::prelude::*;
use castanet_kit::formula::Formula;

#[derive(Args)]
pub struct ReplayUnqueueArgs {
    /// Number of loops after which the router is stopped; no limit if negative, none at all if 0.
    #[arg(keyword, default = -1)]
    pub(super) stop: i64,
    /// Time in whole seconds after which the router is stopped; 0 for never.
    #[arg(keyword, default = Duration::ZERO, shown = "0")]
    pub(super) stop_time: Duration,
    /// An argument of FastClick without effect: packets are shared until they are written to.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    pub(super) quick_clone: bool,
    /// An argument of FastClick without effect: dry inputs are always detected.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    pub(super) use_signal: bool,
    /// Whether to replay.
    #[arg(keyword, default = true)]
    pub(super) active: bool,
    /// Whether to report the start of each loop.
    #[arg(keyword, default = false)]
    pub(super) verbose: bool,
    /// An argument of FastClick without effect: packets are always freed at the end.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    pub(super) freeonterminate: bool,
    /// The most packets to store; no limit if negative.
    #[arg(keyword, default = -1)]
    pub(super) limit: i64,
    /// Speed in percent of the recorded one; 0 for as fast as possible.
    #[arg(keyword, default = 0)]
    pub(super) timing: u32,
    /// Speed in percent as a function of `x`, the seconds since the start, or one of the functions `@1` and
    /// `@2` of FastClick, which go up to TIMING in STOP_TIME; `@0` for none.
    #[arg(keyword)]
    pub(super) timing_fnt: Option<String>,
    /// The most packets to push at a time.
    #[arg(keyword, default = 64, range = 1..)]
    pub(super) burst: usize,
}

impl Build for ReplayUnqueue {
    type Args = ReplayUnqueueArgs;

    fn build(args: ReplayUnqueueArgs, setup: &Setup) -> Result<Self, ArgError> {
        let ReplayUnqueueArgs { stop, active, timing, stop_time, verbose, limit, burst, .. } = args;
        let (name, limit) = (setup.name.to_owned(), usize::try_from(limit).unwrap_or(usize::MAX));
        let function = args.timing_fnt.map(|text| function(&text, timing, stop_time)).transpose();
        let function = function.map_err(|error| ArgError::new(error).at("TIMING_FNT"))?.flatten();
        Ok(ReplayUnqueue { stop, active, timing, function, name, stop_time, verbose, limit, burst })
    }
}

/// The function of TIMING_FNT. Those with names are of the Metron paper (NSDI 2018): between 1 and
/// TIMING times the recorded speed, in waves that decline until STOP_TIME.
fn function(text: &str, timing: u32, stop_time: Duration) -> Result<Option<Formula>, String> {
    let wave = match text {
        "@0" => return Ok(None),
        "@1" => "sin(-pi/2 + (x/10)^2.5)",
        "@2" => "-squarewave(((x + 40) * 1/50) ^ 5)",
        _ => return Formula::parse(text).map(Some),
    };
    let seconds = stop_time.as_secs();
    let text = format!("100 * ((({wave}) * (-x/{seconds} + 1) + 1) * (({timing} - 1) / 2) + 1)");
    Formula::parse(&text).map(Some)
}
