//! A bound on the runs of an account, by the delays that others were promised.

use super::AccountRun;
use crate::worker::transfer::limits::MAX_HOPS;

/// Elements that any run may visit.
const LEAST_VISITS: u32 = 64;

/// A bound on the runs of an account.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunBound {
    /// The longest run, in ticks.
    pub(super) most: Option<u64>,
    /// Ticks of a packet, once one has been seen: at once as high as those of a run, and lower by and by.
    pub(super) per_packet: Option<u64>,
    pub(super) burst: usize,
    /// The same of a visit of an element.
    pub(super) per_visit: u64,
    /// Elements that a run may visit.
    pub(super) visits: u32,
}

impl RunBound {
    /// No bound, where a visit of an element takes so long until one has been seen.
    pub(super) fn new(per_visit: u64) -> RunBound {
        RunBound { most: None, per_packet: None, burst: usize::MAX, per_visit, visits: MAX_HOPS }
    }

    /// Sets the longest run, in ticks.
    pub(super) fn set_most(&mut self, most: Option<u64>) {
        self.most = most;
        self.adapt();
    }

    /// Notes how long a run took. One that was cut does not tell how long its packets take, but only so many visits
    /// of them.
    pub(super) fn observe(&mut self, ticks: u64, packets: u64, run: &AccountRun) {
        let Some(most) = self.most else { return };
        let slower = |ticks: u64| ticks - ticks / 16;
        if let Some(per_packet) = ticks.checked_div(packets) {
            let before = self.per_packet.map(slower);
            self.per_packet = match run.is_cut {
                true => before.or(Some(most)),
                false => Some(per_packet).max(before),
            };
        }
        if let Some(per_visit) = ticks.checked_div(u64::from(run.visits)) {
            self.per_visit = per_visit.max(slower(self.per_visit));
        }
        self.adapt();
    }

    /// Makes the burst, and the visits of a run, as many as the bound allows: one packet, as long as none has been
    /// seen.
    fn adapt(&mut self) {
        let visits = self.most.map_or(u64::MAX, |most| most / self.per_visit.max(1));
        let visits = u32::try_from(visits).unwrap_or(u32::MAX);
        self.visits = visits.clamp(LEAST_VISITS, MAX_HOPS);
        let burst = match (self.most, self.per_packet) {
            (Some(_), None) => 1,
            (Some(most), Some(per_packet)) => most / per_packet.max(1),
            (None, _) => u64::MAX,
        };
        self.burst = usize::try_from(burst).unwrap_or(usize::MAX).max(1);
    }
}
