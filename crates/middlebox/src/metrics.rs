//! The metrics of a `Middlebox`.

use castanet_element::prelude::*;

pub(crate) const RULES: Metric = Metric::gauge("middlebox_rules", "Rules of the middlebox.");

pub(crate) const RULE_PACKETS: Metric = Metric::counter(
    "middlebox_rule_packets",
    "Packets that matched a rule, by the rule's identifier; `other` are all rules behind the first 2000.",
)
.by("rule");

pub(crate) const RULE_BYTES: Metric = Metric::counter(
    "middlebox_rule_bytes",
    "Bytes of the packets that matched a rule, by the rule's identifier.",
)
.by("rule");

pub(crate) const CONNECTIONS: Metric =
    Metric::gauge("middlebox_connections", "Connections that stateful rules track.");

pub(crate) const CONNECTION_EVENTS: Metric = Metric::counter(
    "middlebox_connection_events",
    "Connections added, expired, evicted for others and refused.",
)
.by("event");

pub(crate) const WAITING_FRAGMENTS: Metric = Metric::gauge(
    "middlebox_waiting_fragments",
    "Fragments that wait for the first fragment of their packet.",
);

pub(crate) const UNFIT_OPTIONS: Metric = Metric::counter(
    "middlebox_unfit_options",
    "TCP options that were not added or changed for lack of room in header or packet.",
);
