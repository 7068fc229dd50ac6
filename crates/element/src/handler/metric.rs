//! Metrics: the handlers whose values monitoring systems collect, and the names of the values there.

/// A family of values with one name and one meaning. Handlers of several classes may be of one family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Its name without the prefix `castanet_`, and without the suffix `_total` of counters. Behind its
    /// last `_` stands what it counts, or the unit: `packets`, `bytes`, `seconds`.
    pub name: &'static str,
    /// Whether its values only grow.
    pub kind: MetricKind,
    /// Its sentence.
    pub help: &'static str,
    /// The label by which the counts of a value with several of them differ
    /// ([`Value::Counts`](super::Value::Counts)).
    pub label: Option<&'static str>,
}

/// Kind of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// A count that only grows, except that it may begin anew.
    Counter,
    /// A number that grows and falls.
    Gauge,
}

impl Metric {
    /// A count that only grows.
    pub const fn counter(name: &'static str, help: &'static str) -> Metric {
        Metric { name, kind: MetricKind::Counter, help, label: None }
    }

    /// A number that grows and falls.
    pub const fn gauge(name: &'static str, help: &'static str) -> Metric {
        Metric { name, kind: MetricKind::Gauge, help, label: None }
    }

    /// The name that monitoring systems show.
    pub fn full_name(&self) -> String {
        let suffix = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Gauge => "",
        };
        format!("castanet_{}{suffix}", self.name)
    }

    /// The same for a value of several counts, which differ by a label.
    pub const fn by(self, label: &'static str) -> Metric {
        Metric { label: Some(label), ..self }
    }
}

/// A read handler whose value is collected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandlerMetric {
    /// Name of the handler.
    pub handler: &'static str,
    /// The metric.
    pub metric: &'static Metric,
}
