//! Declarations of the functions in the C files; structures are laid out as in `shim.h`.

use super::flow::RawRule;
use super::types::{LinkStatus, MOST_POOLS, PortInfo, PortStats, TsoRequest, TxLimits};
use castanet_packet::{FrameHeader, RawPacket};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Most packets of one call.
pub(super) const BURST: usize = 128;
/// Most packets that are forwarded without inspection at once: with 128 a port forwards 7 % fewer over net_pcap.
pub(super) const FORWARDED: usize = 64;

/// A mempool, opaque here.
#[repr(C)]
pub(super) struct Mempool {
    opaque: [u8; 0],
}

/// A ring, opaque here.
#[repr(C)]
pub(super) struct RteRing {
    opaque: [u8; 0],
}

/// An mbuf, opaque here.
#[repr(C)]
pub(super) struct Mbuf {
    opaque: [u8; 0],
}

/// Common fields of packets in the mbufs of a mempool.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct PacketTemplate {
    pub(super) pool: *const Mempool,
    /// Marks of packets that were just received.
    pub(super) marks: u64,
    /// Bytes of an mbuf's buffer.
    pub(super) room: u64,
}

/// Result of receiving a burst.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct RxBurst {
    pub(super) all: u32,
    /// How many of these, from the first on, became packets in place.
    pub(super) placed: u32,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// Result of sending a burst.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct TxBurst {
    /// Number of packets that needed no slow path.
    pub(super) ready: u32,
    /// Number of these that were sent.
    pub(super) sent: u32,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// Result of receiving a burst and sending it unchanged.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct ForwardedBurst {
    pub(super) all: u32,
    /// How many of these, from the first on, were sent.
    pub(super) sent: u32,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// Result of receiving a burst and looking at its mbufs.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct ReceivedBurst {
    pub(super) all: u32,
    /// Offset of the data of each from its mbuf; 0 if they are not alike.
    pub(super) offset: u32,
    /// Length of the shortest.
    pub(super) shortest: u32,
    /// Whether one has flags.
    pub(super) has_flags: u32,
    /// Their bytes.
    pub(super) bytes: u64,
}

/// Configuration with which C sets a port up.
#[repr(C)]
pub(super) struct PortSetup {
    pub(super) mbufs: *mut Mempool,
    pub(super) rx_queues: u16,
    pub(super) tx_queues: u16,
    pub(super) rx_descriptors: u16,
    pub(super) tx_descriptors: u16,
    pub(super) mtu: u16,
    pub(super) promiscuous: u8,
    pub(super) rss: u8,
    pub(super) interrupts: u8,
    pub(super) has_vlans: u8,
    pub(super) pools: u16,
    pub(super) rx_offloads: u64,
    pub(super) tx_offloads: u64,
    pub(super) vlans: [u16; MOST_POOLS],
}

