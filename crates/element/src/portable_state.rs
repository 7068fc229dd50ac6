//! State that an element hands to another instance, as records in fields with names.
//!
//! A field is a list of records with a key each. A *table* is kept in step while the element runs: a record
//! takes the place of one with the same key, and records are removed by their keys. The records of any other
//! field are put, once, into the state of an element that has not run yet.

use crate::cx::Cx;
use crate::error::ArgError;
use crate::time::Time;
use castanet_packet::{Batch, Packet, PacketQueue, PacketType, anno};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A record of a field, encoded by `postcard`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRecord {
    /// Tells the records of a field apart; a field has them in the order of their keys.
    pub key: Vec<u8>,
    /// The rest of the record.
    pub value: Vec<u8>,
}

/// The beginning of a transfer, by the clock of the instance that has the state: times in records count
/// from it, for clocks of two instances differ.
#[derive(Clone, Copy, Debug)]
pub struct StateEpoch(pub Time);

impl StateEpoch {
    /// A time of the router, in nanoseconds, as records have it.
    pub fn offset(self, nanos: u64) -> i64 {
        Time::from_nanos(nanos).0.saturating_sub(self.0.0)
    }

    /// The time of the router that a record has.
    pub fn nanos(self, offset: i64) -> u64 {
        Time(self.0.0.saturating_add(offset)).nanos()
    }
}

/// Takes the records of a part of a field.
pub struct RecordWriter<'a> {
    /// The beginning of the transfer.
    pub epoch: StateEpoch,
    /// The records so far.
    pub records: &'a mut Vec<StateRecord>,
}

impl RecordWriter<'_> {
    /// Adds a record.
    pub fn write<K: Serialize, V: Serialize>(&mut self, key: &K, value: &V) {
        // Keys and values are plain data, which can be encoded.
        let encoded = postcard::to_allocvec(key)
            .and_then(|key| Ok(StateRecord { key, value: postcard::to_allocvec(value)? }));
        self.records.extend(encoded);
    }
}

/// A record that comes into a field.
pub struct RecordReader<'a> {
    /// The beginning of the transfer.
    pub epoch: StateEpoch,
    record: &'a StateRecord,
}

impl<'a> RecordReader<'a> {
    /// Reads a record.
    pub fn new(record: &'a StateRecord, epoch: StateEpoch) -> RecordReader<'a> {
        RecordReader { epoch, record }
    }

    /// The key.
    ///
    /// # Errors
    /// It is none of this type.
    pub fn key<K: DeserializeOwned>(&self) -> Result<K, ArgError> {
        decoded(&self.record.key)
    }

    /// The value.
    ///
    /// # Errors
    /// It is none of this type.
    pub fn value<V: DeserializeOwned>(&self) -> Result<V, ArgError> {
        decoded(&self.record.value)
    }
}

fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ArgError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(ArgError::new("a record of this field has another form here")),
    }
}

/// State that can go to another instance.
pub trait PortableState {
    /// Whether it is a table, whose records may come while the element waits for the rest of its state.
    const IS_TABLE: bool = false;

    /// Writes some of the records, from position `from` on, which is 0 for the first; returns the position
    /// behind them, if there are more.
    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64>;

    /// Puts a record in; into a table, in place of one with the same key.
    ///
    /// # Errors
    /// The record does not fit here.
    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError>;

    /// Removes the record of this key from a table.
    fn remove(&mut self, _record: &RecordReader) {}
}

/// The functions of a [`StateField`].
type Export<L> = fn(&L, u64, &mut RecordWriter) -> Option<u64>;
type Import<L> = fn(&mut L, &RecordReader, &mut Cx) -> Result<(), ArgError>;
type Remove<L> = fn(&mut L, &RecordReader);

/// A field of the state `L` that goes to another instance; `#[derive(Local)]` makes one of each field with
/// `#[portable]`.
pub struct StateField<L> {
    /// The name, which instances of other versions know it by.
    pub name: &'static str,
    /// As [`PortableState::IS_TABLE`].
    pub is_table: bool,
    /// As [`PortableState::export`].
    pub export: Export<L>,
    /// As [`PortableState::import`].
    pub import: Import<L>,
    /// As [`PortableState::remove`].
    pub remove: Remove<L>,
}

/// A count: what comes in is added.
impl PortableState for u64 {
    fn export(&self, _: u64, to: &mut RecordWriter) -> Option<u64> {
        if *self > 0 {
            to.write(&(), self);
        }
        None
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        *self = self.wrapping_add(record.value()?);
        Ok(())
    }
}

/// The packets that a part of a queue's records has.
const PACKETS: usize = 256;

/// Packets, in their order.
impl PortableState for PacketQueue {
    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        let first = usize::try_from(from).unwrap_or(usize::MAX);
        for (packet, at) in self.iter().skip(first).take(PACKETS).zip(from..) {
            to.write(&at.to_be_bytes(), &PacketRecord::of(packet));
        }
        let next = first.saturating_add(PACKETS);
        (next < self.len()).then_some(next as u64)
    }

    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError> {
        let record: PacketRecord = record.value()?;
        if let Some(packet) = record.packet(cx) {
            let mut batch = Batch::new();
            batch.push(packet);
            self.append(&mut batch);
        }
        Ok(())
    }
}

/// A packet with its annotations.
#[derive(Serialize, Deserialize)]
struct PacketRecord {
    bytes: Vec<u8>,
    annotations: Vec<u8>,
    timestamp: i64,
    packet_type: u8,
    /// Offsets of the link-layer, the network and the transport header.
    headers: [Option<i32>; 3],
    network_header_len: u16,
}

impl PacketRecord {
    fn of(packet: &Packet) -> PacketRecord {
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
    fn packet(self, cx: &mut Cx) -> Option<Packet> {
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
