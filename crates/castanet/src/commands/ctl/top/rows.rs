//! The rows of `castanet top`: elements, sorted, filtered and folded.

use crate::observe::rates::{ElementRates, Rates};
use clap::ValueEnum;
use std::collections::BTreeMap;

/// Order of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SortKey {
    /// As in the configuration
    Graph,
    /// Packets a second
    Packets,
    /// Drops a second, then drops
    Drops,
    /// Share of a worker's time
    Cost,
    /// Packets that wait
    Queue,
    /// Names
    Name,
}

impl SortKey {
    /// The key after this one.
    pub(super) fn next(self) -> SortKey {
        let all = SortKey::value_variants();
        let at = all.iter().position(|&key| key == self).unwrap_or(0);
        all[(at + 1) % all.len()]
    }

    /// Its name.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default()
    }
}

/// Which elements are shown, and in which order.
#[derive(Clone)]
pub(super) struct View {
    pub(super) sort: SortKey,
    pub(super) reverse: bool,
    /// A part of the name or of the class.
    pub(super) filter: String,
    /// Whether each compound element is one row.
    pub(super) fold: bool,
    /// Whether elements without packets are shown.
    pub(super) all: bool,
}

impl View {
    /// The rows of an interval.
    pub(super) fn rows(&self, rates: &Rates) -> Vec<ElementRates> {
        let mut rows = match self.fold {
            true => folded(&rates.elements),
            false => rates.elements.clone(),
        };
        let filter = self.filter.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&filter);
        rows.retain(|row| {
            (self.all || row.packets > 0 || row.drops > 0 || row.kernel_drops.unwrap_or(0) > 0)
                && (filter.is_empty() || has(&row.element) || has(&row.class))
        });
        let greatest_first = |of: fn(&ElementRates) -> f64| {
            move |a: &ElementRates, b: &ElementRates| of(b).total_cmp(&of(a))
        };
        match self.sort {
            SortKey::Graph => {}
            SortKey::Packets => rows.sort_by(greatest_first(|row| row.packets_per_second)),
            SortKey::Drops => {
                rows.sort_by(greatest_first(|row| row.drops as f64));
                rows.sort_by(greatest_first(|row| row.drops_per_second));
            }
            SortKey::Cost => rows.sort_by(greatest_first(|row| row.share.unwrap_or(0.0))),
            SortKey::Queue => {
                rows.sort_by(greatest_first(|row| row.queue.map_or(-1.0, |it| it.length as f64)));
            }
            SortKey::Name => rows.sort_by(|a, b| a.element.cmp(&b.element)),
        }
        if self.reverse {
            rows.reverse();
        }
        rows
    }
}

/// The elements of each compound as one: its packets are those of the element with most, its drops and
/// its cost those of all.
fn folded(elements: &[ElementRates]) -> Vec<ElementRates> {
    let mut rows: Vec<ElementRates> = Vec::new();
    let mut compounds: BTreeMap<String, usize> = BTreeMap::new();
    for element in elements {
        let Some((compound, _)) = element.element.split_once('/') else {
            rows.push(element.clone());
            continue;
        };
        match compounds.get(compound) {
            None => {
                compounds.insert(compound.to_owned(), rows.len());
                let (class, argument) = ("(compound)".to_owned(), String::new());
                let name = compound.to_owned();
                rows.push(ElementRates { element: name, class, argument, ..element.clone() });
            }
            Some(&at) => add(&mut rows[at], element),
        }
    }
    for &at in compounds.values() {
        let row = &mut rows[at];
        let rate = row.packets_per_second;
        row.nanoseconds_per_packet = row.share.filter(|_| rate > 0.0).map(|it| it * 1e9 / rate);
    }
    rows
}

fn add(row: &mut ElementRates, other: &ElementRates) {
    let sum = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
    };
    row.packets = row.packets.max(other.packets);
    if other.packets_per_second > row.packets_per_second {
        row.packets_per_second = other.packets_per_second;
        row.bytes_per_second = other.bytes_per_second;
        row.burst = other.burst;
    }
    row.drops = row.drops.saturating_add(other.drops);
    row.drops_per_second += other.drops_per_second;
    row.share = sum(row.share, other.share);
    for (reason, n) in &other.reasons {
        let sum = row.reasons.entry(reason.clone()).or_default();
        *sum = sum.saturating_add(*n);
    }
    for (reason, rate) in &other.reasons_per_second {
        *row.reasons_per_second.entry(reason.clone()).or_default() += rate;
    }
    row.kernel_drops_per_second = sum(row.kernel_drops_per_second, other.kernel_drops_per_second);
    row.kernel_drops = match (row.kernel_drops, other.kernel_drops) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    // The longest of its queues.
    if other.queue.map_or(0, |it| it.length) > row.queue.map_or(0, |it| it.length)
        || row.queue.is_none()
    {
        row.queue = other.queue;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::snapshot::{ElementTotals, SampleTotals, Snapshot};

    fn rates() -> Rates {
        let element = |name: &str, packets: u64, dropped: u64, cost: f64| ElementTotals {
            name: name.into(),
            class: "Counter".into(),
            packets,
            drops: [("full".to_owned(), dropped)].into(),
            sample: Some(SampleTotals { batches: 1, packets: 10, bytes: 600, nanoseconds: cost }),
            ..ElementTotals::default()
        };
        let elements = vec![
            element("in", 100, 0, 10.0),
            element("r/a", 90, 5, 20.0),
            element("r/b", 100, 7, 30.0),
            element("unused", 0, 0, 0.0),
        ];
        let none = Snapshot { time: 0, workers: vec![], elements: vec![] };
        Rates::between(&none, &Snapshot { time: 1_000_000_000, workers: vec![], elements })
    }

    fn names(view: &View) -> Vec<String> {
        view.rows(&rates()).into_iter().map(|row| row.element).collect()
    }

    #[test]
    fn rows_are_sorted_filtered_and_folded() {
        let mut view = View {
            sort: SortKey::Graph,
            reverse: false,
            filter: String::new(),
            fold: false,
            all: false,
        };
        assert_eq!(names(&view), ["in", "r/a", "r/b"]);
        view.sort = SortKey::Cost;
        assert_eq!(names(&view), ["r/b", "r/a", "in"]);
        view.reverse = true;
        assert_eq!(names(&view), ["in", "r/a", "r/b"]);
        view = View { sort: SortKey::Drops, filter: "R/".into(), reverse: false, ..view };
        assert_eq!(names(&view), ["r/b", "r/a"]);
        view = View { sort: SortKey::Graph, filter: String::new(), fold: true, all: true, ..view };
        let rows = view.rows(&rates());
        assert_eq!(names(&view), ["in", "r", "unused"]);
        assert_eq!((rows[1].packets, rows[1].drops, rows[1].reasons["full"]), (100, 12, 12));
        // 90 packets of 2 ns and 100 of 3 ns.
        assert_eq!(rows[1].nanoseconds_per_packet, Some(4.8));
    }
}
