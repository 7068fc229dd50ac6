//! Types that describe ports and packets; some are laid out as in `shim.h`.

use castanet_packet::Batch;
use std::ffi::{CStr, c_char};
use std::os::fd::RawFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

/// Configuration of a port.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct PortConfig {
    pub(crate) rx_queues: u16,
    pub(crate) tx_queues: u16,
    pub(crate) rx_descriptors: u16,
    pub(crate) tx_descriptors: u16,
    /// Longest packet without its Ethernet header; zero to leave the MTU unchanged.
    pub(crate) mtu: u16,
    pub(crate) promiscuous: bool,
    /// Whether packets are spread over queues by a hash.
    pub(crate) rss: bool,
    /// Checksums of received packets that the port is to check, if it can.
    pub(crate) rx_checksums: Checksums,
    /// Checksums of sent packets that the port is to complete, if it can.
    pub(crate) tx_checksums: Checksums,
    /// Whether TCP packets longer than the MTU are to be cut.
    pub(crate) tso: bool,
    /// A new Ethernet address of the port.
    pub(crate) mac: Option<[u8; 6]>,
    /// Pause frames that the port sends and obeys; `None` for the driver's default.
    pub(crate) pause: Option<Pause>,
    /// Number of queues over which RSS spreads packets; zero for all.
    pub(crate) spread: u16,
    /// Whether receive queues raise interrupts.
    pub(crate) interrupts: bool,
    /// The pools of virtual machines' queues.
    pub(crate) vmdq: Option<Vmdq>,
    /// Whether the port receives only what its flow rules say.
    pub(crate) isolated: bool,
    /// Whether the port stamps received packets with its time.
    pub(crate) timestamps: bool,
}

impl PortConfig {
    /// The Ethernet address of a pool of VMDq: the port's own with the port and the pool as its last
    /// bytes, or one of QEMU's.
    pub(crate) fn pool_mac(&self, port: u16, pool: u16) -> [u8; 6] {
        let [a, b, c, d, ..] = self.mac.unwrap_or([0x52, 0x54, 0, 0, 0, 0]);
        [a, b, c, d, port as u8, pool as u8]
    }
}

/// Most pools of a port (`RTE_ETH_64_POOLS`).
pub(crate) const MOST_POOLS: usize = 64;

/// Pools of queues, one for each virtual machine (VMDq): packets go to a pool by their Ethernet
/// address or VLAN, and within it by their hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vmdq {
    /// Number of pools.
    pub pools: u16,
    /// Whether packets are spread over the queues of a pool by a hash.
    pub rss: bool,
    /// The VLAN of each pool.
    pub vlans: [u16; MOST_POOLS],
    /// Whether pools have VLANs; if not, they receive packets without a tag.
    pub has_vlans: bool,
}

/// Pause frames (IEEE 802.3, annex 31B) that a port sends and obeys, numbered as by DPDK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// None.
    None = 0,
    /// It obeys them.
    Obey = 1,
    /// It sends them.
    Send = 2,
    /// Both.
    Full = 3,
}

/// Descriptors to notify when packets come.
#[derive(Clone)]
#[cfg_attr(not(dpdk), expect(dead_code, reason = "ports exist only with DPDK"))]
pub(crate) struct InterruptListener {
    /// Epoll descriptor to which DPDK adds the queues' interrupts.
    pub(crate) epoll: RawFd,
    /// Receives a datagram when the port was restarted, which forgets its interrupt listeners.
    pub(crate) restart_notifier: Arc<UnixDatagram>,
}

/// A set of checksums.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Checksums {
    /// IPv4 headers'.
    pub ip: bool,
    /// TCP's.
    pub tcp: bool,
    /// UDP's.
    pub udp: bool,
}

impl Checksums {
    /// The union of both sets.
    pub(crate) fn or(self, other: Checksums) -> Checksums {
        Checksums { ip: self.ip | other.ip, tcp: self.tcp | other.tcp, udp: self.udp | other.udp }
    }

