//! The metrics of counters.

use castanet_element::prelude::*;

pub(super) const PACKETS: Metric =
    Metric::counter("counted_packets", "Packets that a counter has counted.");
pub(super) const BYTES: Metric =
    Metric::counter("counted_bytes", "Bytes that a counter has counted.");