unsafe extern "C" {
    pub(super) fn castanet_dpdk_errno() -> c_int;
    pub(super) fn castanet_dpdk_strerror(error: c_int) -> *const c_char;
    pub(super) fn castanet_dpdk_init(argc: c_int, argv: *const *mut c_char) -> c_int;
    pub(super) fn castanet_dpdk_lcores() -> c_uint;
    pub(super) fn castanet_dpdk_enter_thread() -> c_int;
    pub(super) fn castanet_dpdk_leave_thread();
    pub(super) fn castanet_dpdk_pool(
        name: *const c_char,
        mbufs: c_uint,
        cache: c_uint,
        room: u16,
        numa_node: c_int,
    ) -> *mut Mempool;
    pub(super) fn castanet_dpdk_pool_available(pool: *const Mempool) -> c_uint;
    pub(super) fn castanet_dpdk_pool_has(pool: *const Mempool, n: c_uint) -> bool;
    pub(super) fn castanet_dpdk_take(
        pool: *mut Mempool,
        frames: *mut Option<std::ptr::NonNull<FrameHeader>>,
        n: c_uint,
    ) -> c_uint;
    pub(super) fn castanet_dpdk_put(
        pool: *mut Mempool,
        frames: *const std::ptr::NonNull<FrameHeader>,
        n: c_uint,
    );
    pub(super) fn castanet_dpdk_port_exists(port: u16) -> c_int;
    pub(super) fn castanet_dpdk_port_named(name: *const c_char, port: *mut u16) -> c_int;
    pub(super) fn castanet_dpdk_next_port(from: u16) -> u64;
    pub(super) fn castanet_dpdk_info(port: u16, info: *mut PortInfo) -> c_int;
    pub(super) fn castanet_dpdk_start(port: u16, setup: *const PortSetup) -> c_int;
    pub(super) fn castanet_dpdk_revive(port: u16) -> c_int;
    pub(super) fn castanet_dpdk_stop(port: u16) -> c_int;
    pub(super) fn castanet_dpdk_link(port: u16, link: *mut LinkStatus);
    pub(super) fn castanet_dpdk_counts(port: u16, counts: *mut PortStats) -> c_int;
    pub(super) fn castanet_dpdk_receive(
        port: u16,
        queue: u16,
        template: *const PacketTemplate,
        packets: *mut RawPacket,
        mbufs: *mut *mut Mbuf,
        n: c_uint,
    ) -> RxBurst;
    pub(super) fn castanet_dpdk_forward(
        from: u16,
        from_queue: u16,
        shared: bool,
        to: u16,
        to_queue: u16,
        limits: *const TxLimits,
        mbufs: *mut *mut Mbuf,
        n: c_uint,
    ) -> ForwardedBurst;
    pub(super) fn castanet_dpdk_make(
        mbufs: *const *mut Mbuf,
        n: c_uint,
        template: *const PacketTemplate,
        packets: *mut RawPacket,
    ) -> RxBurst;
    pub(super) fn castanet_dpdk_receive_alike(
        port: u16,
        queue: u16,
        template: *const PacketTemplate,
        limits: *const TxLimits,
        mbufs: *mut *mut Mbuf,
        ends: *mut u32,
        n: c_uint,
    ) -> ReceivedBurst;
    pub(super) fn castanet_dpdk_cut(
        mbufs: *const *mut Mbuf,
        ends: *const u32,
        n: c_uint,
        offset: u32,
    ) -> u64;
    pub(super) fn castanet_dpdk_send(
        port: u16,
        queue: u16,
        mbufs: *mut *mut Mbuf,
        n: c_uint,
        has_flags: bool,
    ) -> u32;
    pub(super) fn castanet_dpdk_place(
        mbuf: *mut Mbuf,
        template: *const PacketTemplate,
        packet: *mut RawPacket,
        bytes: *mut u64,
    ) -> bool;
    pub(super) fn castanet_dpdk_rx_metadata(mbuf: *const Mbuf) -> u64;
    #[cfg(test)]
    pub(super) fn castanet_dpdk_flow_header(kind: u32) -> c_int;
    pub(super) fn castanet_dpdk_flow_create(
        port: u16,
        rule: *const RawRule,
        flow: *mut *mut c_void,
        why: *mut c_char,
        room: usize,
    ) -> c_int;
    pub(super) fn castanet_dpdk_flow_destroy(
        port: u16,
        flow: *mut c_void,
        why: *mut c_char,
        room: usize,
    ) -> c_int;
    pub(super) fn castanet_dpdk_flow_count(
        port: u16,
        flow: *mut c_void,
        counter: u32,
        packets: *mut u64,
        bytes: *mut u64,
        why: *mut c_char,
        room: usize,
    ) -> c_int;
    pub(super) fn castanet_dpdk_flow_isolate(
        port: u16,
        on: bool,
        why: *mut c_char,
        room: usize,
    ) -> c_int;
    pub(super) fn castanet_dpdk_register_timestamps() -> c_int;
    pub(super) fn castanet_dpdk_rx_timestamp(mbuf: *const Mbuf, timestamp: *mut u64) -> bool;
    pub(super) fn castanet_dpdk_pool_mac(port: u16, pool: u32, mac: *const [u8; 6]) -> c_int;
    pub(super) fn castanet_dpdk_read_clock(port: u16, clock: *mut u64) -> c_int;
    pub(super) fn castanet_dpdk_mbuf(frame: std::ptr::NonNull<FrameHeader>) -> *const Mbuf;
    pub(super) fn castanet_dpdk_xstats(
        port: u16,
        names: *mut [c_char; 64],
        values: *mut u64,
        room: c_uint,
    ) -> c_int;
    pub(super) fn castanet_dpdk_waiting(port: u16, queue: u16) -> c_int;
    pub(super) fn castanet_dpdk_accept_mac(port: u16, mac: *const [u8; 6], add: bool) -> c_int;
    pub(super) fn castanet_dpdk_set_mac(port: u16, mac: *const [u8; 6]) -> c_int;
    pub(super) fn castanet_dpdk_pause(port: u16, mode: u32) -> c_int;
    pub(super) fn castanet_dpdk_reta_size(port: u16) -> c_int;
    pub(super) fn castanet_dpdk_reta(port: u16, queues: *mut u16, size: u16, write: bool) -> c_int;
    pub(super) fn castanet_dpdk_listen(port: u16, queue: u16, epoll: c_int, on: bool) -> c_int;
    pub(super) fn castanet_dpdk_interrupt(port: u16, queue: u16) -> c_int;
    pub(super) fn castanet_dpdk_arm(port: u16, queue: u16, on: bool) -> c_int;
    pub(super) fn castanet_dpdk_drain_interrupts(epoll: c_int);
    pub(super) fn castanet_dpdk_length(mbuf: *const Mbuf) -> i64;
    pub(super) fn castanet_dpdk_copy_out(mbuf: *const Mbuf, to: *mut u8, len: u32) -> bool;
    pub(super) fn castanet_dpdk_discard(mbuf: *mut Mbuf);
    #[cfg(test)]
    pub(super) fn castanet_dpdk_distinct(mbuf: *const Mbuf, most: u32) -> u32;
    #[cfg(test)]
    pub(super) fn castanet_dpdk_has_alike() -> bool;
    #[cfg(test)]
    pub(super) fn castanet_dpdk_packets_alike(
        mbufs: *const *mut Mbuf,
        all: u64,
        template: *const PacketTemplate,
        packets: *mut RawPacket,
        bytes: *mut u64,
    ) -> bool;
    #[cfg(test)]
    pub(super) fn castanet_dpdk_collect(
        packets: *const RawPacket,
        n: c_uint,
        mbuf_pools: *const u64,
        limits: *const TxLimits,
        mbufs: *mut *mut Mbuf,
        needs_prepare: *mut bool,
    ) -> TxBurst;
    #[cfg(test)]
    pub(super) fn castanet_dpdk_look_alike(
        mbufs: *mut *mut Mbuf,
        all: u64,
        template: *const PacketTemplate,
        limits: *const TxLimits,
        ends: *mut u32,
    ) -> ReceivedBurst;
    #[cfg(test)]
    pub(super) fn castanet_dpdk_look(
        mbufs: *mut *mut Mbuf,
        all: u64,
        template: *const PacketTemplate,
        limits: *const TxLimits,
        ends: *mut u32,
    ) -> ReceivedBurst;
    #[cfg(test)]
    pub(super) fn castanet_dpdk_forwardable(
        mbufs: *mut *mut Mbuf,
        all: u64,
        limits: *const TxLimits,
        bytes: *mut u64,
    ) -> u64;
    pub(super) fn castanet_dpdk_transmit(
        port: u16,
        queue: u16,
        packets: *const RawPacket,
        n: c_uint,
        mbuf_pools: *const u64,
        limits: *const TxLimits,
    ) -> TxBurst;
    pub(super) fn castanet_dpdk_transmit_long(
        port: u16,
        queue: u16,
        mbufs: *mut Mempool,
        bytes: *const u8,
        len: u32,
        how: *const TsoRequest,
    ) -> c_int;
    pub(super) fn castanet_dpdk_dequeue(
        ring: *mut RteRing,
        template: *const PacketTemplate,
        packets: *mut RawPacket,
        mbufs: *mut *mut Mbuf,
        n: c_uint,
    ) -> RxBurst;
    pub(super) fn castanet_dpdk_enqueue(
        ring: *mut RteRing,
        packets: *const RawPacket,
        n: c_uint,
        mbuf_pools: *const u64,
        limits: *const TxLimits,
    ) -> TxBurst;
    pub(super) fn castanet_dpdk_enqueue_long(
        ring: *mut RteRing,
        mbufs: *mut Mempool,
        bytes: *const u8,
        len: u32,
    ) -> c_int;
    pub(super) fn castanet_dpdk_is_primary() -> bool;
    pub(super) fn castanet_dpdk_ring(
        name: *const c_char,
        descriptors: c_uint,
        numa_node: c_int,
        one_sender: bool,
        one_receiver: bool,
    ) -> *mut RteRing;
    pub(super) fn castanet_dpdk_ring_count(ring: *const RteRing) -> c_uint;
}
