//! From what the kernel hands over to packets as the wire would have carried them.

use crate::device::DeviceStats;
use crate::offload::{self, LinkType, Segments, VlanTag, VnetHeader};
use castanet_packet::{Batch, Packet, PacketType, Pool, anno};

/// What the kernel says about a received frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrival {
    /// Bytes that the frame had before it was cut to what was stored.
    pub(crate) wire_len: usize,
    /// What the sender left undone.
    pub(crate) vnet: VnetHeader,
    /// The tag that the kernel took out of the frame.
    pub(crate) vlan: Option<VlanTag>,
    /// Whom the link meant the frame for: `PACKET_HOST` and its kin.
    pub(crate) kind: u8,
    /// Nanoseconds since the epoch; zero where the kernel did not say.
    pub(crate) time: i64,
}

/// Makes packets of received frames, and keeps those for which a batch has no
/// room: one super-frame can be more packets than were asked for.
pub(crate) struct Intake {
    /// What frames begin with.
    pub(crate) link: LinkType,
    /// The device's number.
    device: u16,
    /// Packets for the next batch.
    spill: Batch,
    /// What became of the frames.
    pub(crate) stats: DeviceStats,
}

impl Intake {
    /// For frames of the device of this number.
    pub(crate) fn new(link: LinkType, device: u16) -> Intake {
        Intake { link, device, spill: Batch::new(), stats: DeviceStats::default() }
    }

    /// Moves packets that were left over to `batch`, up to `max`.
    pub(crate) fn take_spill(&mut self, batch: &mut Batch, max: usize) -> usize {
        if self.spill.is_empty() {
            return 0;
        }
        let rest = self.spill.split_off(max);
        let mut taken = std::mem::replace(&mut self.spill, rest);
        let count = taken.len();
        batch.append(&mut taken);
        count
    }

    /// Makes packets of a frame that lies in memory which is not ours to keep.
    /// Adds up to `max` of them to `batch` and says how many.
    #[inline]
    pub(crate) fn copy(
        &mut self,
        pool: &Pool,
        frame: &[u8],
        arrival: &Arrival,
        batch: &mut Batch,
        max: usize,
    ) -> usize {
        if arrival.vnet.gso_type != 0 {
            return self.cut(pool, frame, arrival, batch, max);
        }
        let Some(packet) = pool.copy_in(frame) else {
            self.stats.no_frame += 1;
            return 0;
        };
        self.keep(packet, arrival, batch)
    }

    /// Finishes a packet that was received in place. Adds it to `batch` and
    /// says how many that were: one or none.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        mut packet: Packet,
        arrival: &Arrival,
        batch: &mut Batch,
    ) -> usize {
        let vnet = &arrival.vnet;
        let stored = packet.len();
        // A frame that was cut short cannot be summed up any more.
        if vnet.needs_checksum()
            && stored == arrival.wire_len
            && !offload::finish_checksum(packet.bytes_mut(), vnet)
        {
            self.stats.malformed += 1;
            return 0;
        }
        if let Some(tag) = arrival.vlan {
            insert_tag(&mut packet, tag);
        }
        if arrival.wire_len > stored {
            let extra = u32::try_from(arrival.wire_len - stored).unwrap_or(u32::MAX);
            packet.set_anno_u32(anno::EXTRA_LENGTH, extra);
        }
        self.note(&mut packet, arrival.kind, arrival.time);
        batch.push(packet);
        1
    }

    /// Annotates and counts a packet that is as the wire carried it.
    #[inline]
    pub(crate) fn note(&mut self, packet: &mut Packet, kind: u8, time: i64) {
        self.annotate(packet, kind, time);
        self.stats.received += 1;
        self.stats.received_bytes += packet.len() as u64;
    }

    /// Cuts a super-frame into packets.
    fn cut(
        &mut self,
        pool: &Pool,
        frame: &[u8],
        arrival: &Arrival,
        batch: &mut Batch,
        max: usize,
    ) -> usize {
        let segments = Segments::new(frame, &arrival.vnet, self.link);
        let (Ok(mut segments), true) = (segments, frame.len() == arrival.wire_len) else {
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
            if let Some(tag) = arrival.vlan {
                insert_tag(&mut packet, tag);
            }
            self.note(&mut packet, arrival.kind, arrival.time);
            if count < max {
                batch.push(packet);
                count += 1;
            } else {
                self.spill.push(packet);
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
        // The time lies in the frame's cold header: none costs nothing.
        if time != 0 {
            packet.set_timestamp(time);
        }
    }
}

const BROADCAST: i32 = libc::PACKET_BROADCAST as i32;
const MULTICAST: i32 = libc::PACKET_MULTICAST as i32;
const OTHER_HOST: i32 = libc::PACKET_OTHERHOST as i32;
const OUTGOING: i32 = libc::PACKET_OUTGOING as i32;

/// One packet of two parts.
fn assemble(pool: &Pool, headers: &[u8], payload: &[u8]) -> Option<Packet> {
    let mut packet = pool.copy_in(headers)?;
    packet.put_back(payload.len()).copy_from_slice(payload);
    Some(packet)
}

/// Puts a tag back between the addresses and what it tags.
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
