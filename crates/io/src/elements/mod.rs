//! The elements that receive and send packets, and that connect other programs, one file each.
#![allow(missing_docs)] // the manual documents the elements

mod attached_device;
pub mod chatter_socket;
pub mod control_socket;
pub mod device_balancer;
mod device_balancer_args;
mod device_balancer_state;
pub(crate) mod device_selection;
mod device_slot;
mod dpdk;
pub mod dpdk_args;
mod dpdk_flow_rules;
pub mod dpdk_info;
mod dump_pace;
mod duplex;
mod emit_switch;
mod encap;
pub mod ensure_dpdk_buffer;
pub mod from_device;
pub mod from_dpdk_device;
pub mod from_dpdk_ring;
pub mod from_dump;
pub mod from_host;
pub mod from_ip_summary_dump;
pub mod from_slots;
pub mod from_tcpdump;
mod host_state;
mod ip_mark;
pub mod ipfix_exporter;
mod ipfix_exporter_state;
mod kernel_device;
pub mod kernel_handler_proxy;
pub mod kernel_tap;
pub mod kernel_tun;
mod link_handlers;
mod link_header;
pub mod mcast_socket;
mod method;
mod metrics;
mod patterns;
mod poll_backoff;
mod port_bypass;
pub mod raw_socket;
mod ring_args;
mod rss_device;
mod rss_table;
mod rx_placement;
mod sample_rate;
mod server_slot;
mod slot_args;
pub mod socket;
mod socket_element;
mod socket_gate;
pub mod summary;
mod text_source;
pub mod to_device;
pub mod to_dpdk_device;
pub mod to_dpdk_ring;
pub mod to_dump;
pub mod to_host;
pub mod to_ip_summary_dump;
pub mod to_slots;
mod tx_queue;

use castanet_element::class::{
    Checksums, Class, NotifierOrder, control, duplex, per_batch, source,
};

pub use crate::interface::address_of;

/// The classes of this crate.
pub static CLASSES: &[Class] = &[
    control::<chatter_socket::ChatterSocket>().with_resources(chatter_socket::resources),
    control::<control_socket::ControlSocket>().with_resources(control_socket::resources),
    control::<device_balancer::DeviceBalancer>(),
    control::<dpdk_info::DPDKInfo>(),
    per_batch::<ensure_dpdk_buffer::EnsureDPDKBuffer>().with_checksums(Checksums::Pass),
    source::<from_device::FromDevice>()
        .with_resources(from_device::resources)
        .with_device(from_device::device)
        .with_bypass(&["ToDevice"]),
    source::<from_dpdk_device::FromDPDKDevice>()
        .with_resources(from_dpdk_device::resources)
        .with_device(from_dpdk_device::device)
        .with_bypass(&["ToDPDKDevice"])
        .with_lent_bytes(),
    source::<from_dpdk_ring::FromDPDKRing>(),
    source::<from_dump::FromDump>()
        .with_resources(from_dump::resources)
        .with_calls(from_dump::FromDump::calls)
        .with_notifier(NotifierOrder::Initialization),
    source::<from_host::FromHost>().with_resources(from_host::resources),
    source::<from_ip_summary_dump::FromIPSummaryDump>()
        .with_resources(from_ip_summary_dump::resources)
        .with_notifier(NotifierOrder::Initialization),
    source::<from_slots::FromSlots>().with_resources(from_slots::resources),
    source::<from_tcpdump::FromTcpdump>().with_resources(from_tcpdump::resources),
    per_batch::<ipfix_exporter::IPFIXExporter>()
        .with_resources(ipfix_exporter::resources)
        .with_checksums(Checksums::Pass),
    control::<kernel_handler_proxy::KernelHandlerProxy>(),
    duplex::<kernel_tap::KernelTap>().with_resources(kernel_device::resources),
    duplex::<kernel_tun::KernelTun>().with_resources(kernel_device::resources),
    duplex::<mcast_socket::McastSocket>().with_resources(mcast_socket::resources),
    duplex::<raw_socket::RawSocket>().with_resources(raw_socket::resources),
    duplex::<socket::Socket>()
        .with_resources(socket::resources)
        .with_program::<socket_gate::SocketGate>(),
    per_batch::<to_device::ToDevice>()
        .with_resources(to_device::resources)
        .with_device(to_device::device),
    per_batch::<to_dpdk_device::ToDPDKDevice>()
        .with_resources(to_dpdk_device::resources)
        .with_device(to_dpdk_device::device)
        .with_checksums(Checksums::Complete),
    per_batch::<to_dpdk_ring::ToDPDKRing>(),
    per_batch::<to_dump::ToDump>().with_resources(to_dump::resources),
    per_batch::<to_host::ToHost>().with_resources(to_host::resources),
    per_batch::<to_ip_summary_dump::ToIPSummaryDump>()
        .with_resources(to_ip_summary_dump::resources),
    per_batch::<to_slots::ToSlots>().with_resources(to_slots::resources),
];
