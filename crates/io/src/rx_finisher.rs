//! Makes packets of received frames: checksums, VLAN tags, segmentation, annotations, counts.

use crate::device::DeviceStats;
use crate::offload::{self, LinkType, Segments, VlanTag, VnetHeader};
use castanet_packet::{Batch, Packet, PacketType, Pool, anno};

/// Metadata of a received frame, from the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameMeta {
    /// Length in bytes of the frame before it was cut to the stored bytes.
    pub(crate) wire_len: usize,
    /// The offloads that the sender left undone.
    pub(crate) vnet: VnetHeader,
    /// The tag that the kernel removed from the frame.
    pub(crate) vlan: Option<VlanTag>,
    /// The packet type: `PACKET_HOST` and its kin.
    pub(crate) kind: u8,
    /// The timestamp in nanoseconds since the epoch; zero if the kernel gave none.
    pub(crate) time: i64,
}

/// Makes packets of received frames. Keeps packets for which a batch has no room: one super-frame
/// can give more packets than the caller asked for.
pub(crate) struct RxFinisher {
    /// The link type: the header with which frames begin.
    pub(crate) link: LinkType,
    /// The device's number.
    device: u16,
    /// Packets for the next batch.
    overflow: Batch,
    /// Counts of the device's packets.
    pub(crate) stats: DeviceStats,
}

impl RxFinisher {
    /// Creates a finisher for frames of the device of this number.
    pub(crate) fn new(link: LinkType, device: u16) -> RxFinisher {
        RxFinisher { link, device, overflow: Batch::new(), stats: DeviceStats::default() }
    }

    /// Moves up to `max` kept packets to `batch` and returns their number.
    pub(crate) fn take_overflow(&mut self, batch: &mut Batch, max: usize) -> usize {
        if self.overflow.is_empty() {
            return 0;
        }
        let rest = self.overflow.split_off(max);
        let mut taken = std::mem::replace(&mut self.overflow, rest);
        let count = taken.len();
        batch.append(&mut taken);
        count
    }

    /// Copies a frame that lies in borrowed memory into packets. Adds up to `max` of them to
    /// `batch` and returns their number.
    #[inline]
    pub(crate) fn copy(
        &mut self,
        pool: &Pool,
        frame: &[u8],
        meta: &FrameMeta,
        batch: &mut Batch,
        max: usize,
    ) -> usize {
        if meta.vnet.gso_type != 0 {
            return self.segment(pool, frame, meta, batch, max);
        }
        let Some(packet) = pool.copy_in(frame) else {
            self.stats.no_frame += 1;
            return 0;
        };
        self.finish(packet, meta, batch)
    }

    /// Finishes a packet that was received in place. Adds it to `batch` and returns the number
    /// added: one or zero.
    #[inline]
    pub(crate) fn finish(
        &mut self,
        mut packet: Packet,
        meta: &FrameMeta,
        batch: &mut Batch,
    ) -> usize {
        let vnet = &meta.vnet;
        let stored = packet.len();
        // The checksum of a frame that was cut short cannot be computed.
        if vnet.needs_checksum()
            && stored == meta.wire_len
            && !offload::finish_checksum(packet.bytes_mut(), vnet)
        {
            self.stats.malformed += 1;
            return 0;
        }
        if let Some(tag) = meta.vlan {
            insert_tag(&mut packet, tag);
        }
        if meta.wire_len > stored {
            let extra = u32::try_from(meta.wire_len - stored).unwrap_or(u32::MAX);
            packet.set_anno_u32(anno::EXTRA_LENGTH, extra);
        }
        self.record(&mut packet, meta.kind, meta.time);
        batch.push(packet);
        1
    }

    /// Annotates and counts a packet whose bytes are final.
    #[inline]
    pub(crate) fn record(&mut self, packet: &mut Packet, kind: u8, time: i64) {
        self.annotate(packet, kind, time);
        self.stats.received += 1;
        self.stats.received_bytes += packet.len() as u64;
    }

    /// Segments a super-frame into packets.
    fn segment(
        &mut self,
        pool: &Pool,
        frame: &[u8],
        meta: &FrameMeta,
        batch: &mut Batch,
        max: usize,
    ) -> usize {
        let segments = Segments::new(frame, &meta.vnet, self.link);
        let (Ok(mut segments), true) = (segments, frame.len() == meta.wire_len) else {
            self.stats.malformed += 1;
            return 0;
        };
        self.stats.super_frames += 1;
        let mut count = 0;
        while let Some((headers, payload)) = segments.next() {
            let Some(mut packet) = assemble(pool, headers, payload) else {
                self.stats.no_frame += 1;
                continue;
            };
            if let Some(tag) = meta.vlan {
                insert_tag(&mut packet, tag);
            }
            self.record(&mut packet, meta.kind, meta.time);
            if count < max {
                batch.push(packet);
                count += 1;
            } else {
                self.overflow.push(packet);
            }
        }
        count
    }

    #[inline]
    fn annotate(&self, packet: &mut Packet, kind: u8, time: i64) {
        packet.set_packet_type(match i32::from(kind) {
            BROADCAST => PacketType::Broadcast,
            MULTICAST => PacketType::Multicast,
            OTHER_HOST => PacketType::OtherHost,
            OUTGOING => PacketType::Outgoing,
            _ => PacketType::Host,
        });
        packet.set_device(self.device);
        // The timestamp lies in the frame's cold header: skipping it saves the access.
        if time != 0 {
            packet.set_timestamp(time);
        }
    }
}

const BROADCAST: i32 = libc::PACKET_BROADCAST as i32;
const MULTICAST: i32 = libc::PACKET_MULTICAST as i32;
const OTHER_HOST: i32 = libc::PACKET_OTHERHOST as i32;
const OUTGOING: i32 = libc::PACKET_OUTGOING as i32;

/// Makes one packet of headers and payload.
fn assemble(pool: &Pool, headers: &[u8], payload: &[u8]) -> Option<Packet> {
    let mut packet = pool.copy_in(headers)?;
    packet.put_back(payload.len()).copy_from_slice(payload);
    Some(packet)
}

/// Inserts a tag again, after the Ethernet addresses.
fn insert_tag(packet: &mut Packet, tag: VlanTag) {
    let tag = tag.bytes();
    if packet.len() < VlanTag::OFFSET {
        return;
    }
    packet.push_front(tag.len());
    let bytes = packet.bytes_mut();
    bytes.copy_within(tag.len()..tag.len() + VlanTag::OFFSET, 0);
    bytes[VlanTag::OFFSET..VlanTag::OFFSET + tag.len()].copy_from_slice(&tag);
}
