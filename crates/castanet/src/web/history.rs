//! History: the rates of all elements in the last ten minutes.

use super::live::{ElementLive, LiveRates};
use castanet_runtime::router::Router;
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Time that a history covers.
const SPAN: Duration = Duration::from_secs(600);
/// Values of all elements that are kept: 16 bytes each.
const MOST_VALUES: usize = 1 << 21;
/// Rows that a history has at most: one a second.
const MOST_ROWS: usize = 600;
/// Rows that a history has at least, however many elements there are.
const FEWEST_ROWS: usize = 60;

/// Rates of all elements at several times, for elements that run or have run lately.
#[derive(Default)]
pub(super) struct History {
    rows: VecDeque<HistoryRow>,
    /// Places of the elements that run in a row.
    places: Arc<HashMap<String, usize>>,
    /// How often the configuration was replaced before the one of `places`.
    replaced: Option<u64>,
}

/// Rates of all elements at one time.
struct HistoryRow {
    /// Nanoseconds since the epoch.
    time: i64,
    places: Arc<HashMap<String, usize>>,
    values: Box<[HistoryValue]>,
}

/// Rates of one element at one time; `NaN` where a rate is unknown.
#[derive(Clone, Copy)]
struct HistoryValue {
    packets: f32,
    drops: f32,
    nanoseconds: f32,
    queue: f32,
}

/// The history of one element, as the page draws it: columns of the same length.
#[derive(Default, Serialize)]
pub(crate) struct HistoryColumns {
    /// Seconds since 1970.
    time: Vec<f64>,
    packets_per_second: Vec<Option<f32>>,
    drops_per_second: Vec<Option<f32>>,
    nanoseconds_per_packet: Vec<Option<f32>>,
    queue: Vec<Option<f32>>,
}

impl History {
    /// Time between two rows, for so many elements.
    pub(super) fn interval(elements: usize) -> Duration {
        let rows = (MOST_VALUES / elements.max(1)).clamp(FEWEST_ROWS, MOST_ROWS);
        SPAN / rows as u32
    }

    /// Adds the rates of the configuration that runs.
    pub(super) fn add(&mut self, router: &Router, live: &LiveRates) {
        if self.replaced != Some(router.replaced()) {
            let elements = router.graph().elements.iter();
            let places = elements.enumerate().map(|(place, it)| (it.name.clone(), place));
            (self.places, self.replaced) = (Arc::new(places.collect()), Some(router.replaced()));
        }
        let values = live.elements.iter().map(HistoryValue::of).collect();
        self.rows.push_back(HistoryRow { time: live.time, places: self.places.clone(), values });
        let oldest = live.time.saturating_sub(SPAN.as_nanos() as i64);
        while self.rows.front().is_some_and(|row| row.time < oldest) {
            self.rows.pop_front();
        }
    }

    /// The history of an element, by its name.
    pub(crate) fn columns(&self, element: &str) -> HistoryColumns {
        let mut columns = HistoryColumns::default();
        let interval = History::interval(self.places.len());
        let (mut last, longest) = (None, interval.as_nanos() as i64 * 5 / 2);
        for row in &self.rows {
            let value = row.places.get(element).and_then(|&it| row.values.get(it));
            // A gap where the element was not there, or nothing was measured.
            let is_late = last.is_some_and(|last| row.time - last > longest);
            last = Some(row.time);
            if is_late && !columns.time.is_empty() {
                columns.push(row.time - longest, HistoryValue::UNKNOWN);
            }
            match value {
                Some(value) => columns.push(row.time, *value),
                None if !columns.time.is_empty() => columns.push(row.time, HistoryValue::UNKNOWN),
                None => {}
            }
        }
        columns
    }
}

impl HistoryColumns {
    fn push(&mut self, time: i64, value: HistoryValue) {
        let known = |value: f32| (!value.is_nan()).then_some(value);
        self.time.push((time / 1_000_000) as f64 / 1000.0);
        self.packets_per_second.push(known(value.packets));
        self.drops_per_second.push(known(value.drops));
        self.nanoseconds_per_packet.push(known(value.nanoseconds));
        self.queue.push(known(value.queue));
    }
}

impl HistoryValue {
    const UNKNOWN: HistoryValue =
        HistoryValue { packets: f32::NAN, drops: f32::NAN, nanoseconds: f32::NAN, queue: f32::NAN };

    fn of(live: &ElementLive) -> HistoryValue {
        let known = |value: Option<f64>| value.map_or(f32::NAN, |value| value as f32);
        HistoryValue {
            packets: live.packets_per_second as f32,
            drops: live.drops_per_second as f32,
            nanoseconds: known(live.nanoseconds_per_packet),
            queue: live.queue.map_or(f32::NAN, |queue| queue.length as f32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_bounds_the_memory() {
        assert_eq!(History::interval(1), Duration::from_secs(1));
        assert_eq!(History::interval(3000), Duration::from_secs(1));
        for elements in [0, 1, 1000, 10_000, 30_000] {
            let rows = SPAN.as_secs_f64() / History::interval(elements).as_secs_f64();
            assert!(elements as f64 * rows <= MOST_VALUES as f64 * 1.01, "{elements}: {rows}");
        }
        assert_eq!(History::interval(10_000_000), Duration::from_secs(10));
    }
}
