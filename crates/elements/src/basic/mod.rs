//! Elements that take any packet, whatever its bytes mean.

pub mod address_info;
pub mod adjust_timestamp;
pub mod aggregate_counter;
pub mod aggregate_counter_vector;
mod aggregate_counts;
pub mod aggregate_filter;
pub mod aggregate_first;
pub mod aggregate_ip;
pub mod aggregate_last;
pub mod aggregate_length;
pub mod aggregate_paint;
pub(crate) mod aggregates;
pub mod align;
pub mod alignment_info;
mod amount;
pub mod annotation_info;
mod arms;
pub mod arp_print;
pub mod arp_querier;
pub mod arp_responder;
pub mod arp_table;
pub mod average_batch_counter;
pub mod average_counter;
pub mod balanced_thread_sched;
pub mod bandwidth_meter;
pub mod bandwidth_rated_splitter;
pub mod batch_stats;
pub mod batcher;
pub mod block;
pub mod block_thread;
pub mod bypass;
pub mod check_align;
pub mod check_crc32;
pub mod check_ip6_header;
pub mod check_ip_header;
pub mod check_ip_header2;
pub mod check_length;
pub mod check_number_packet;
pub mod check_paint;
pub mod classifier;
pub mod clicky_info;
pub mod clipboard;
pub mod counter;
pub mod cpu_switch;
pub mod discard;
pub mod driver_manager;
pub mod drop_broadcasts;
pub(crate) mod ended;
pub mod error;
pub mod ether_encap;
pub mod ether_vlan_encap;
pub mod exact_cpu_switch;
pub mod get_ip6_address;
pub mod get_ip_address;
pub mod gtp_decap;
pub mod gtp_encap;
pub mod gtp_lookup;
pub mod gtp_table;
pub mod handler_aggregate;
pub mod hash_switch;
pub mod host_ether_filter;
pub mod hub;
pub mod icmp_ping_encap;
pub mod idle;
pub mod input_switch;
pub mod ip6_encap;
pub mod ip6_nd_advertiser;
pub mod ip6_nd_solicitor;
pub mod ip_encap;
pub mod ip_input_combo;
pub mod ip_rewriter_patterns;
mod known_tunnels;
mod last_packet;
pub mod lookup_ip6_route;
pub mod mark_ip6_header;
pub mod mark_ip_header;
pub mod mark_mac_header;
mod measured;
pub mod message;
pub mod meter;
pub mod min_batch;
pub mod move_data;
pub mod multi_counter;
pub mod null;
pub mod number_packet;
pub mod pad;
pub mod paint;
pub mod paint2;
pub mod paint_rr;
pub mod paint_switch;
pub mod paint_tee;
pub mod port_info;
pub mod print;
pub mod pull_null;
pub mod pull_tee;
pub mod push_null;
pub mod radix_ip_lookup;
pub mod random_bit_errors;
pub mod random_sample;
pub mod random_seed;
pub mod random_switch;
pub mod rated_splitter;
pub mod record_timestamp;
pub mod red;
pub mod resize;
pub mod round_robin_ip_mapper;
pub mod round_robin_switch;
pub mod router_link;
pub mod schedule_info;
pub mod script;
mod script_ports;
mod scripting;
pub mod search;
pub mod set_anno_byte;
pub mod set_crc32;
pub mod set_ip6_address;
pub mod set_ip_address;
pub mod set_packet_type;
pub mod set_timestamp;
pub mod set_timestamp_delta;
pub mod set_vlan_anno;
pub mod source_ip_hash_mapper;
pub mod static_switch;
pub mod static_thread_sched;
pub mod store_anno;
pub mod store_data;
pub mod store_ip_address;
pub mod stride_switch;
pub mod strip;
pub mod strip_to_network_header;
pub mod suppressor;
pub mod switch;
pub mod tee;
pub mod time_filter;
pub mod time_range;
mod time_span;
mod time_window;
pub mod timestamp_diff;
pub mod truncate;
pub mod udp_ip_encap;
pub mod unstrip;
pub mod unstrip_anno;
pub mod unstrip_ip_header;
pub mod unstrip_transport_header;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    info::<address_info::AddressInfo>(),
    per_packet::<adjust_timestamp::AdjustTimestamp>(),
    per_batch::<aggregate_counter::AggregateCounter>()
        .with_calls(aggregate_counter::AggregateCounter::calls)
        .with_calls_by(&["call_after_agg", "call_after_count"]),
    per_packet::<aggregate_counter_vector::AggregateCounterVector>(),
    per_packet::<aggregate_filter::AggregateFilter>(),
    per_packet::<aggregate_first::AggregateFirst>(),
    per_packet::<aggregate_ip::AggregateIP>(),
    per_batch::<aggregate_last::AggregateLast>(),
    per_packet::<aggregate_length::AggregateLength>(),
    per_packet::<aggregate_paint::AggregatePaint>(),
    per_packet::<align::Align>(),
    info::<alignment_info::AlignmentInfo>(),
    info::<annotation_info::AnnotationInfo>(),
    per_batch::<arp_print::ARPPrint>(),
    // A poll leaves before the packet that it is sent for.
    per_batch::<arp_querier::ARPQuerier>().with_first_output(1),
    per_packet::<arp_responder::ARPResponder>(),
    per_batch::<arp_table::ARPTable>(),
    per_batch::<average_batch_counter::AverageBatchCounter>().with_checksums(Checksums::Pass),
    per_batch::<average_counter::AverageCounter>().with_checksums(Checksums::Pass),
    control::<balanced_thread_sched::BalancedThreadSched>().moves_tasks(),
    per_packet::<bandwidth_meter::BandwidthMeter>(),
    per_packet::<bandwidth_rated_splitter::BandwidthRatedSplitter>(),
    per_batch::<batch_stats::BatchStats>().with_checksums(Checksums::Pass),
    per_batch::<batcher::Batcher>().with_checksums(Checksums::Pass),
    per_packet::<block::Block>(),
    per_batch::<block_thread::BlockThread>(),
    per_batch::<bypass::Bypass>(),
    per_packet::<check_align::CheckAlign>(),
    per_packet::<check_crc32::CheckCRC32>(),
    per_packet::<check_ip6_header::CheckIP6Header>(),
    per_packet::<check_ip_header2::CheckIPHeader2>(),
    per_packet::<check_ip_header::CheckIPHeader>(),
    per_packet::<check_length::CheckLength>(),
    per_batch::<check_number_packet::CheckNumberPacket>(),
    per_packet::<check_paint::CheckPaint>().with_checksums(Checksums::Pass),
    per_packet::<classifier::Classifier>(),
    info::<clicky_info::ClickyInfo>(),
    per_batch::<clipboard::Clipboard>(),
    per_batch::<counter::Counter>()
        .with_calls(counter::Counter::calls)
        .with_calls_by(&["count_call", "byte_count_call"])
        .with_checksums(Checksums::Pass),
    per_batch::<cpu_switch::CPUSwitch>().with_checksums(Checksums::Pass),
    per_batch::<discard::Discard>().with_checksums(Checksums::Pass),
    control::<driver_manager::DriverManager>(),
    per_packet::<drop_broadcasts::DropBroadcasts>(),
    per_batch::<error::Error>(),
    per_packet::<ether_encap::EtherEncap>().with_checksums(Checksums::Pass),
    per_packet::<ether_vlan_encap::EtherVLANEncap>(),
    per_batch::<exact_cpu_switch::ExactCPUSwitch>().with_checksums(Checksums::Pass),
    per_packet::<get_ip6_address::GetIP6Address>(),
    per_packet::<get_ip_address::GetIPAddress>(),
    control::<handler_aggregate::HandlerAggregate>(),
    per_packet::<gtp_decap::GTPDecap>(),
    per_packet::<gtp_encap::GTPEncap>(),
    per_batch::<gtp_lookup::GTPLookup>(),
    per_batch::<gtp_table::GTPTable>(),
    per_packet::<hash_switch::HashSwitch>(),
    per_packet::<host_ether_filter::HostEtherFilter>().with_checksums(Checksums::Pass),
    per_batch::<hub::Hub>(),
    per_packet::<icmp_ping_encap::ICMPPingEncap>(),
    per_batch::<idle::Idle>().with_checksums(Checksums::Pass),
    per_batch::<input_switch::InputSwitch>(),
    per_packet::<ip6_encap::IP6Encap>(),
    per_packet::<ip6_nd_advertiser::IP6NDAdvertiser>(),
    per_batch::<ip6_nd_solicitor::IP6NDSolicitor>().with_first_output(1),
    per_packet::<ip_encap::IPEncap>(),
    per_packet::<ip_input_combo::IPInputCombo>(),
    info::<ip_rewriter_patterns::IPRewriterPatterns>(),
    per_packet::<lookup_ip6_route::LookupIP6Route>(),
    per_packet::<mark_ip6_header::MarkIP6Header>(),
    per_packet::<mark_ip_header::MarkIPHeader>(),
    per_packet::<mark_mac_header::MarkMACHeader>().with_checksums(Checksums::Pass),
    info::<message::Message>(),
    per_packet::<meter::Meter>(),
    per_batch::<min_batch::MinBatch>(),
    per_packet::<move_data::MoveData>(),
    per_batch::<multi_counter::MultiCounter>(),
    per_batch::<null::Null>().with_checksums(Checksums::Pass),
    per_packet::<number_packet::NumberPacket>(),
    per_packet::<pad::Pad>(),
    per_packet::<paint::Paint>().with_checksums(Checksums::Pass),
    per_packet::<paint2::Paint2>(),
    per_packet::<paint_rr::PaintRR>(),
    per_batch::<paint_switch::PaintSwitch>().with_checksums(Checksums::Pass),
    per_batch::<paint_tee::PaintTee>().with_checksums(Checksums::Pass),
    info::<port_info::PortInfo>(),
    per_batch::<print::Print>(),
    per_batch::<pull_null::PullNull>().with_checksums(Checksums::Pass),
    per_batch::<pull_tee::PullTee>(),
    per_batch::<push_null::PushNull>().with_checksums(Checksums::Pass),
    per_packet::<radix_ip_lookup::RadixIPLookup>(),
    per_batch::<random_bit_errors::RandomBitErrors>(),
    per_batch::<random_sample::RandomSample>().with_checksums(Checksums::Pass),
    info::<random_seed::RandomSeed>(),
    per_batch::<random_switch::RandomSwitch>(),
    per_packet::<rated_splitter::RatedSplitter>(),
    per_batch::<record_timestamp::RecordTimestamp>(),
    per_batch::<red::RED>().with_watch(red::RED::queues),
    per_packet::<resize::Resize>(),
    info::<round_robin_ip_mapper::RoundRobinIPMapper>(),
    per_packet::<round_robin_switch::RoundRobinSwitch>().with_checksums(Checksums::Pass),
    control::<script::Script>().or_with_ports(&script_ports::SCRIPT_PORTS),
    per_batch::<router_link::RouterLink>(),
    info::<schedule_info::ScheduleInfo>(),
    per_packet::<search::Search>(),
    per_packet::<set_anno_byte::SetAnnoByte>(),
    per_packet::<set_crc32::SetCRC32>(),
    per_packet::<set_ip6_address::SetIP6Address>(),
    per_packet::<set_ip_address::SetIPAddress>(),
    per_packet::<set_packet_type::SetPacketType>().with_checksums(Checksums::Pass),
    per_packet::<set_timestamp::SetTimestamp>().with_checksums(Checksums::Pass),
    per_packet::<set_timestamp_delta::SetTimestampDelta>(),
    per_packet::<set_vlan_anno::SetVLANAnno>(),
    info::<source_ip_hash_mapper::SourceIPHashMapper>(),
    per_packet::<static_switch::StaticSwitch>().with_checksums(Checksums::Pass),
    info::<static_thread_sched::StaticThreadSched>(),
    per_packet::<store_anno::StoreAnno>(),
    per_packet::<store_data::StoreData>(),
    per_packet::<stride_switch::StrideSwitch>(),
    per_packet::<store_ip_address::StoreIPAddress>(),
    per_packet::<strip::Strip>().with_checksums(Checksums::Pass),
    per_packet::<strip_to_network_header::StripToNetworkHeader>(),
    per_batch::<suppressor::Suppressor>(),
    per_packet::<switch::Switch>().with_checksums(Checksums::Pass),
    per_batch::<tee::Tee>().with_checksums(Checksums::Pass),
    per_batch::<time_filter::TimeFilter>().with_calls(time_filter::TimeFilter::calls),
    per_packet::<time_range::TimeRange>(),
    per_batch::<timestamp_diff::TimestampDiff>(),
    per_packet::<truncate::Truncate>(),
    per_packet::<udp_ip_encap::UDPIPEncap>(),
    per_packet::<unstrip::Unstrip>().with_checksums(Checksums::Pass),
    per_packet::<unstrip_anno::UnstripAnno>(),
    per_packet::<unstrip_ip_header::UnstripIPHeader>(),
    per_packet::<unstrip_transport_header::UnstripTransportHeader>(),
];
