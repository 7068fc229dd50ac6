//! Elements that count packets and measure rates, bursts, latency and loss.

pub mod average_batch_counter;
pub mod average_counter;
mod average_records;
mod batch_counts;
pub mod batch_stats;
pub mod check_number_packet;
pub mod counter;
mod counter_state;
pub mod ip_rate_monitor;
mod ip_rate_monitor_state;
pub(crate) mod limit;
mod metrics;
pub mod multi_counter;
pub mod number_packet;
mod recent_rate;
pub mod record_timestamp;
pub mod timestamp_diff;
mod timestamp_diff_state;
mod timestamp_table;
pub mod work_package;
mod work_package_state;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_batch::<average_batch_counter::AverageBatchCounter>().with_checksums(Checksums::Pass),
    per_batch::<average_counter::AverageCounter>().with_checksums(Checksums::Pass),
    per_batch::<batch_stats::BatchStats>().with_checksums(Checksums::Pass),
    per_batch::<check_number_packet::CheckNumberPacket>(),
    per_batch::<counter::Counter>()
        .with_calls(counter::Counter::calls)
        .with_calls_by(&["count_call", "byte_count_call"])
        .with_checksums(Checksums::Pass),
    per_batch::<ip_rate_monitor::IPRateMonitor>(),
    per_batch::<multi_counter::MultiCounter>(),
    per_packet::<number_packet::NumberPacket>(),
    per_batch::<record_timestamp::RecordTimestamp>(),
    per_batch::<timestamp_diff::TimestampDiff>(),
    per_batch::<work_package::WorkPackage>().with_checksums(Checksums::Pass).with_unbounded_time(),
];
