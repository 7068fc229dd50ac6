//! Elements that print recorded traffic, and change, select or replay it by its time stamps.

pub mod adjust_timestamp;
pub mod anonymize_ip_addr;
pub mod arp_print;
pub mod ip6_print;
pub mod ip_print;
mod ip_print_args;
mod line_writer;
mod packet_trace;
pub mod print;
mod replay_end;
pub mod replay_unqueue;
mod replay_unqueue_args;
pub mod set_timestamp;
pub mod set_timestamp_delta;
mod signed_time;
pub mod store_timestamp;
pub mod time_filter;
pub mod time_range;
mod time_window;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<adjust_timestamp::AdjustTimestamp>(),
    per_batch::<anonymize_ip_addr::AnonymizeIPAddr>(),
    per_batch::<arp_print::ARPPrint>().with_resources(arp_print::resources),
    per_batch::<ip6_print::IP6Print>().acts_on("ip6"),
    per_batch::<ip_print::IPPrint>().acts_on("ip").with_resources(ip_print::resources),
    per_batch::<print::Print>(),
    source::<replay_unqueue::ReplayUnqueue>(),
    per_packet::<set_timestamp::SetTimestamp>().with_checksums(Checksums::Pass),
    per_packet::<set_timestamp_delta::SetTimestampDelta>(),
    per_packet::<store_timestamp::StoreTimestamp>(),
    per_batch::<time_filter::TimeFilter>().with_calls(time_filter::TimeFilter::calls),
    per_packet::<time_range::TimeRange>(),
];
