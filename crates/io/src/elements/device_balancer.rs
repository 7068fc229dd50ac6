//! `DeviceBalancer`: moves flows of a device between workers.

use super::device_balancer_args::{DeviceBalancerArgs, RssMethod};
use super::device_balancer_state::DeviceBalancerState;
use castanet_element::control::ControlWaker;
use castanet_element::prelude::*;

/// Balances the load of the workers that receive from a device: moves flows between its queues.
///
/// A device spreads packets over its queues by the lower bits of their hashes, which select an entry
/// of its redirection table. This element changes the table every TIMER milliseconds. With METHOD
/// `rsspp` (RSS++, Barbette et al., CoNEXT 2019) it measures the load of each worker and the packets
/// of each entry, and moves entries until the loads are alike, those with most packets first: few
/// flows change their worker, and those that need a worker for themselves get one. `rss` spreads
/// entries evenly, `rssrr` moves each entry to the next queue in each step.
///
/// RSSCOUNTER is an `AggregateCounterVector` that all received packets pass, whose aggregates are
/// the hashes: the device's element has RSS_AGGREGATE. Its MASK is the size of the table less one, or more.
///
/// With AUTOSCALE the balancer begins with STARTCPU workers, adds one when they have more load than
/// TARGET_LOAD, and removes one when the rest can bear its load.
///
/// ```text
/// fd :: FromDPDKDevice(0, MODE rss, RSS_AGGREGATE true)
///     -> agg :: AggregateCounterVector(MASK 511)
///     -> EtherMirror -> ToDPDKDevice(0);
/// DeviceBalancer(METHOD rsspp, DEV fd, RSSCOUNTER agg, TIMER 100, AUTOSCALE true, STARTCPU 1);
/// ```
#[derive(Element)]
#[element(args = DeviceBalancerArgs)]
pub struct DeviceBalancer {
    args: DeviceBalancerArgs,
}

impl Build for DeviceBalancer {
    type Args = DeviceBalancerArgs;

    fn build(args: DeviceBalancerArgs, _: &Setup) -> Result<Self, ArgError> {
        args.check()?;
        Ok(DeviceBalancer { args })
    }
}

impl Control for DeviceBalancer {
    type Local = DeviceBalancerState;

    fn init(&self, state: &mut DeviceBalancerState, waker: ControlWaker) -> Result<(), ArgError> {
        state.begin(&self.args, waker);
        Ok(())
    }

    fn can_take_state(&self, before: &DeviceBalancer) -> bool {
        self.args == before.args
    }

    fn references(&self) -> Vec<ProgramReference> {
        let device = |handler: &str| format!("{}.{handler}", self.args.dev);
        let mut all = vec![
            ProgramReference::Read(device("queue_workers")),
            ProgramReference::Read(device("rss_reta")),
            ProgramReference::Write(device("rss_reta")),
        ];
        if self.args.cycles.has_queues() {
            all.push(ProgramReference::Read(device("queue_count")));
            all.push(ProgramReference::Read(device("nb_rx_desc")));
        }
        let counter =
            self.args.rsscounter.iter().filter(|_| self.args.method == RssMethod::RssPlusPlus);
        all.extend(counter.map(|it| ProgramReference::Read(format!("{it}.dump"))));
        all
    }

    fn step(
        &self,
        state: &mut DeviceBalancerState,
        control: &mut dyn ControlContext,
    ) -> ProgramWait {
        if !state.is_active() {
            return ProgramWait::Notified;
        }
        if let Err(error) = state.balance(&self.args, control) {
            state.report(&error, control);
        }
        ProgramWait::At(control.now() + state.interval())
    }
}
