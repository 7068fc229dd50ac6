//! Rates: the change between two snapshots.

use super::snapshot::{ElementTotals, QueueTotals, SampleTotals, Snapshot, WorkerTotals};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Rates of a router over an interval.
#[derive(Serialize)]
pub(crate) struct Rates {
    /// Length of the interval in seconds.
    pub(crate) interval: f64,
    pub(crate) workers: Vec<WorkerRates>,
    /// Elements, in the order of the flat configuration.
    pub(crate) elements: Vec<ElementRates>,
}

/// The share of the interval in which a worker had a processor.
#[derive(Serialize)]
pub(crate) struct WorkerRates {
    pub(crate) worker: usize,
    /// From 0, asleep, to 1, busy.
    pub(crate) load: f64,
}

/// Rates of one element.
#[derive(Clone, Serialize)]
pub(crate) struct ElementRates {
    pub(crate) element: String,
    pub(crate) class: String,
    /// Its first argument: of a device, the interface.
    pub(crate) argument: String,
    /// Whether packets enter or leave the graph here, or wait here.
    #[serde(skip)]
    pub(crate) is_end: bool,
    pub(crate) packets: u64,
    pub(crate) packets_per_second: f64,
    /// Packets that came in.
    #[serde(skip)]
    pub(crate) input_per_second: f64,
    /// Packets that it gave to connected outputs.
    #[serde(skip)]
    pub(crate) output_per_second: f64,
    /// From the mean length of packets in samples; none if there was no sample.
    pub(crate) bytes_per_second: Option<f64>,
    pub(crate) drops: u64,
    pub(crate) drops_per_second: f64,
    /// Why packets were dropped, and how many for each reason, since the start.
    pub(crate) reasons: BTreeMap<String, u64>,
    /// The same a second, in this interval.
    pub(crate) reasons_per_second: BTreeMap<String, f64>,
    /// Time of the element by itself, in samples.
    pub(crate) nanoseconds_per_packet: Option<f64>,
    /// The share of one worker's time that the element takes, by its cost in samples.
    pub(crate) share: Option<f64>,
    /// Mean number of packets in a batch, in samples.
    pub(crate) burst: Option<f64>,
    pub(crate) queue: Option<QueueTotals>,
    pub(crate) kernel_drops: Option<u64>,
    pub(crate) kernel_drops_per_second: Option<f64>,
}

impl Rates {
    /// The rates between two snapshots of one router. Elements keep their totals through a hot swap
    /// by their names; one that counts anew has all of its counts in this interval.
    pub(crate) fn between(before: &Snapshot, after: &Snapshot) -> Rates {
        let seconds = ((after.time - before.time) as f64 / 1e9).max(1e-9);
        let earlier: HashMap<&str, &ElementTotals> =
            before.elements.iter().map(|it| (it.name.as_str(), it)).collect();
        let none = ElementTotals::default();
        let elements = after.elements.iter().map(|now| {
            let then = earlier.get(now.name.as_str()).copied().unwrap_or(&none);
            let time = |it: &ElementTotals, whole: &Snapshot| it.time.unwrap_or(whole.time);
            let own = time(now, after).saturating_sub(time(then, before));
            let seconds = if own > 0 { own as f64 / 1e9 } else { seconds };
            ElementRates::between(then, now, seconds)
        });
        let worker = |(worker, now): (usize, &WorkerTotals)| {
            let then = before.workers.get(worker).map_or(0, |it| it.cpu);
            let load = change(then, now.cpu) as f64 / 1e9 / seconds;
            WorkerRates { worker, load: load.min(1.0) }
        };
        Rates {
            interval: seconds,
            workers: after.workers.iter().enumerate().map(worker).collect(),
            elements: elements.collect(),
        }
    }
}

/// The change of a count, which may have begun anew.
fn change(before: u64, after: u64) -> u64 {
    after.checked_sub(before).unwrap_or(after)
}

