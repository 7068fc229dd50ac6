//! Transmits packets as mbufs: moves them into mbufs where needed, and hands the mbufs to a port or
//! ring.

use super::claims;
use crate::device::DeviceStats;
use crate::error::IoError;
use crate::offload::{self, HeaderOffsets, IpVersion, LinkType, Segments, Transport, VnetHeader};
use crate::sys::dpdk::{self as sys, Copied, Cut, Handed, Mbufs, Terms};
use castanet_packet::{Batch, Packet, PartialChecksums};

/// A port's queue or a ring that takes mbufs.
pub(super) trait Taker {
    /// Takes mbufs of their own from the front of a batch, up to the first
    /// that needs a second look, but not for its length if that is `known` to
    /// be right.
    fn take(&mut self, batch: &mut Batch, known: bool) -> Handed;

    /// What can be sent, if anything.
    fn terms(&self, mbufs: &Mbufs) -> Option<Terms>;

    /// Takes a copy of bytes as one packet in several mbufs, or cuts it.
    fn take_copy(&mut self, mbufs: &Mbufs, bytes: &[u8], cut: &Cut) -> Copied;
}

/// Result of the slow path for the first packet of a batch.
enum Looked {
    /// It can go now.
    Mended,
    /// A copy of it went.
    Sent,
    /// It never can go.
    Refused,
    /// There is no mbuf or no room for it now.
    NotNow,
}

/// Hands packets over to a taker.
pub(super) struct Handing<'a, T> {
    pub(super) taker: T,
    pub(super) mbufs: &'a Mbufs,
    pub(super) stats: &'a mut DeviceStats,
    /// Pieces of a packet that was cut, which are still to go.
    pub(super) pieces: &'a mut Batch,
}

