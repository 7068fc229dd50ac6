//! Transmits packets as mbufs: copies packets into mbufs where needed, and passes the mbufs to a
//! port or ring.

use super::claims;
use crate::device::DeviceStats;
use crate::error::IoError;
use crate::offload::{self, LinkType, Segments, VnetHeader};
use crate::sys::dpdk::{self as sys, CopyResult, Mbufs, TsoRequest, TxCaps, TxResult};
use castanet_packet::{Batch, Packet, PartialChecksums};
use castanet_wire::headers::{Headers, Layer};

/// A port's queue or a ring that takes mbufs.
pub(super) trait MbufSink {
    /// Transmits packets from the front of a batch that are unshared mbufs, up to the first that
    /// needs the slow path. `length_checked` skips the check for longer packets. Packets that were
    /// sent are removed from the batch.
    fn transmit(&mut self, batch: &mut Batch, length_checked: bool) -> TxResult;

    /// Limits and offloads of the sink; `None` if it can send nothing now.
    fn tx_caps(&self, mbufs: &Mbufs) -> Option<TxCaps>;

    /// Transmits a copy of `bytes` as one packet in several mbufs, or as TCP segments if `cut` asks
    /// for it.
    fn transmit_copy(&mut self, mbufs: &Mbufs, bytes: &[u8], cut: &TsoRequest) -> CopyResult;
}

/// Result of the slow path for the first packet of a batch.
enum SlowPathResult {
    /// It can be sent on the fast path now.
    Ready,
    /// A copy of it was sent.
    Sent,
    /// It can never be sent.
    Refused,
    /// There is no mbuf, or no room in the ring, for it now.
    Retry,
}

/// Transmits batches to a sink.
pub(super) struct Transmitter<'a, T> {
    pub(super) sink: T,
    pub(super) mbufs: &'a Mbufs,
    pub(super) stats: &'a mut DeviceStats,
    /// Segments of a packet that was cut in software, which are still to be sent.
    pub(super) segments: &'a mut Batch,
}