impl ElementRates {
    fn between(then: &ElementTotals, now: &ElementTotals, seconds: f64) -> ElementRates {
        let a_second = |count: u64| count as f64 / seconds;
        let packets = a_second(change(then.packets, now.packets));
        let sample = now.sample.map(|sample| sample.since(then.sample));
        let sample = sample.filter(|sample| sample.packets > 0);
        let mean = |of: fn(&SampleTotals) -> f64| sample.map(|it| of(&it) / it.packets as f64);
        let cost = mean(|it| it.nanoseconds);
        let reason = |(reason, &count): (&String, &u64)| {
            let before = then.drops.get(reason).copied().unwrap_or(0);
            (reason.clone(), a_second(change(before, count)))
        };
        let reasons: BTreeMap<String, f64> = now.drops.iter().map(reason).collect();
        let kernel = now.kernel_drops.map(|n| change(then.kernel_drops.unwrap_or(0), n));
        ElementRates {
            element: now.name.clone(),
            class: now.class.clone(),
            argument: now.argument.clone(),
            is_end: now.is_end,
            packets: now.packets,
            packets_per_second: packets,
            input_per_second: a_second(change(then.input, now.input)),
            output_per_second: a_second(change(then.output, now.output)),
            bytes_per_second: mean(|it| it.bytes as f64).map(|bytes| bytes * packets),
            drops: now.dropped(),
            // Not `sum`, which is -0.0 without a reason.
            drops_per_second: reasons.values().fold(0.0, |sum, rate| sum + rate),
            reasons: now.drops.clone(),
            reasons_per_second: reasons,
            nanoseconds_per_packet: cost,
            share: cost.map(|cost| cost * packets / 1e9),
            burst: sample.map(|it| it.packets as f64 / it.batches.max(1) as f64),
            queue: now.queue,
            kernel_drops: now.kernel_drops,
            kernel_drops_per_second: kernel.map(a_second),
        }
    }
}

impl SampleTotals {
    /// The samples since `before`, unless they were begun anew since.
    fn since(self, before: Option<SampleTotals>) -> SampleTotals {
        match before {
            Some(before)
                if before.batches <= self.batches
                    && before.packets <= self.packets
                    && before.bytes <= self.bytes =>
            {
                SampleTotals {
                    batches: self.batches - before.batches,
                    packets: self.packets - before.packets,
                    bytes: self.bytes - before.bytes,
                    nanoseconds: (self.nanoseconds - before.nanoseconds).max(0.0),
                }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(time: i64, packets: u64, drops: u64, sample: Option<SampleTotals>) -> Snapshot {
        let drops = [("full".to_owned(), drops)].into();
        let name = "q".to_owned();
        let it = ElementTotals { name, packets, drops, sample, ..ElementTotals::default() };
        Snapshot { time, workers: vec![WorkerTotals { cpu: time as u64 / 4 }], elements: vec![it] }
    }

    fn sample(batches: u64, packets: u64, bytes: u64, nanoseconds: f64) -> Option<SampleTotals> {
        Some(SampleTotals { batches, packets, bytes, nanoseconds })
    }

    #[test]
    fn rates_are_changes_a_second() {
        let before = snapshot(1_000_000_000, 100, 10, sample(2, 10, 1000, 50.0));
        let after = snapshot(3_000_000_000, 300, 16, sample(6, 50, 5000, 450.0));
        let rates = Rates::between(&before, &after);
        let it = &rates.elements[0];
        assert_eq!((rates.interval, rates.workers[0].load), (2.0, 0.25));
        assert_eq!((it.packets, it.packets_per_second), (300, 100.0));
        assert_eq!((it.drops, it.drops_per_second), (16, 3.0));
        assert_eq!(it.reasons_per_second["full"], 3.0);
        assert_eq!((it.nanoseconds_per_packet, it.burst), (Some(10.0), Some(10.0)));
        assert_eq!((it.bytes_per_second, it.share), (Some(10_000.0), Some(1e-6)));
    }

    #[test]
    fn totals_of_another_time_have_their_own_interval() {
        let at = |time: i64, packets| {
            let mut snapshot = snapshot(time, packets, 0, None);
            snapshot.elements[0].time = Some(time - 500_000_000);
            snapshot
        };
        let (first, second) = (at(1_000_000_000, 100), at(3_000_000_000, 300));
        assert_eq!(Rates::between(&first, &second).elements[0].packets_per_second, 100.0);
        // The first totals that came late, and the same ones again.
        let late = snapshot(1_000_000_000, 100, 0, None);
        let it = &Rates::between(&late, &second).elements[0];
        assert_eq!(it.packets_per_second, 200.0 / 1.5);
        let again = &Rates::between(&second, &second).elements[0];
        assert_eq!(again.packets_per_second, 0.0);
    }

    #[test]
    fn counts_that_began_anew_are_not_negative() {
        let before = snapshot(0, 100, 10, sample(5, 10, 1000, 50.0));
        let after = snapshot(1_000_000_000, 30, 1, sample(1, 2, 200, 8.0));
        let it = &Rates::between(&before, &after).elements[0];
        assert_eq!((it.packets_per_second, it.drops_per_second), (30.0, 1.0));
        assert_eq!(it.nanoseconds_per_packet, Some(4.0));
        let gone = snapshot(2_000_000_000, 30, 1, None);
        assert_eq!(Rates::between(&after, &gone).elements[0].nanoseconds_per_packet, None);
    }
}
