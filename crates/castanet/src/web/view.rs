//! The rates that the page shows, taken once for all clients.

use super::history::{History, HistoryColumns};
use super::live::LiveRates;
use crate::observe::rates::Rates;
use crate::observe::snapshot::Snapshot;
use castanet_element::error::ArgError;
use castanet_element::time::Time;
use castanet_runtime::router::Router;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// Interval at which rates are taken while a client looks.
const EVERY: Duration = Duration::from_secs(1);
/// Time after which a client that asks for nothing does not look any more. Workers take samples of cost
/// for so long, too.
const LEASE: Duration = Duration::from_secs(10);

/// The state of the web view, on the control thread.
#[derive(Default)]
pub(crate) struct WebView {
    last: Option<Snapshot>,
    live: Option<Arc<LiveRates>>,
    history: History,
    /// When a client asked last.
    asked: Option<Time>,
    /// When the next rates are to be taken.
    due: Option<Time>,
    /// When the next row of the history is due.
    row_due: Option<Time>,
}

/// The history of an element.
#[derive(Serialize)]
pub(crate) struct HistoryPage {
    element: String,
    #[serde(flatten)]
    columns: HistoryColumns,
}

impl WebView {
    /// Takes rates if they are due; returns when the next ones are.
    pub(crate) fn step(&mut self, router: &mut Router) -> Option<Time> {
        let now = router.clock().now();
        if self.due.is_none_or(|due| due <= now) {
            // Without an answer of the workers there is a gap in the history.
            _ = self.take(router, now);
            let interval = match self.is_watched(now) {
                true => EVERY,
                false => EVERY.max(History::interval(router.graph().elements.len())),
            };
            self.due = Some(now + interval);
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
        if self.last.as_ref().is_none_or(is_old) {
            self.take(router, now)?;
        }
        let next = now + EVERY;
        self.due = Some(self.due.map_or(next, |due| due.min(next)));
        Ok(self.live.clone())
    }

    /// The history of an element.
    pub(crate) fn history(&self, element: &str) -> HistoryPage {
        HistoryPage { element: element.to_owned(), columns: self.history.columns(element) }
    }

    /// Whether a client has asked lately.
    fn is_watched(&self, now: Time) -> bool {
        self.asked.is_some_and(|asked| now - asked < LEASE)
    }

    fn take(&mut self, router: &mut Router, now: Time) -> Result<(), ArgError> {
        let lease = self.is_watched(now).then_some(LEASE);
        let snapshot = Snapshot::take(router, lease)?;
        if let Some(last) = &self.last {
            let rates = Rates::between(last, &snapshot);
            let live = Arc::new(LiveRates::of(router, snapshot.time, rates));
            if self.row_due.is_none_or(|due| due <= now) {
                self.history.add(router, &live);
                // Earlier by half an interval of steps, one of which may come a little early.
                let interval = History::interval(router.graph().elements.len());
                self.row_due = Some(now + (interval - EVERY / 2));
            }
            self.live = Some(live);
        }
        self.last = Some(snapshot);
        Ok(())
    }
}
