//! The arguments of `ReplayUnqueue`.

use super::replay_unqueue::ReplayUnqueue;
use castanet_element::prelude::*;

#[derive(Args)]
pub struct ReplayUnqueueArgs {
    /// Number of loops after which the router is stopped; no limit if negative.
    #[arg(keyword, default = -1)]
    pub(super) stop: i64,
    /// Time after which the router is stopped; 0 for never.
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
    /// The most packets to push at a time.
    #[arg(keyword, default = 64, range = 1..)]
    pub(super) burst: usize,
}

impl Build for ReplayUnqueue {
    type Args = ReplayUnqueueArgs;

    fn build(args: ReplayUnqueueArgs, setup: &Setup) -> Result<Self, ArgError> {
        let ReplayUnqueueArgs { stop, active, timing, stop_time, verbose, limit, burst, .. } = args;
        let name = setup.name.to_owned();
        Ok(ReplayUnqueue { stop, active, timing, name, stop_time, verbose, limit, burst })
    }
}