impl<T: Taker> Handing<'_, T> {
    /// Hands packets from the front of `batch` over: those in mbufs of their
    /// own as they are, others as a copy, or not at all. Answers how many went.
    #[inline]
    pub(super) fn transmit(&mut self, batch: &mut Batch) -> usize {
        let mut sent = 0;
        while self.pieces.is_empty() || self.flush() {
            let handed = self.taker.take(batch, false);
            sent += handed.packets;
            self.stats.sent_bytes += handed.bytes;
            if batch.is_empty() {
                break;
            }
            if handed.full {
                self.stats.tx_full += 1;
                break;
            }
            match self.look(batch) {
                Looked::Mended => {}
                Looked::Sent => {
                    sent += 1;
                    self.stats.sent_bytes += batch.remove(0).len() as u64;
                }
                Looked::Refused => {
                    self.stats.tx_errors += 1;
                    drop(batch.remove(0));
                }
                Looked::NotNow => {
                    self.stats.tx_full += 1;
                    break;
                }
            }
        }
        self.stats.sent += sent as u64;
        sent
    }

    /// Hands over what is left of a packet that was cut; whether all of it went.
    #[cold]
    pub(super) fn flush(&mut self) -> bool {
        // They may be longer than what goes without a second look, by a tag.
        let handed = self.taker.take(self.pieces, true);
        if !self.pieces.is_empty() && !handed.full {
            self.stats.tx_errors += self.pieces.len() as u64;
            self.pieces.clear();
        }
        self.pieces.is_empty()
    }

    /// Sees to the first packet of the batch, and to others of its kind.
    #[cold]
    fn look(&mut self, batch: &mut Batch) -> Looked {
        let Some(terms) = self.taker.terms(self.mbufs) else { return Looked::NotNow };
        let (shortest, room) = (terms.shortest(), self.mbufs.pool().data_capacity());
        let [first, others @ ..] = batch.as_mut_slice() else { return Looked::Mended };
        let own = sys::is_own_mbuf(first);
        if first.len() < shortest {
            return Looked::Refused;
        }
        if first.len() > terms.unseen() || !own && first.len() > room {
            return self.send_long(first, &terms);
        }
        if own && first.partial_checksums() != PartialChecksums::default() {
            // The port cannot do it.
            offload::complete_checksums(first);
            return Looked::Mended;
        }
        if own {
            return Looked::Refused;
        }
        if !ensure(first, self.mbufs) {
            return Looked::NotNow;
        }
        for packet in others {
            let apt = (shortest..=room.min(terms.unseen())).contains(&packet.len());
            if !apt || !sys::is_own_mbuf(packet) && !ensure(packet, self.mbufs) {
                break;
            }
        }
        Looked::Mended
    }

    /// Sends a packet that is longer than an mbuf or the port's MTU.
    fn send_long(&mut self, packet: &mut Packet, terms: &Terms) -> Looked {
        let found = match terms.cut {
            Some(mtu) => {
                offload::find_headers(packet.bytes(), LinkType::Ethernet).filter(|offsets| {
                    offsets.protocol == Transport::Tcp
                        && packet.len() - offsets.network > mtu as usize
                })
            }
            None => None,
        };
        if let Some(offsets) = found {
            return self.send_cut(packet, &offsets, terms);
        }
        if packet.len() > terms.longest as usize {
            return Looked::Refused;
        }
        if packet.partial_checksums() != PartialChecksums::default() {
            offload::complete_checksums(packet);
        }
        self.copied(packet, &Cut::default())
    }

    fn copied(&mut self, packet: &Packet, cut: &Cut) -> Looked {
        match self.taker.take_copy(self.mbufs, packet.bytes(), cut) {
            Copied::Sent => Looked::Sent,
            Copied::Full | Copied::NoMbuf => Looked::NotNow,
            Copied::Refused => Looked::Refused,
        }
    }

    /// Sends a TCP packet as several that are no longer than the MTU: the port
    /// cuts it, if it can.
    fn send_cut(&mut self, packet: &Packet, offsets: &HeaderOffsets, terms: &Terms) -> Looked {
        let headers = offsets.payload - offsets.network;
        let size = |mtu: usize| mtu.checked_sub(headers).filter(|&size| size > 0);
        let ipv6 = offsets.version == IpVersion::V6;
        let port = terms.segment.filter(|_| packet.len() <= terms.in_mbufs as usize);
        if let Some(size) = port.and_then(|mtu| size(mtu.into())) {
            let cut = Cut {
                l2_len: offsets.network as u16,
                l3_len: (offsets.transport - offsets.network) as u16,
                l4_len: (offsets.payload - offsets.transport) as u16,
                size: size as u16,
                ipv6: ipv6.into(),
            };
            return match self.copied(packet, &cut) {
                // Such as one whose header is longer than the driver takes.
                Looked::Refused => self.cut_here(packet, size, ipv6),
                other => other,
            };
        }
        match terms.cut.and_then(|mtu| size(mtu as usize)) {
            Some(size) => self.cut_here(packet, size, ipv6),
            None => Looked::Refused,
        }
    }

    /// Cuts a TCP packet into segments of `size` bytes, which then wait to be sent.
    fn cut_here(&mut self, packet: &Packet, size: usize, ipv6: bool) -> Looked {
        let gso_type = if ipv6 { VnetHeader::GSO_TCPV6 } else { VnetHeader::GSO_TCPV4 };
        let how = VnetHeader { gso_type, gso_size: size as u16, ..VnetHeader::default() };
        let Ok(mut segments) = Segments::new(packet.bytes(), &how, LinkType::Ethernet) else {
            return Looked::Refused;
        };
        while let Some((headers, payload)) = segments.next() {
            let piece = Some(headers.len() + payload.len());
            let piece = piece.filter(|&len| len <= self.mbufs.pool().data_capacity());
            let Some(mut packet) = piece.and_then(|_| self.mbufs.pool().copy_in(headers)) else {
                self.pieces.clear();
                return if piece.is_some() { Looked::NotNow } else { Looked::Refused };
            };
            packet.put_back(payload.len()).copy_from_slice(payload);
            self.pieces.push(packet);
        }
        Looked::Sent
    }
}

/// Copies the packet into an mbuf, with all that is known about it; `false` if
/// there is none.
fn ensure(packet: &mut Packet, mbufs: &Mbufs) -> bool {
    let Some(mut copy) = mbufs.pool().copy_in(packet.bytes()) else { return false };
    copy.copy_annotations(packet);
    copy.copy_header_offsets(packet);
    *packet = copy;
    true
}

/// Mbufs for packets that are in none.
pub struct Buffers(Mbufs);

impl Buffers {
    /// The mbufs of the machine's first NUMA node.
    pub fn open() -> Result<Buffers, IoError> {
        claims::mbufs("have mbufs", 0).map(Buffers)
    }

    /// Sees to it that the packet is an mbuf in place that nobody else holds,
    /// with all that is known about it; `false` if there is none for it.
    pub fn ensure(&self, packet: &mut Packet) -> bool {
        sys::is_own_mbuf(packet)
            || packet.len() <= self.0.pool().data_capacity() && ensure(packet, &self.0)
    }
}
