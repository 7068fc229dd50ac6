//! The metrics of elements that translate addresses.

use castanet_element::prelude::*;

pub(super) const MAPPINGS: Metric = Metric::gauge(
    "nat_mappings",
    "Mappings of the rewriter, with those that have expired and are yet to be removed.",
);
pub(super) const FAILURES: Metric = Metric::counter(
    "nat_mapping_failures",
    "Times that the rewriter found no free address or port, or no room for a mapping.",
);
pub(super) const EVENTS: Metric = Metric::counter(
    "nat_mapping_events",
    "Mappings added, expired, evicted for others, removed and refused, of all rewriters that share the \
     capacity.",
)
.by("event");
pub(super) const CAPACITY: Metric = Metric::gauge(
    "nat_capacity_mappings",
    "The most mappings that all rewriters that share the capacity may have.",
);

pub(super) const BINDINGS: Metric =
    Metric::gauge("nat_bindings", "Addresses or ports of the translator's pool in use.");
