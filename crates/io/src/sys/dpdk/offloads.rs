//! Offloads and packet limits of a port, from the requested configuration and its capabilities.

use super::types::{Checksums, CopyResult, PortConfig, PortInfo, RX_TIMESTAMP, TxCaps, TxLimits};

/// `RTE_ETH_TX_OFFLOAD_TCP_TSO`
const TX_TCP_SEGMENTS: u64 = 1 << 5;
/// `RTE_ETH_TX_OFFLOAD_MULTI_SEGS`
const TX_CHAINS: u64 = 1 << 15;
/// `RTE_ETH_RX_OFFLOAD_SCATTER`
const RX_CHAINS: u64 = 1 << 13;
/// `RTE_ETH_RX_OFFLOAD_RSS_HASH`
const RX_HASH: u64 = 1 << 19;

/// Most mbufs of one packet.
const CHAIN: u32 = 64;

/// Bytes of a link-layer header at most: Ethernet's, with two tags.
const LINK_HEADER: u32 = 14 + 2 * 4;

impl TxCaps {
    /// Capabilities of a ring: no checks, no offloads.
    pub(super) fn of_ring(room: u32) -> TxCaps {
        let limits = TxLimits::ANY;
        let (cut, segment, tx_checksums) = (None, None, Checksums::default());
        let longest = room * CHAIN;
        TxCaps { limits, longest, in_mbufs: longest, cut, segment, tx_checksums }
    }

    /// Capabilities of a port with this configuration, for mbufs of `room` bytes of data.
    pub(super) fn of_port(config: &PortConfig, info: &PortInfo, room: u32) -> TxCaps {
        let mtu = u32::from(info.mtu);
        let chain = match config.has_chains(info, room) {
            true => u32::from(info.max_chain),
            false => 1,
        };
        let cut = config.tso.then_some(mtu);
        let tx_checksums = config.tx_checksums.among(info.tx_offloads);
        // net_tap counts the link-layer header as part of a segment's size.
        let spare = if info.driver() == "net_tap" { 14 } else { 0 };
        let segment = (mtu.saturating_sub(spare)) as u16;
        let limits = TxLimits {
            shortest: SHORTEST,
            longest: cut.map_or(u32::MAX, |mtu| mtu + ETHERNET),
            tx_checksums: tx_checksums.bits(),
            reserved: 0,
        };
        TxCaps {
            limits,
            longest: (room * chain).min(room.max(mtu + LINK_HEADER)),
            in_mbufs: room * chain,
            cut,
            segment: Some(segment).filter(|_| config.segments(info)),
            tx_checksums,
        }
    }
}

impl TxLimits {
    /// Limits of a sink that takes packets of any length.
    pub(super) const ANY: TxLimits =
        TxLimits { shortest: 0, longest: u32::MAX, tx_checksums: 0, reserved: 0 };

    /// These limits without an upper one, for packets whose length was checked.
    pub(super) fn unlimited(self) -> TxLimits {
        TxLimits { longest: u32::MAX, ..self }
    }
}

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// Shortest packet that is passed to a port; drivers pad or refuse packets too short for the wire.
const SHORTEST: u32 = 1;

impl PortConfig {
    /// Whether to enable chains of mbufs for sending: if the port can send them, and packets may be
    /// longer than `room`. Drivers are faster without.
    fn has_chains(&self, info: &PortInfo, room: u32) -> bool {
        let longest = u32::from(if self.mtu > 0 { self.mtu } else { info.mtu }) + LINK_HEADER;
        info.tx_offloads & TX_CHAINS != 0 && (longest > room || self.tso)
    }

    /// Whether the port does TSO.
    fn segments(&self, info: &PortInfo) -> bool {
        let both = TX_TCP_SEGMENTS | TX_CHAINS;
        self.tso && info.tx_offloads & both == both
    }

    /// Transmit offloads to enable (`RTE_ETH_TX_OFFLOAD_*`).
    pub(super) fn tx_offloads(&self, info: &PortInfo, room: u32) -> u64 {
        let chains = if self.has_chains(info, room) { TX_CHAINS } else { 0 };
        let all = Checksums { ip: true, tcp: true, udp: false };
        let segments = if self.segments(info) { TX_TCP_SEGMENTS | all.offloads() } else { 0 };
        chains | segments | self.tx_checksums.offloads()
    }

    /// Receive offloads to enable (`RTE_ETH_RX_OFFLOAD_*`).
    pub(super) fn rx_offloads(&self, info: &PortInfo, room: u32) -> u64 {
        let mtu = u32::from(if self.mtu > 0 { self.mtu } else { info.mtu });
        let chains = if mtu + LINK_HEADER > room { RX_CHAINS } else { 0 };
        let hash = if self.rss { RX_HASH } else { 0 };
        let timestamps = if self.timestamps { RX_TIMESTAMP } else { 0 };
        chains | hash | timestamps | self.rx_checksums.offloads()
    }
}

impl Checksums {
    /// DPDK's offload bits for these checksums, which are the same for both directions.
    pub(super) fn offloads(self) -> u64 {
        let bit = |wanted: bool, bit: u32| u64::from(wanted) << bit;
        bit(self.ip, 1) | bit(self.udp, 2) | bit(self.tcp, 3)
    }

    /// Those of these checksums whose offload bits are set.
    pub(super) fn among(self, offloads: u64) -> Checksums {
        let has = |bit: u32| offloads >> bit & 1 != 0;
        Checksums { ip: self.ip && has(1), udp: self.udp && has(2), tcp: self.tcp && has(3) }
    }

    /// The bits `CHECKSUM_*` of `shim.h`.
    fn bits(self) -> u32 {
        u32::from(self.ip) | u32::from(self.tcp) << 1 | u32::from(self.udp) << 2
    }
}

impl CopyResult {
    /// From the return value of `castanet_dpdk_transmit_long`.
    pub(super) fn from_answer(answer: i32) -> CopyResult {
        match answer {
            1 => CopyResult::Sent,
            0 => CopyResult::Full,
            _ if answer == -libc::ENOMEM => CopyResult::NoMbuf,
            _ => CopyResult::Refused,
        }
    }
}
