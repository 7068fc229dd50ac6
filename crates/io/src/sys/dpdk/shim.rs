//! What `shim.c` offers; structures are laid out as there.

use super::types::{Counts, Info, Link};
use castanet_packet::FrameHeader;
use std::ffi::{c_char, c_int, c_uint};

/// Most packets of one call.
pub(super) const BURST: usize = 64;

/// A mempool; only DPDK knows what is in it.
#[repr(C)]
pub(super) struct Mempool {
    opaque: [u8; 0],
}

/// An mbuf; only DPDK knows what is in it.
#[repr(C)]
pub(super) struct Mbuf {
    opaque: [u8; 0],
}

/// A packet on its way.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Slot {
    /// Its frame; null if it was received in a way that is not a frame's.
    pub(super) frame: *mut FrameHeader,
    /// How many bytes and, below, where they start, counted from the frame's
    /// first: one word, as it is read back at once.
    pub(super) span: u64,
    /// When received, its mbuf.
    pub(super) mbuf: *mut Mbuf,
}

impl Slot {
    /// How many bytes.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        (self.span >> 32) as u32
    }

    /// Where they start.
    #[inline]
    pub(super) fn start(&self) -> u32 {
        self.span as u32
    }
}

/// How a port is to be set up.
#[repr(C)]
pub(super) struct Setup {
    pub(super) mbufs: *mut Mempool,
    pub(super) rx_queues: u16,
    pub(super) tx_queues: u16,
    pub(super) rx_descriptors: u16,
    pub(super) tx_descriptors: u16,
    pub(super) mtu: u16,
    pub(super) promiscuous: u8,
    pub(super) reserved: u8,
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
    pub(super) fn castanet_dpdk_info(port: u16, info: *mut Info) -> c_int;
    pub(super) fn castanet_dpdk_start(port: u16, setup: *const Setup) -> c_int;
    pub(super) fn castanet_dpdk_stop(port: u16) -> c_int;
    pub(super) fn castanet_dpdk_link(port: u16, link: *mut Link);
    pub(super) fn castanet_dpdk_counts(port: u16, counts: *mut Counts) -> c_int;
    pub(super) fn castanet_dpdk_receive(
        port: u16,
        queue: u16,
        pool: *const Mempool,
        slots: *mut Slot,
        n: c_uint,
    ) -> c_uint;
    pub(super) fn castanet_dpdk_copy_out(mbuf: *mut Mbuf, to: *mut u8, len: u32);
    pub(super) fn castanet_dpdk_transmit(
        port: u16,
        queue: u16,
        slots: *const Slot,
        n: c_uint,
    ) -> c_uint;
}
