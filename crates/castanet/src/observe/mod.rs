//! Observation of a running router: totals, rates and drops, for live views, clients and metrics.

pub(crate) mod drops;
pub(crate) mod log;
pub(crate) mod rates;
pub(crate) mod snapshot;
