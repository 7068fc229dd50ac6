//! What each element costs by itself, in ticks of the time-stamp counter.
//!
//! Time is always on somebody's bill: who runs something else in between, such
//! as a puller what it pulls from, pays again once that is over.

/// Why an element runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// A task of it has its turn.
    Task,
    /// Its timer is due.
    Timer,
    /// Packets are pushed to it, or pulled from it.
    Transfer,
}

/// How often something ran, and what that has cost.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Bill {
    /// Runs; of a transfer, whatever number of packets it moves.
    pub calls: u64,
    /// Ticks of the time-stamp counter, without those of others that ran meanwhile.
    pub cycles: u64,
}

/// What one element has cost by itself.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Its tasks, with what the engine does between elements meanwhile.
    pub tasks: Bill,
    /// Its timers.
    pub timers: Bill,
    /// Packets pushed to it or pulled from it.
    pub transfers: Bill,
}

impl Cost {
    /// All together.
    pub fn total(&self) -> Bill {
        let mut sum = self.tasks;
        sum.add(self.timers);
        sum.add(self.transfers);
        sum
    }

    /// Adds another's.
    pub(crate) fn add(&mut self, other: &Cost) {
        self.tasks.add(other.tasks);
        self.timers.add(other.timers);
        self.transfers.add(other.transfers);
    }

    fn of(&mut self, why: Why) -> &mut Bill {
        match why {
            Why::Task => &mut self.tasks,
            Why::Timer => &mut self.timers,
            Why::Transfer => &mut self.transfers,
        }
    }
}

impl Bill {
    fn add(&mut self, other: Bill) {
        self.calls += other.calls;
        self.cycles += other.cycles;
    }
}

/// Who pays for the present, and why.
type Payer = Option<(usize, Why)>;

/// Takes down what one worker's elements cost.
pub(crate) struct Visits {
    counter: quanta::Clock,
    payer: Payer,
    /// When the payer began to pay.
    since: u64,
    pub(crate) costs: Vec<Cost>,
}

impl Visits {
    pub(crate) fn new(elements: usize) -> Visits {
        Visits {
            counter: quanta::Clock::new(),
            payer: None,
            since: 0,
            costs: vec![Cost::default(); elements],
        }
    }

    /// From now on element `me` pays; who paid until now.
    #[inline]
    pub(crate) fn enter(&mut self, me: usize, why: Why) -> Payer {
        self.settle();
        self.costs[me].of(why).calls += 1;
        let before = self.payer.replace((me, why));
        self.since = self.counter.raw();
        before
    }

    /// From now on `payer` pays again.
    #[inline]
    pub(crate) fn leave(&mut self, payer: Payer) {
        self.settle();
        self.payer = payer;
        self.since = self.counter.raw();
    }

    #[inline]
    fn settle(&mut self) {
        if let Some((me, why)) = self.payer {
            let now = self.counter.raw();
            self.costs[me].of(why).cycles += now.saturating_sub(self.since);
        }
    }

    /// What a visit costs in which nothing happens: the reading of the counter,
    /// which is on every bill.
    pub(crate) fn empty() -> f64 {
        const VISITS: u64 = 4096;
        let mut visits = Visits::new(1);
        let mut cheapest = f64::INFINITY;
        // Whatever disturbs does not make it cheaper.
        for _ in 0..16 {
            visits.costs[0] = Cost::default();
            for _ in 0..VISITS {
                let before = visits.enter(0, Why::Transfer);
                visits.leave(before);
            }
            cheapest = cheapest.min(visits.costs[0].transfers.cycles as f64 / VISITS as f64);
        }
        cheapest
    }
}

#[cfg(test)]
mod tests {
    use super::{Visits, Why};

    /// Something that takes a while.
    fn work(visits: &Visits, ticks: u64) {
        let begun = visits.counter.raw();
        while visits.counter.raw() - begun < ticks {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn who_is_interrupted_does_not_pay_for_it() {
        let mut visits = Visits::new(2);
        let nobody = visits.enter(0, Why::Task);
        assert_eq!(nobody, None);
        work(&visits, 1_000);
        let outer = visits.enter(1, Why::Transfer);
        work(&visits, 100_000_000);
        visits.leave(outer);
        work(&visits, 1_000);
        visits.leave(nobody);
        work(&visits, 1_000);
        let (task, transfer) = (visits.costs[0].tasks, visits.costs[1].transfers);
        assert_eq!((task.calls, transfer.calls), (1, 1));
        assert!(transfer.cycles >= 100_000_000, "{transfer:?}");
        assert!((2_000..100_000_000).contains(&task.cycles), "{task:?}");
        assert_eq!(visits.costs[0].total(), task);
        assert_eq!(visits.costs[0].timers.calls + visits.costs[1].tasks.calls, 0);
    }

    #[test]
    fn an_empty_visit_costs_little() {
        let empty = Visits::empty();
        assert!((0.0..100_000.0).contains(&empty), "{empty}");
    }
}