    /// Names of the protocols in the set.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let all = [(self.ip, "IPv4"), (self.tcp, "TCP"), (self.udp, "UDP")];
        all.into_iter().filter_map(|(is, name)| is.then_some(name)).collect()
    }
}

/// Limits of the fast path of transmission; laid out as in `shim.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct TxLimits {
    /// Shorter packets need the slow path.
    pub(super) shortest: u32,
    /// Longer packets need the slow path.
    pub(super) longest: u32,
    /// Checksums that the port completes, as bits `CHECKSUM_*` of `shim.h`.
    pub(super) tx_checksums: u32,
    pub(super) reserved: u32,
}

/// Capabilities of a port or ring for transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TxCaps {
    pub(super) limits: TxLimits,
    /// Longest packet.
    pub(crate) longest: u32,
    /// Most bytes of a chain of mbufs, and so of a packet for TSO.
    pub(crate) in_mbufs: u32,
    /// TCP packets longer than this, without their link-layer header, are cut.
    pub(crate) cut: Option<u32>,
    /// Longest segment, without its link-layer header, that TSO of the port makes; `None` without
    /// TSO.
    pub(crate) segment: Option<u16>,
    /// Checksums that the port completes.
    pub(crate) tx_checksums: Checksums,
}

impl TxCaps {
    /// Shortest packet.
    pub(crate) fn shortest(&self) -> usize {
        self.limits.shortest as usize
    }

    /// Longest packet that needs no slow path.
    pub(crate) fn direct_limit(&self) -> usize {
        self.limits.longest as usize
    }
}

/// TSO parameters of a TCP packet; laid out as in `shim.h`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct TsoRequest {
    pub(crate) l2_len: u16,
    pub(crate) l3_len: u16,
    pub(crate) l4_len: u16,
    /// Bytes of payload in each segment; 0 to leave it whole.
    pub(crate) size: u16,
    pub(crate) ipv6: u32,
}

/// Result of sending a copy of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(dpdk), expect(dead_code, reason = "nothing is sent without DPDK"))]
pub(crate) enum CopyResult {
    /// It was sent.
    Sent,
    /// There is no room for it in the transmit ring now.
    Full,
    /// There are no mbufs for it now.
    NoMbuf,
    /// The driver refused it.
    Refused,
}

/// Configuration of a new ring.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RingConfig {
    /// Capacity in packets.
    pub(crate) descriptors: u32,
    /// NUMA node of its memory; negative for any.
    pub(crate) numa_node: i32,
    /// Whether the ring has a single producer among all processes.
    pub(crate) one_sender: bool,
    /// Whether the ring has a single consumer.
    pub(crate) one_receiver: bool,
}

/// Metadata of received packets that the caller wants from the port.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct RxMetadata {
    /// The RSS hash, for the annotation `AGGREGATE`.
    pub(crate) hash: bool,
    /// Wrong checksums, to count.
    pub(crate) checks: bool,
    /// The port's time of reception, in ticks of its clock, as the packet's timestamp.
    pub(crate) timestamps: bool,
}

/// Result of a call of `receive`.
#[derive(Clone, Copy, Default)]
pub(crate) struct RxResult {
    /// Packets that were added to the batch.
    pub(crate) packets: usize,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Packets that were lost because there was no frame to copy them to.
    pub(crate) lost: usize,
    /// Packets that were dropped because their mbufs' lengths contradict each other.
    pub(crate) malformed: usize,
    /// Packets with a wrong IPv4 checksum, according to the port.
    pub(crate) bad_ip: u64,
    /// Packets with a wrong TCP or UDP checksum, according to the port.
    pub(crate) bad_transport: u64,
}

impl RxResult {
    /// Number of packets taken from the device, lost and malformed ones included.
    #[cfg_attr(not(dpdk), expect(dead_code, reason = "nothing is received without DPDK"))]
    pub(crate) fn taken(&self) -> usize {
        self.packets + self.lost + self.malformed
    }
}

