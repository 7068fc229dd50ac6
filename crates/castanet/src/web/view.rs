//! The rates that the page shows, taken once for all clients.

use super::history::{History, HistoryColumns};
use super::live::LiveRates;
use crate::observe::rates::Rates;
use crate::observe::snapshot::Snapshot;
use castanet_element::error::ArgError;
use castanet_element::time::Time;
use castanet_runtime::router::Router;
use std::sync::Arc;
use std::time::Duration;

/// Interval at which rates are taken while a client looks.
const EVERY: Duration = Duration::from_secs(1);
/// Time after which a client that asks for nothing does not look any more. Workers take samples of cost
/// for so long, too.
const LEASE: Duration = Duration::from_secs(10);

/// Time for which workers are not asked again after one of them has not answered: the control thread waits
/// for it, and nobody else is answered meanwhile.
const PAUSE: Duration = Duration::from_secs(60);

/// The state of the web view, on the control thread.
#[derive(Default)]
pub(crate) struct WebView {
    /// When the instance began to run: nanoseconds since the epoch.
    started: i64,
    last: Option<Snapshot>,
    live: Option<Arc<LiveRates>>,
    history: History,
    /// When a client asked last.
    asked: Option<Time>,
    /// When the next rates are to be taken.
    due: Option<Time>,
    /// When the next row of the history is due.
    row_due: Option<Time>,
    /// Why there are no rates until the next ones are due, if a worker has not answered.
    failure: Option<String>,
}

impl WebView {
    /// The view of an instance that began to run at this time, in nanoseconds since the epoch.
    pub(crate) fn new(started: i64) -> WebView {
        WebView { started, ..WebView::default() }
    }

    /// Takes rates if they are due; returns when the next ones are.
    pub(crate) fn step(&mut self, router: &mut Router) -> Option<Time> {
        let now = router.clock().now();
        if self.due.is_none_or(|due| due <= now) {
            self.take(router, now);
        }
        self.due
    }

    /// The last rates; none before there were two snapshots.
    ///
    /// # Errors
    /// A worker is gone or stuck.
    pub(crate) fn live(&mut self, router: &mut Router) -> Result<Option<Arc<LiveRates>>, ArgError> {
        let now = router.clock().now();
        self.asked = Some(now);
        // Rates over a shorter time would say little.
        let is_old = |last: &Snapshot| now - Time(last.time) >= EVERY + EVERY / 2;
        if self.failure.is_none() && self.last.as_ref().is_none_or(is_old) {
            self.take(router, now);
        }
        if let Some(failure) = &self.failure {
            return Err(ArgError::new(failure.clone()));
        }
        let next = now + EVERY;
        self.due = Some(self.due.map_or(next, |due| due.min(next)));
        Ok(self.live.clone())
    }

    /// The history of an element.
    pub(crate) fn history(&self, element: &str) -> HistoryColumns {
        self.history.columns(element)
    }

    /// Whether a client has asked lately.
    fn is_watched(&self, now: Time) -> bool {
        self.asked.is_some_and(|asked| now - asked < LEASE)
    }

    /// Takes rates, and says when the next ones are due. Without an answer of the workers there is a gap in
    /// the history.
    fn take(&mut self, router: &mut Router, now: Time) {
        let lease = self.is_watched(now).then_some(LEASE);
        let snapshot = Snapshot::take(router, lease);
        let every = History::interval(router.graph().elements.len());
        let (failure, pause) = match snapshot {
            Ok(snapshot) => {
                self.add(router, snapshot, every);
                (None, if self.is_watched(now) { EVERY } else { every })
            }
            Err(error) => (Some(error.to_string()), PAUSE),
        };
        self.failure = failure;
        // The answer of a worker may have taken long.
        self.due = Some(router.clock().now() + pause);
    }

    fn add(&mut self, router: &Router, snapshot: Snapshot, every: Duration) {
        if let Some(last) = &self.last {
            let rates = Rates::between(last, &snapshot);
            let live = Arc::new(LiveRates::of(router, self.started, snapshot.time, rates));
            let now = Time(snapshot.time);
            if self.row_due.is_none_or(|due| due <= now) {
                self.history.add(router, &live);
                // Earlier by half an interval of steps, one of which may come a little early.
                self.row_due = Some(now + (every - EVERY / 2));
            }
            self.live = Some(live);
        }
        self.last = Some(snapshot);
    }
}
