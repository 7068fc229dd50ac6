//! Elements that assign packets to aggregates, and count or filter by aggregate.

pub mod aggregate_counter;
pub mod aggregate_counter_vector;
mod aggregate_counts;
pub mod aggregate_filter;
pub mod aggregate_first;
pub mod aggregate_ip;
pub mod aggregate_ip_flows;
mod aggregate_ip_flows_args;
pub mod aggregate_last;
pub mod aggregate_length;
pub mod aggregate_paint;
mod annotation;
mod end_notifications;
mod flow_emission;
mod flow_queue;
mod flow_trace;
mod last_packet;
mod packet_weight;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_batch::<aggregate_counter::AggregateCounter>()
        .with_calls(aggregate_counter::AggregateCounter::calls)
        .with_calls_by(&["aggregate_call", "count_call"]),
    per_packet::<aggregate_counter_vector::AggregateCounterVector>(),
    per_packet::<aggregate_filter::AggregateFilter>(),
    per_packet::<aggregate_first::AggregateFirst>(),
    per_packet::<aggregate_ip::AggregateIP>(),
    per_batch::<aggregate_ip_flows::AggregateIPFlows>()
        .with_resources(aggregate_ip_flows_args::resources),
    per_batch::<aggregate_last::AggregateLast>(),
    per_packet::<aggregate_length::AggregateLength>(),
    per_packet::<aggregate_paint::AggregatePaint>(),
];
