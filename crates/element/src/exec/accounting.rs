//! Cycles of each element by itself, in ticks of the time-stamp counter.
//!
//! Time is always charged to one element. Where an element has another run in between, as a puller does,
//! time is charged to that one until it returns.

use castanet_packet::Batch;

/// Reason for which an element runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunKind {
    /// A task of it has its turn.
    Task,
    /// Its timer is due.
    Timer,
    /// Packets are pushed to it, or pulled from it.
    Transfer,
}

/// Number of runs, and their ticks.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RunCost {
    /// Runs; of a transfer, whatever number of packets it moves.
    pub calls: u64,
    /// Ticks of the time-stamp counter, without those of other elements that ran meanwhile.
    pub ticks: u64,
}

/// Runs and ticks of one element by itself.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ElementCost {
    /// Its tasks, with the work of the runtime between elements meanwhile.
    pub tasks: RunCost,
    /// Its timers.
    pub timers: RunCost,
    /// Packets pushed to it or pulled from it.
    pub transfers: RunCost,
}

impl ElementCost {
    /// The sum of all three.
    pub fn total(&self) -> RunCost {
        let mut sum = self.tasks;
        sum.add(self.timers);
        sum.add(self.transfers);
        sum
    }

    /// Adds those of another worker.
    pub fn add(&mut self, other: &ElementCost) {
        self.tasks.add(other.tasks);
        self.timers.add(other.timers);
        self.transfers.add(other.transfers);
    }

    fn of(&mut self, why: RunKind) -> &mut RunCost {
        match why {
            RunKind::Task => &mut self.tasks,
            RunKind::Timer => &mut self.timers,
            RunKind::Transfer => &mut self.transfers,
        }
    }
}

impl RunCost {
    fn add(&mut self, other: RunCost) {
        self.calls += other.calls;
        self.ticks += other.ticks;
    }
}

/// Packets that came to an element, or that it made, in the runs whose cycles were counted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Batches.
    pub batches: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}

/// The element to which time is charged, and the reason for which it runs.
pub type ChargedRun = Option<(usize, RunKind)>;

/// Counts the cycles of one worker's elements.
pub struct CycleAccounting {
    counter: quanta::Clock,
    charged: ChargedRun,
    /// The counter when the present charge began.
    since: u64,
    /// By element.
    pub costs: Vec<ElementCost>,
    /// By element, where packets and bytes are counted, too.
    pub traffic: Option<Vec<Traffic>>,
}

impl CycleAccounting {
    /// Nothing counted yet, for that many elements.
    pub fn new(elements: usize) -> CycleAccounting {
        CycleAccounting {
            counter: quanta::Clock::new(),
            charged: None,
            since: 0,
            costs: vec![ElementCost::default(); elements],
            traffic: None,
        }
    }

    /// The same, with packets and bytes.
    pub fn with_traffic(elements: usize) -> CycleAccounting {
        let traffic = Some(vec![Traffic::default(); elements]);
        CycleAccounting { traffic, ..CycleAccounting::new(elements) }
    }

    /// Counts the packets of a batch for element `me`, where packets are counted.
    #[inline]
    pub fn count(&mut self, me: usize, batch: &Batch) {
        if let Some(traffic) = &mut self.traffic {
            let Traffic { batches, packets, bytes } = &mut traffic[me];
            *batches += 1;
            *packets += batch.len() as u64;
            *bytes += batch.iter().map(|packet| packet.len() as u64).sum::<u64>();
        }
    }

    /// The counter.
    pub fn ticks(&self) -> u64 {
        self.counter.raw()
    }

    /// Nanoseconds of so many ticks.
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        self.counter.delta_as_nanos(0, ticks)
    }

    /// Charges time to element `me` from now on; returns the charge until now.
    #[inline]
    pub fn enter(&mut self, me: usize, why: RunKind) -> ChargedRun {
        self.settle();
        self.costs[me].of(why).calls += 1;
        let before = self.charged.replace((me, why));
        self.since = self.counter.raw();
        before
    }

    /// Charges time to an earlier element again.
    #[inline]
    pub fn leave(&mut self, charged: ChargedRun) {
        self.settle();
        self.charged = charged;
        self.since = self.counter.raw();
    }

    #[inline]
    fn settle(&mut self) {
        if let Some((me, why)) = self.charged {
            let now = self.counter.raw();
            self.costs[me].of(why).ticks += now.saturating_sub(self.since);
        }
    }

    /// Ticks of a visit in which nothing happens: the reading of the counter, which each charge includes.
    pub fn empty() -> f64 {
        const VISITS: u64 = 4096;
        let mut cycles = CycleAccounting::new(1);
        let mut cheapest = f64::INFINITY;
        // Interruptions only make it dearer: the least counts.
        for _ in 0..16 {
            cycles.costs[0] = ElementCost::default();
            for _ in 0..VISITS {
                let before = cycles.enter(0, RunKind::Transfer);
                cycles.leave(before);
            }
            cheapest = cheapest.min(cycles.costs[0].transfers.ticks as f64 / VISITS as f64);
        }
        cheapest
    }
}

#[cfg(test)]
mod tests {
    use super::{CycleAccounting, RunKind};

    /// Something that takes a while.
    fn work(cycles: &CycleAccounting, ticks: u64) {
        let begun = cycles.counter.raw();
        while cycles.counter.raw() - begun < ticks {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn who_is_interrupted_does_not_pay_for_it() {
        let mut cycles = CycleAccounting::new(2);
        let nobody = cycles.enter(0, RunKind::Task);
        assert_eq!(nobody, None);
        work(&cycles, 1_000);
        let outer = cycles.enter(1, RunKind::Transfer);
        work(&cycles, 100_000_000);
        cycles.leave(outer);
        work(&cycles, 1_000);
        cycles.leave(nobody);
        work(&cycles, 1_000);
        let (task, transfer) = (cycles.costs[0].tasks, cycles.costs[1].transfers);
        assert_eq!((task.calls, transfer.calls), (1, 1));
        assert!(transfer.ticks >= 100_000_000, "{transfer:?}");
        assert!((2_000..100_000_000).contains(&task.ticks), "{task:?}");
        assert_eq!(cycles.costs[0].total(), task);
        assert_eq!(cycles.costs[0].timers.calls + cycles.costs[1].tasks.calls, 0);
    }

    #[test]
    fn an_empty_visit_costs_little() {
        let empty = CycleAccounting::empty();
        assert!((0.0..100_000.0).contains(&empty), "{empty}");
    }
}
