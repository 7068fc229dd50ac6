//! A bound on the runs of an account, by the delays that others were promised.

use super::AccountRun;
use castanet_packet::MAX_BURST;

/// The most elements that a run visits between two looks at the clock.
const MOST_STEP: u64 = 64;

/// Bursts that a run may take where no other account was promised a delay, and it is not long.
const BURSTS: usize = 4;

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
    /// Ticks that a run of more than one burst may take, if no delay was promised.
    long: u64,
    /// Packets that take so many.
    most_of_short: usize,
}

/// The ticks that a run is to take where so many were promised: a quarter. A packet or a visit may take longer than
/// those before it, and a packet of others that has waited for a run waits for theirs, too.
pub(super) fn aim(promised: u64) -> u64 {
    promised / 4
}

impl RunBound {
    /// No bound, where a visit of an element takes so long until one has been seen, and a run is long that takes
    /// `long` ticks.
    pub(super) fn new(per_visit: u64, long: u64) -> RunBound {
        let (burst, most_of_short) = (usize::MAX, 0);
        RunBound { most: None, per_packet: None, burst, per_visit, step: 1, long, most_of_short }
    }

    /// The ticks after which a run is cut, and those of a burst.
    pub(super) fn aim(&self) -> Option<u64> {
        self.most.map(aim)
    }

    /// The packets that a run may take where bursts have `burst`: more, if nobody waits for its end and it is not
    /// long. The cost of a run beside its packets is then shared by more, and so are the lines that its elements bring
    /// into the cache.
    #[inline]
    pub(super) fn burst_of(&self, burst: usize) -> usize {
        match self.most {
            Some(_) => self.burst.min(burst),
            None => burst.max((burst * BURSTS).min(MAX_BURST).min(self.most_of_short)),
        }
    }

    /// Sets the longest run, in ticks.
    pub(super) fn set_most(&mut self, most: Option<u64>) {
        self.most = most;
        self.adapt();
    }

    /// Notes how long a run took. One that was cut does not tell how long its packets take, but only so many visits
    /// of them.
    pub(super) fn observe(&mut self, ticks: u64, packets: u64, run: &AccountRun) {
        let slower = |ticks: u64| ticks - ticks / 16;
        if let Some(per_packet) = ticks.checked_div(packets) {
            let before = self.per_packet.map(slower);
            self.per_packet = match self.aim() {
                Some(aim) if run.is_cut => before.or(Some(aim)),
                _ => Some(per_packet).max(before),
            };
        }
        if self.most.is_some()
            && let Some(per_visit) = ticks.checked_div(u64::from(run.visits))
        {
            self.per_visit = per_visit.max(slower(self.per_visit));
        }
        self.adapt();
    }

    /// Makes the burst as long as the bound allows: one packet, as long as none has been seen.
    fn adapt(&mut self) {
        let Some(aim) = self.aim() else {
            let short = self.per_packet.map_or(0, |per_packet| self.long / per_packet.max(1));
            (self.burst, self.most_of_short) = (usize::MAX, short as usize);
            return;
        };
        let burst = self.per_packet.map_or(1, |per_packet| aim / per_packet.max(1));
        self.burst = usize::try_from(burst).unwrap_or(usize::MAX).max(1);
        // A run that is cut is too long by a few visits at most.
        self.step = (aim / 8 / self.per_visit.max(1)).clamp(1, MOST_STEP) as u32;
    }
}
