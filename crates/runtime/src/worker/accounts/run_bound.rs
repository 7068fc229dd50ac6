//! A bound on the runs of an account, by the delays that others were promised.

use super::AccountRun;

/// The most elements that a run visits between two looks at the clock.
const MOST_STEP: u64 = 64;

/// A bound on the runs of an account.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunBound {
    /// The longest run that others were promised, in ticks.
    pub(super) most: Option<u64>,
    /// Ticks of a packet, once one has been seen: at once as high as those of a run, and lower by and by.
    pub(super) per_packet: Option<u64>,
    pub(super) burst: usize,
    /// The same of a visit of an element.
    pub(super) per_visit: u64,
    /// Elements that a run visits between two looks at the clock.
    pub(super) step: u32,
}

/// The ticks that a run is to take where so many were promised: a quarter. A packet or a visit may take longer than
/// those before it, and a packet of others that has waited for a run waits for theirs, too.
pub(super) fn aim(promised: u64) -> u64 {
    promised / 4
}

impl RunBound {
    /// No bound, where a visit of an element takes so long until one has been seen.
    pub(super) fn new(per_visit: u64) -> RunBound {
        RunBound { most: None, per_packet: None, burst: usize::MAX, per_visit, step: 1 }
    }

    /// The ticks after which a run is cut, and those of a burst.
    pub(super) fn aim(&self) -> Option<u64> {
        self.most.map(aim)
    }

    /// Sets the longest run, in ticks.
    pub(super) fn set_most(&mut self, most: Option<u64>) {
        self.most = most;
        self.adapt();
    }

    /// Notes how long a run took. One that was cut does not tell how long its packets take, but only so many visits
    /// of them.
    pub(super) fn observe(&mut self, ticks: u64, packets: u64, run: &AccountRun) {
        let Some(aim) = self.aim() else { return };
        let slower = |ticks: u64| ticks - ticks / 16;
        if let Some(per_packet) = ticks.checked_div(packets) {
            let before = self.per_packet.map(slower);
            self.per_packet = match run.is_cut {
                true => before.or(Some(aim)),
                false => Some(per_packet).max(before),
            };
        }
        if let Some(per_visit) = ticks.checked_div(u64::from(run.visits)) {
            self.per_visit = per_visit.max(slower(self.per_visit));
        }
        self.adapt();
    }

    /// Makes the burst as long as the bound allows: one packet, as long as none has been seen.
    fn adapt(&mut self) {
        let Some(aim) = self.aim() else {
            self.burst = usize::MAX;
            return;
        };
        let burst = self.per_packet.map_or(1, |per_packet| aim / per_packet.max(1));
        self.burst = usize::try_from(burst).unwrap_or(usize::MAX).max(1);
        // A run that is cut is too long by a few visits at most.
        self.step = (aim / 8 / self.per_visit.max(1)).clamp(1, MOST_STEP) as u32;
    }
}
