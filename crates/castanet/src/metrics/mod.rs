//! Metrics: counts of a running router for monitoring systems, as OpenMetrics and as Prometheus's text.

mod collection;
mod exposition;
mod family;
mod names;
mod page;
mod report;

pub(crate) use collection::{InstanceCounts, Reloads};
pub(crate) use exposition::Format;
pub(crate) use page::tables;
pub(crate) use report::{MetricsCache, MetricsReport};
