//! The metrics of elements that export flows.

use castanet_element::prelude::*;

/// Flows that an element meters at present.
pub const FLOWS: Metric = Metric::gauge("ipfix_flows", "Flows that the element meters at present.");

/// Flow records that were sent.
pub const RECORDS: Metric = Metric::counter(
    "ipfix_sent_records",
    "Flow records in messages that were handed to the network, or to an output.",
);

/// Messages that were sent.
pub const MESSAGES: Metric =
    Metric::counter("ipfix_sent_messages", "IPFIX messages that were sent.");

/// Flow records that were lost.
pub const LOST: Metric = Metric::counter(
    "ipfix_lost_records",
    "Flow records that could not be sent, or whose message the host of the collector refused.",
);

/// Flows that ended for lack of room.
pub const EVICTED: Metric = Metric::counter(
    "ipfix_evicted_flows",
    "Flows that ended early because the table was full, and were exported then.",
);

/// Packets that belong to no flow.
pub const IGNORED: Metric = Metric::counter(
    "ipfix_ignored_packets",
    "Packets without an IP header, which belong to no flow.",
);
