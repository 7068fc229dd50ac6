//! Types that describe ports and packets; some are laid out as in `shim.h`.

use std::ffi::{CStr, c_char};
use std::os::fd::RawFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

/// How a port is to be set up.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct PortConfig {
    pub(crate) rx_queues: u16,
    pub(crate) tx_queues: u16,
    pub(crate) rx_descriptors: u16,
    pub(crate) tx_descriptors: u16,
    /// Zero for what it is by itself.
    pub(crate) mtu: u16,
    pub(crate) promiscuous: bool,
    /// Whether packets are spread over queues by a hash.
    pub(crate) rss: bool,
    /// What the port is to look at when it receives, if it can.
    pub(crate) rx_checksums: Checksums,
    /// What it is to complete when it sends, if it can.
    pub(crate) tx_checksums: Checksums,
    /// Whether TCP packets longer than the MTU are to be cut.
    pub(crate) tso: bool,
    /// Its Ethernet address, if it is to have another.
    pub(crate) mac: Option<[u8; 6]>,
    /// Which pause frames it sends and obeys, if not as it is by itself.
    pub(crate) pause: Option<Pause>,
    /// Over how many queues packets are spread by their hash; zero for all.
    pub(crate) spread: u16,
    /// Whether queues interrupt when packets come.
    pub(crate) interrupts: bool,
}

/// Which pause frames (IEEE 802.3, annex 31B) a port sends and obeys; as DPDK numbers them.
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
#[cfg_attr(not(dpdk), expect(dead_code, reason = "nobody calls without DPDK"))]
pub(crate) struct InterruptListener {
    /// Hears of interrupts.
    pub(crate) epoll: RawFd,
    /// Is rung when the port was set up anew, which forgets who hears of interrupts.
    pub(crate) restart_notifier: Arc<UnixDatagram>,
}

/// Which checksums.
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
    /// Those of both.
    pub(crate) fn or(self, other: Checksums) -> Checksums {
        Checksums { ip: self.ip | other.ip, tcp: self.tcp | other.tcp, udp: self.udp | other.udp }
    }

    /// Whose checksums these are.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let all = [(self.ip, "IPv4"), (self.tcp, "TCP"), (self.udp, "UDP")];
        all.into_iter().filter_map(|(is, name)| is.then_some(name)).collect()
    }
}

/// What is to be seen to when sending; laid out as in `shim.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct TxLimits {
    /// Shorter packets need a second look.
    pub(super) shortest: u32,
    /// So do longer ones.
    pub(super) longest: u32,
    /// Which checksums the port completes.
    pub(super) tx_checksums: u32,
    pub(super) reserved: u32,
}

/// What can be sent, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TxCaps {
    pub(super) limits: TxLimits,
    /// Longest packet.
    pub(crate) longest: u32,
    /// How many bytes a packet may have that is cut later: in all its mbufs.
    pub(crate) in_mbufs: u32,
    /// TCP packets longer than this, without their link-layer header, are cut.
    pub(crate) cut: Option<u32>,
    /// How many bytes of such a packet the port cuts by itself, in one go.
    pub(crate) segment: Option<u16>,
    /// What the port completes.
    pub(crate) tx_checksums: Checksums,
}

impl TxCaps {
    /// Shortest packet.
    pub(crate) fn shortest(&self) -> usize {
        self.limits.shortest as usize
    }

    /// Longest packet that goes without a second look.
    pub(crate) fn direct_limit(&self) -> usize {
        self.limits.longest as usize
    }
}

/// How a port is to cut a TCP packet; laid out as in `shim.h`.
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

/// What became of a packet that was sent as a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(dpdk), expect(dead_code, reason = "nothing is sent without DPDK"))]
pub(crate) enum CopyResult {
    /// It went.
    Sent,
    /// There is no room for it now.
    Full,
    /// There are no mbufs for it now.
    NoMbuf,
    /// The driver does not want it.
    Refused,
}

/// How a ring is to be made.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RingConfig {
    /// How many packets it has room for.
    pub(crate) descriptors: u32,
    /// Where its memory is; negative for anywhere.
    pub(crate) numa_node: i32,
    /// Whether only one at a time will put packets in, of all processes.
    pub(crate) one_sender: bool,
    /// Whether only one at a time will take packets out.
    pub(crate) one_receiver: bool,
}

/// What to look for in received packets, of what the port says about them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct RxMetadata {
    /// The RSS hash, for the annotation `AGGREGATE`.
    pub(crate) hash: bool,
    /// Wrong checksums, to count.
    pub(crate) checks: bool,
}

/// What a call of `receive` found.
#[derive(Clone, Copy, Default)]
pub(crate) struct RxResult {
    /// Packets that were added to the batch.
    pub(crate) packets: usize,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Packets that were lost because there was no frame to copy them to.
    pub(crate) lost: usize,
    /// Those that were dropped because what was said of their lengths is not so.
    pub(crate) malformed: usize,
    /// Packets with a wrong checksum of IP, as the port says.
    pub(crate) bad_ip: u64,
    /// Those with one of what IP carries.
    pub(crate) bad_transport: u64,
}

impl RxResult {
    /// How many packets were taken from the device, whatever became of them.
    #[cfg_attr(not(dpdk), expect(dead_code, reason = "nothing is received without DPDK"))]
    pub(crate) fn taken(&self) -> usize {
        self.packets + self.lost + self.malformed
    }
}

/// What a call of `transmit` did.
#[derive(Clone, Copy, Default)]
pub(crate) struct TxResult {
    /// Packets that went.
    pub(crate) packets: usize,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Whether there was no room for the next.
    pub(crate) full: bool,
}

/// What a port is and can do.
#[derive(Clone)]
#[repr(C)]
pub(crate) struct PortInfo {
    pub(super) name: [c_char; 64],
    pub(super) driver: [c_char; 64],
    /// Its Ethernet address.
    pub(crate) mac: [u8; 6],
    /// Most queues to receive from.
    pub(crate) max_rx_queues: u16,
    /// Most queues to send to.
    pub(crate) max_tx_queues: u16,
    /// Longest packet without its Ethernet header.
    pub(crate) mtu: u16,
    /// The NUMA node that it is at; negative for none.
    pub(crate) numa_node: i32,
    /// What it can do by itself, by DPDK's bits.
    pub(super) rx_offloads: u64,
    pub(super) tx_offloads: u64,
    /// Most mbufs of a packet to send.
    pub(super) max_chain: u16,
    pub(super) reserved: [u16; 3],
}

impl PortInfo {
    /// What DPDK calls the port.
    pub(crate) fn name(&self) -> String {
        text(&self.name)
    }

    /// Its driver.
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
    /// Megabits a second.
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

/// What the hardware has counted.
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