/// Result of a call of `transmit`.
#[derive(Clone, Copy, Default)]
pub(crate) struct TxResult {
    /// Packets that were sent.
    pub(crate) packets: usize,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Whether there was no room for the next.
    pub(crate) full: bool,
}

/// Result of a call of `forward`.
#[derive(Clone, Copy, Default)]
pub(crate) struct ForwardResult {
    /// Packets that were sent.
    pub(crate) sent: TxResult,
    /// Packets that were added to batches.
    pub(crate) rest: RxResult,
    /// Bytes that were received and cut off.
    pub(crate) cut: u64,
}

/// Batches for packets that do not go on without descriptors.
pub(crate) struct OtherPackets<'a> {
    /// Those that found no room in the transmit ring, or need the slow path.
    pub(crate) unsent: &'a mut Batch,
    /// Those of which no element has handled the bytes, or which take another way.
    pub(crate) refused: &'a mut Batch,
}

impl OtherPackets<'_> {
    /// The same batches, for one call.
    pub(crate) fn again(&mut self) -> OtherPackets<'_> {
        OtherPackets { unsent: self.unsent, refused: self.refused }
    }

    /// Whether there are none.
    pub(crate) fn are_none(&self) -> bool {
        self.unsent.is_empty() && self.refused.is_empty()
    }
}

/// `RTE_ETH_RX_OFFLOAD_TIMESTAMP`
pub(super) const RX_TIMESTAMP: u64 = 1 << 14;

/// Identity and capabilities of a port.
#[derive(Clone)]
#[repr(C)]
pub(crate) struct PortInfo {
    pub(super) name: [c_char; 64],
    pub(super) driver: [c_char; 64],
    /// Its Ethernet address.
    pub(crate) mac: [u8; 6],
    /// Most receive queues.
    pub(crate) max_rx_queues: u16,
    /// Most transmit queues.
    pub(crate) max_tx_queues: u16,
    /// Longest packet without its Ethernet header.
    pub(crate) mtu: u16,
    /// The NUMA node that it is at; negative for none.
    pub(crate) numa_node: i32,
    /// Offloads of the port, as DPDK's bits.
    pub(super) rx_offloads: u64,
    pub(super) tx_offloads: u64,
    /// Most mbufs of a packet to send.
    pub(super) max_chain: u16,
    /// Most VMDq pools; 0 without VMDq.
    pub(crate) max_vmdq_pools: u16,
    pub(super) reserved: [u16; 2],
}

impl PortInfo {
    /// DPDK's name of the port.
    pub(crate) fn name(&self) -> String {
        text(&self.name)
    }

    /// Whether the port can stamp received packets with its time.
    pub(crate) fn has_timestamps(&self) -> bool {
        self.rx_offloads & RX_TIMESTAMP != 0
    }

    /// Name of the port's driver.
    pub(crate) fn driver(&self) -> String {
        text(&self.driver)
    }
}

pub(super) fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|&c| c as u8).chain([0]).collect();
    CStr::from_bytes_until_nul(&bytes).unwrap_or_default().to_string_lossy().into_owned()
}

/// The state of a port's link.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct LinkStatus {
    /// Megabits per second.
    pub(crate) speed: u32,
    up: u8,
    full_duplex: u8,
    autoneg: u8,
    reserved: u8,
}

impl LinkStatus {
    pub(crate) fn is_up(&self) -> bool {
        self.up != 0
    }
    pub(crate) fn is_full_duplex(&self) -> bool {
        self.full_duplex != 0
    }
    pub(crate) fn is_negotiated(&self) -> bool {
        self.autoneg != 0
    }
}

/// Statistics of the hardware since the port was started.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct PortStats {
    pub(crate) rx_packets: u64,
    pub(crate) rx_bytes: u64,
    pub(crate) rx_missed: u64,
    pub(crate) rx_errors: u64,
    pub(crate) rx_no_mbuf: u64,
    pub(crate) tx_packets: u64,
    pub(crate) tx_bytes: u64,
    pub(crate) tx_errors: u64,
}