impl<T: MbufSink> Transmitter<'_, T> {
    /// Transmits packets from the front of `batch`: unshared mbufs in place, other packets as copies.
    /// Packets that can never be sent are dropped and counted. Returns the number of packets sent.
    #[inline]
    pub(super) fn transmit(&mut self, batch: &mut Batch) -> usize {
        let mut sent = 0;
        while self.segments.is_empty() || self.flush() {
            let tx_result = self.sink.transmit(batch, false);
            sent += tx_result.packets;
            self.stats.sent_bytes += tx_result.bytes;
            if batch.is_empty() {
                break;
            }
            if tx_result.full {
                self.stats.tx_full += 1;
                break;
            }
            match self.prepare_first(batch) {
                SlowPathResult::Ready => {}
                SlowPathResult::Sent => {
                    sent += 1;
                    self.stats.sent_bytes += batch.remove(0).len() as u64;
                }
                SlowPathResult::Refused => {
                    self.stats.tx_errors += 1;
                    drop(batch.remove(0));
                }
                SlowPathResult::Retry => {
                    self.stats.tx_full += 1;
                    break;
                }
            }
        }
        self.stats.sent += sent as u64;
        sent
    }

    /// Transmits the segments that are left of a packet that was cut; `true` if none is left.
    #[cold]
    pub(super) fn flush(&mut self) -> bool {
        // With a VLAN tag, segments may be longer than the limit of the fast path.
        let tx_result = self.sink.transmit(self.segments, true);
        if !self.segments.is_empty() && !tx_result.full {
            self.stats.tx_errors += self.segments.len() as u64;
            self.segments.clear();
        }
        self.segments.is_empty()
    }

    /// Slow path: prepares the first packet of the batch for the fast path, or sends a copy. Also
    /// copies packets behind it into mbufs, as far as that suffices.
    #[cold]
    fn prepare_first(&mut self, batch: &mut Batch) -> SlowPathResult {
        let Some(caps) = self.sink.tx_caps(self.mbufs) else { return SlowPathResult::Retry };
        let (shortest, room) = (caps.shortest(), self.mbufs.pool().data_capacity());
        let [first, others @ ..] = batch.as_mut_slice() else { return SlowPathResult::Ready };
        let own = sys::is_own_mbuf(first);
        if first.len() < shortest {
            return SlowPathResult::Refused;
        }
        if first.len() > caps.direct_limit() || !own && first.len() > room {
            return self.send_long(first, &caps);
        }
        if own && first.partial_checksums() != PartialChecksums::default() {
            // The port cannot complete the checksums.
            offload::complete_checksums(first);
            return SlowPathResult::Ready;
        }
        if own {
            return SlowPathResult::Refused;
        }
        if !ensure(first, self.mbufs) {
            return SlowPathResult::Retry;
        }
        for packet in others {
            let apt = (shortest..=room.min(caps.direct_limit())).contains(&packet.len());
            if !apt || !sys::is_own_mbuf(packet) && !ensure(packet, self.mbufs) {
                break;
            }
        }
        SlowPathResult::Ready
    }

    /// Sends a packet that is longer than an mbuf or the port's MTU.
    fn send_long(&mut self, packet: &mut Packet, caps: &TxCaps) -> SlowPathResult {
        let offsets_to_cut = match caps.cut {
            Some(mtu) => {
                offload::find_headers(packet.bytes(), LinkType::Ethernet).filter(|offsets| {
                    offsets.upper == Layer::Tcp && packet.len() - offsets.network > mtu as usize
                })
            }
            None => None,
        };
        if let Some(offsets) = offsets_to_cut {
            return self.send_tso(packet, &offsets, caps);
        }
        if packet.len() > caps.longest as usize {
            return SlowPathResult::Refused;
        }
        if packet.partial_checksums() != PartialChecksums::default() {
            offload::complete_checksums(packet);
        }
        self.send_copy(packet, &TsoRequest::default())
    }

    fn send_copy(&mut self, packet: &Packet, cut: &TsoRequest) -> SlowPathResult {
        match self.sink.transmit_copy(self.mbufs, packet.bytes(), cut) {
            CopyResult::Sent => SlowPathResult::Sent,
            CopyResult::Full | CopyResult::NoMbuf => SlowPathResult::Retry,
            CopyResult::Refused => SlowPathResult::Refused,
        }
    }

    /// Sends a TCP packet as segments that are no longer than the MTU: by TSO of the port if it can,
    /// else in software.
    fn send_tso(&mut self, packet: &Packet, offsets: &Headers, caps: &TxCaps) -> SlowPathResult {
        let headers = offsets.payload - offsets.network;
        let size = |mtu: usize| mtu.checked_sub(headers).filter(|&size| size > 0);
        let ipv6 = offsets.is_ip6;
        let port = caps.segment.filter(|_| packet.len() <= caps.in_mbufs as usize);
        if let Some(size) = port.and_then(|mtu| size(mtu.into())) {
            let cut = TsoRequest {
                l2_len: offsets.network as u16,
                l3_len: (offsets.transport - offsets.network) as u16,
                l4_len: (offsets.payload - offsets.transport) as u16,
                size: size as u16,
                ipv6: ipv6.into(),
            };
            return match self.send_copy(packet, &cut) {
                // Some drivers refuse long headers.
                SlowPathResult::Refused => self.cut_in_software(packet, size, ipv6),
                other => other,
            };
        }
        match caps.cut.and_then(|mtu| size(mtu as usize)) {
            Some(size) => self.cut_in_software(packet, size, ipv6),
            None => SlowPathResult::Refused,
        }
    }

    /// Cuts a TCP packet into segments of `size` bytes of payload, and queues them in `segments`.
    fn cut_in_software(&mut self, packet: &Packet, size: usize, ipv6: bool) -> SlowPathResult {
        let gso_type = if ipv6 { VnetHeader::GSO_TCPV6 } else { VnetHeader::GSO_TCPV4 };
        let how = VnetHeader { gso_type, gso_size: size as u16, ..VnetHeader::default() };
        let Ok(mut segments) = Segments::new(packet.bytes(), &how, LinkType::Ethernet) else {
            return SlowPathResult::Refused;
        };
        while let Some((headers, payload)) = segments.next() {
            let len = Some(headers.len() + payload.len());
            let len = len.filter(|&len| len <= self.mbufs.pool().data_capacity());
            let Some(mut packet) = len.and_then(|_| self.mbufs.pool().copy_in(headers)) else {
                self.segments.clear();
                return if len.is_some() { SlowPathResult::Retry } else { SlowPathResult::Refused };
            };
            packet.put_back(payload.len()).copy_from_slice(payload);
            self.segments.push(packet);
        }
        SlowPathResult::Sent
    }
}

/// Replaces the packet by a copy in an mbuf, with annotations and header offsets, unless it lies in
/// one that no other packet has; `false` if no mbuf is free.
fn ensure(packet: &mut Packet, mbufs: &Mbufs) -> bool {
    packet.make_exclusive();
    if sys::is_own_mbuf(packet) {
        return true;
    }
    let Some(mut copy) = mbufs.pool().copy_in(packet.bytes()) else { return false };
    copy.copy_annotations(packet);
    copy.copy_header_offsets(packet);
    *packet = copy;
    true
}

/// Mbufs for packets whose bytes lie elsewhere.
pub struct Buffers(Mbufs);

impl Buffers {
    /// The mbufs of the machine's first NUMA node.
    pub fn open() -> Result<Buffers, IoError> {
        claims::mbufs("have mbufs", 0).map(Buffers)
    }

    /// Makes the packet an unshared mbuf, by a copy with annotations and header offsets if needed;
    /// `false` if no mbuf is free or the packet is longer than an mbuf.
    pub fn ensure(&self, packet: &mut Packet) -> bool {
        sys::is_own_mbuf(packet)
            || packet.len() <= self.0.pool().data_capacity() && ensure(packet, &self.0)
    }
}
