//! Families of series: the values of one metric, which differ by labels.

use castanet_element::handler::{Metric, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// Series that one family may have; the others are added up, so that no configuration makes a monitoring
/// system keep any number of them.
pub(super) const MOST_SERIES: usize = 2000;

/// The value of all labels of the series that stands for the others.
const OTHER: &str = "other";

/// A label: its name and its value.
pub(super) type Label = (&'static str, Cow<'static, str>);

/// All values of one metric.
pub(super) struct Family {
    pub(super) metric: &'static Metric,
    pub(super) series: Vec<Series>,
    /// The places of series by their labels: handlers of one element may count for the same series.
    places: HashMap<Vec<Label>, usize>,
    /// Series that were added up.
    pub(super) limited: u64,
}

/// One value.
pub(super) struct Series {
    pub(super) labels: Vec<Label>,
    pub(super) value: Number,
}

/// A value: a count, which is exact, or a real number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Number {
    Count(u64),
    Real(f64),
}

impl Number {
    /// The number that a handler's text begins with; `None` if it is no number.
    pub(super) fn parse(text: &str) -> Option<Number> {
        let text = text.trim();
        let count = text.parse().map(Number::Count);
        count.ok().or_else(|| text.parse().map(Number::Real).ok())
    }

    fn plus(self, other: Number) -> Number {
        match (self, other) {
            (Number::Count(a), Number::Count(b)) => Number::Count(a.saturating_add(b)),
            (a, b) => Number::Real(a.real() + b.real()),
        }
    }

    fn real(self) -> f64 {
        match self {
            Number::Count(n) => n as f64,
            Number::Real(x) => x,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Count(n) => write!(f, "{n}"),
            Number::Real(x) if x.is_nan() => f.write_str("NaN"),
            Number::Real(x) if x.is_infinite() => {
                f.write_str(if *x > 0.0 { "+Inf" } else { "-Inf" })
            }
            Number::Real(x) => write!(f, "{x}"),
        }
    }
}

impl From<u64> for Number {
    fn from(n: u64) -> Number {
        Number::Count(n)
    }
}

impl From<usize> for Number {
    fn from(n: usize) -> Number {
        Number::Count(n as u64)
    }
}

impl From<f64> for Number {
    fn from(x: f64) -> Number {
        Number::Real(x)
    }
}

impl Family {
    pub(super) fn new(metric: &'static Metric) -> Family {
        Family { metric, series: Vec::new(), places: HashMap::new(), limited: 0 }
    }

    /// Adds a value to the series with these labels, or to that of the others if there are too many.
    pub(super) fn add(&mut self, labels: Vec<Label>, value: impl Into<Number>) {
        let value = value.into();
        if let Some(&place) = self.places.get(&labels) {
            let series = &mut self.series[place];
            series.value = series.value.plus(value);
            return;
        }
        if self.series.len() < MOST_SERIES {
            self.places.insert(labels.clone(), self.series.len());
            self.series.push(Series { labels, value });
            return;
        }
        self.limited += 1;
        match self.series.get_mut(MOST_SERIES) {
            Some(others) => others.value = others.value.plus(value),
            None => {
                let labels = labels.into_iter().map(|(name, _)| (name, OTHER.into())).collect();
                self.series.push(Series { labels, value });
            }
        }
    }

    /// Adds the value of a handler; a text that is no number is no value.
    pub(super) fn add_value(&mut self, labels: Vec<Label>, value: Value) {
        match value {
            Value::Count(n) => self.add(labels, n),
            Value::Real(x) => self.add(labels, x),
            Value::Shared(value) => self.add_value(labels, *value),
            Value::Counts(counts) => {
                let Some(name) = self.metric.label else { return };
                for (count, label) in counts {
                    self.add([&labels[..], &[(name, label)]].concat(), count);
                }
            }
            other => {
                let number = Number::parse(&other.to_string());
                number.into_iter().for_each(|number| self.add(labels.clone(), number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HITS: Metric = Metric::counter("hits", "Hits.").by("event");

    fn label(value: impl Into<Cow<'static, str>>) -> Vec<Label> {
        vec![("element", value.into())]
    }

    #[test]
    fn the_number_of_series_is_bounded_and_no_count_is_lost() {
        let mut family = Family::new(&HITS);
        for n in 0..MOST_SERIES + 500 {
            family.add(label(format!("e{n}")), 2_u64);
        }
        assert_eq!((family.series.len(), family.limited), (MOST_SERIES + 1, 500));
        let others = &family.series[MOST_SERIES];
        assert_eq!((others.labels.clone(), others.value), (label("other"), Number::Count(1000)));
        // One that has a series keeps it.
        family.add(label("e7"), 1_u64);
        assert_eq!((family.series[7].value, family.limited), (Number::Count(3), 500));
    }

    #[test]
    fn values_of_handlers_are_numbers_or_nothing() {
        let mut family = Family::new(&HITS);
        family.add_value(label("a"), Value::common(Value::from(7_usize)));
        family.add_value(label("b"), Value::Text("8.5\n".into()));
        family.add_value(label("c"), Value::Text("many".into()));
        family.add_value(label("d"), Value::Counts(vec![(1, "in".into()), (2, "out".into())]));
        let found: Vec<_> =
            family.series.iter().map(|it| (it.labels.len(), it.value.to_string())).collect();
        let wanted = [(1, "7"), (1, "8.5"), (2, "1"), (2, "2")];
        assert_eq!(found, wanted.map(|(labels, value)| (labels, value.to_owned())));
    }
}
