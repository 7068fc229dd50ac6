//! State that an element hands to another instance, as records in fields with names.
//!
//! A field is a list of records with a key each. A *table* is kept in step while the element runs: a record
//! takes the place of one with the same key, and records are removed by their keys. The records of any other
//! field are put, once, into the state of an element that has not run yet.

mod counts;
mod packets;

pub use counts::{Highest, add_counts};

use crate::cx::Cx;
use crate::error::ArgError;
use crate::time::Time;
use castanet_packet::Packet;
use packets::PacketRecord;
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

    /// Adds a record whose value is a packet.
    pub fn write_packet<K: Serialize>(&mut self, key: &K, packet: &Packet) {
        self.write(key, &PacketRecord::of(packet));
    }
}

/// A record that comes into a field.
pub struct RecordReader<'a> {
    /// The beginning of the transfer.
    pub epoch: StateEpoch,
    record: &'a StateRecord,
}

impl<'a> RecordReader<'a> {
    /// A reader of a record.
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

    /// The packet that is the value, in a frame of this router.
    ///
    /// # Errors
    /// It is no packet, or there is no frame for it.
    pub fn packet(&self, cx: &mut Cx) -> Result<Packet, ArgError> {
        let record: PacketRecord = self.value()?;
        record.packet(cx).ok_or_else(|| ArgError::new("there is no frame for a packet"))
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
