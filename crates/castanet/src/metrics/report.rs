//! Reports of metrics, each of which serves all clients for a moment.

use super::collection::{ElementLabels, InstanceCounts, collect};
use super::exposition::{self, Format};
use super::family::Family;
use crate::observe::snapshot::ElementTotals;
use castanet_element::error::ArgError;
use castanet_runtime::router::Router;
use hyper::body::Bytes;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Time for which a report serves all clients: however many they are, they cost the workers no more than
/// five collections a second.
const MAX_AGE: Duration = Duration::from_millis(200);

/// The values of all metrics at one time. Its texts are made where they are wanted, off the control
/// thread.
pub(crate) struct MetricsReport {
    families: Vec<Family>,
    plain: OnceLock<Bytes>,
    open: OnceLock<Bytes>,
}

impl MetricsReport {
    /// The text in a format.
    pub(crate) fn text(&self, format: Format) -> Bytes {
        let text = match format {
            Format::Plain => &self.plain,
            Format::OpenMetrics => &self.open,
        };
        text.get_or_init(|| exposition::text(&self.families, format).into()).clone()
    }
}

/// The last report.
#[derive(Default)]
pub(crate) struct MetricsCache {
    last: Option<(Instant, Arc<MetricsReport>)>,
    labels: Option<ElementLabels>,
    /// Reports so far.
    collections: u64,
}

impl MetricsCache {
    /// The last report, or a new one if that is too old. `processes` gives the totals of elements in other processes.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub(crate) fn report(
        &mut self,
        router: &mut Router,
        instance: &InstanceCounts<'_>,
        processes: impl FnOnce(&Router) -> Vec<ElementTotals>,
    ) -> Result<Arc<MetricsReport>, ArgError> {
        if let Some((made, report)) = &self.last
            && made.elapsed() < MAX_AGE
        {
            return Ok(report.clone());
        }
        let labels = self.labels.take().filter(|labels| labels.is_current(router));
        let labels = labels.unwrap_or_else(|| ElementLabels::of(router));
        self.collections += 1;
        let processes = processes(router);
        let families = collect(router, instance, (&labels, &processes), self.collections);
        self.labels = Some(labels);
        let (plain, open) = (OnceLock::new(), OnceLock::new());
        let report = Arc::new(MetricsReport { families: families?, plain, open });
        self.last = Some((Instant::now(), report.clone()));
        Ok(report)
    }
}
