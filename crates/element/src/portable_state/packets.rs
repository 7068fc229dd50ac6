//! Packets as records.

use super::{PortableState, RecordReader, RecordWriter};
use crate::cx::Cx;
use crate::error::ArgError;
use castanet_packet::{Batch, Packet, PacketQueue, PacketType, anno};
use serde::{Deserialize, Serialize};

/// The packets that a part of a queue's records has.
const PACKETS: usize = 256;

/// Writes some of `len` packets from number `from` on; returns the number behind them, if there are more.
fn export<'a>(
    packets: impl Iterator<Item = &'a Packet>,
    len: usize,
    from: u64,
    to: &mut RecordWriter,
) -> Option<u64> {
    let first = usize::try_from(from).unwrap_or(usize::MAX);
    for (packet, at) in packets.skip(first).take(PACKETS).zip(from..) {
        to.write_packet(&at.to_be_bytes(), packet);
    }
    let next = first.saturating_add(PACKETS);
    (next < len).then_some(next as u64)
}

/// Packets, in their order.
impl PortableState for PacketQueue {
    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        export(self.iter(), self.len(), from, to)
    }

    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError> {
        let mut batch = Batch::new();
        batch.push(record.packet(cx)?);
        self.append(&mut batch);
        Ok(())
    }
}

/// Packets, in their order.
impl PortableState for Batch {
    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        export(self.iter(), self.len(), from, to)
    }

    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError> {
        self.push(record.packet(cx)?);
        Ok(())
    }
}

/// A packet, if there is one.
impl PortableState for Option<Packet> {
    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        export(self.iter(), self.iter().len(), from, to)
    }

    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError> {
        if self.is_some() {
            return Err(ArgError::new("there is a packet already"));
        }
        *self = Some(record.packet(cx)?);
        Ok(())
    }
}

/// A packet with its annotations.
#[derive(Serialize, Deserialize)]
pub(super) struct PacketRecord {
    bytes: Vec<u8>,
    annotations: Vec<u8>,
    timestamp: i64,
    packet_type: u8,
    /// Offsets of the link-layer, the network and the transport header.
    headers: [Option<i32>; 3],
    network_header_len: u16,
}

impl PacketRecord {
    pub(super) fn of(packet: &Packet) -> PacketRecord {
        let offset = |offset: Option<isize>| offset.and_then(|offset| i32::try_from(offset).ok());
        PacketRecord {
            bytes: packet.bytes().to_vec(),
            annotations: packet.annotations().to_vec(),
            timestamp: packet.timestamp(),
            packet_type: packet.packet_type() as u8,
            headers: [
                offset(packet.mac_offset()),
                offset(packet.network_offset()),
                offset(packet.transport_offset()),
            ],
            network_header_len: packet.network_header_len() as u16,
        }
    }

    /// The packet in a frame of this router, if there is one.
    pub(super) fn packet(self, cx: &mut Cx) -> Option<Packet> {
        let mut packet = cx.copy_in(&self.bytes)?;
        if let Ok(annotations) = <[u8; anno::SIZE]>::try_from(self.annotations) {
            packet.set_annotations(annotations);
        }
        packet.set_timestamp(self.timestamp);
        packet.set_packet_type(PacketType::from_number(self.packet_type).unwrap_or_default());
        let [mac, network, transport] = self.headers.map(|it| it.map(|offset| offset as isize));
        let length = self.bytes.len() as isize;
        let within = |offset: &isize| (0..=length).contains(offset);
        if let Some(offset) = network.filter(within) {
            packet.set_network_header(offset, usize::from(self.network_header_len));
        }
        transport.filter(within).into_iter().for_each(|it| packet.set_transport_header(it));
        mac.filter(within).into_iter().for_each(|it| packet.set_mac_header(it));
        Some(packet)
    }
}
