//! State of elements that goes to another instance, or comes from one, on the worker that has it.

use super::{Worker, slot, transfer};
use castanet_element::error::ArgError;
use castanet_element::exec::Counters;
use castanet_element::portable_state::{RecordReader, RecordWriter, StateEpoch, StateRecord};
use serde::{Deserialize, Serialize};

/// The field of the packets that an element has counted by ways and reasons.
const COUNTERS: &str = "packet counters";
/// The records after which a part ends.
pub(crate) const STATE_PART: usize = 256;

/// A field of the state of one element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StatePlace {
    /// The element's name within the compound.
    pub element: String,
    /// The field.
    pub field: String,
    /// The worker that has it, where each has its own.
    pub worker: u32,
    /// Whether it is kept in step while the element runs.
    pub is_table: bool,
}

/// A position in the fields of [`StatePlaces`](crate::router::StatePlaces).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatePosition {
    pub(crate) place: usize,
    pub(crate) from: u64,
}

/// A change of a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateChange {
    /// The number of its place in [`StatePlaces::places`](crate::router::StatePlaces::places).
    pub place: u32,
    /// The record that comes, or goes.
    pub record: StateRecord,
    /// Whether it goes; only its key counts then.
    pub removes: bool,
}

impl StateChange {
    /// A record that comes.
    pub(crate) fn put(place: usize, record: StateRecord) -> StateChange {
        StateChange { place: place as u32, record, removes: false }
    }

    /// A record of this key that goes.
    pub fn removal(place: u32, key: Vec<u8>) -> StateChange {
        StateChange { place, record: StateRecord { key, value: Vec::new() }, removes: true }
    }
}

/// A field that a worker writes records of.
pub(crate) struct ExportPlace {
    pub(crate) number: usize,
    pub(crate) element: usize,
    pub(crate) field: String,
}

/// A change for an element of a worker.
pub(crate) struct ImportChange {
    pub(crate) element: usize,
    /// The element's home worker.
    pub(crate) home: usize,
    pub(crate) field: String,
    pub(crate) record: StateRecord,
    pub(crate) removes: bool,
}

impl Worker {
    /// The fields of elements, of which each has a name and a home, that this worker has the state of, and
    /// the elements whose state does not go to another instance.
    pub(crate) fn state_fields(
        &self,
        elements: &[(usize, String, usize)],
    ) -> (Vec<StatePlace>, Vec<usize>) {
        let (mut places, mut others) = (Vec::new(), Vec::new());
        for (it, element, home) in elements {
            let Some(node) = slot::at(&self.graph.slots, *it) else { continue };
            let place = |field: &str, is_table| StatePlace {
                element: element.clone(),
                field: field.to_owned(),
                worker: self.index as u32,
                is_table,
            };
            if node.has_lasting_state() {
                others.push(*it);
            }
            if *home == self.index || !node.is_shared() {
                let fields = node.portable_fields().into_iter();
                places.extend(fields.map(|(field, is_table)| place(field, is_table)));
            }
            places.push(place(COUNTERS, false));
        }
        (places, others)
    }

    /// Writes records of fields, the first of them from a position on; returns the place and the position behind
    /// them where it ended before all were written.
    pub(crate) fn export_state(
        &mut self,
        group: &[ExportPlace],
        from: u64,
        epoch: StateEpoch,
    ) -> (Vec<StateChange>, Option<StatePosition>) {
        let (mut changes, mut records) = (Vec::new(), Vec::new());
        let mut from = from;
        for it in group {
            if changes.len() >= STATE_PART {
                return (changes, Some(StatePosition { place: it.number, from: 0 }));
            }
            self.bill(it.element);
            let mut writer = RecordWriter { epoch, records: &mut records };
            let next = match it.field.as_str() {
                COUNTERS => {
                    let counters = &self.exec.counters[it.element];
                    if *counters != Counters::default() {
                        writer.write(&(), counters);
                    }
                    None
                }
                field => slot::at(&self.graph.slots, it.element)
                    .and_then(|node| node.export(field, from, &mut writer)),
            };
            changes.extend(records.drain(..).map(|record| StateChange::put(it.number, record)));
            if let Some(from) = next {
                return (changes, Some(StatePosition { place: it.number, from }));
            }
            from = 0;
        }
        (changes, None)
    }

    /// Puts changes into the state of elements; returns what could not be put, by element.
    pub(crate) fn import_state(
        &mut self,
        changes: &[ImportChange],
        epoch: StateEpoch,
    ) -> Vec<(usize, ArgError)> {
        let mut failed = Vec::new();
        for it in changes {
            let record = RecordReader::new(&it.record, epoch);
            self.bill(it.element);
            let done = match it.field.as_str() {
                COUNTERS => record.value().and_then(|counters: Counters| {
                    if !counters.is_plausible() {
                        return Err(ArgError::new("no counter counts that far"));
                    }
                    self.exec.counters[it.element].add(&counters);
                    Ok(())
                }),
                // The home worker has the state that all share.
                field if it.home == self.index || !self.shares_state(it.element) => {
                    self.import_record(it.element, field, &record, it.removes)
                }
                _ => Ok(()),
            };
            failed.extend(done.err().map(|error| (it.element, error)));
        }
        failed
    }

    fn shares_state(&self, element: usize) -> bool {
        slot::at(&self.graph.slots, element).is_some_and(|node| node.is_shared())
    }

    /// Puts a record into a field of an element, or removes that of its key.
    fn import_record(
        &mut self,
        element: usize,
        field: &str,
        record: &RecordReader,
        removes: bool,
    ) -> Result<(), ArgError> {
        self.exec.now = self.clock.peek();
        let made = self.exec.counters[element].made;
        let mut done = Ok(());
        transfer::act(&mut self.graph, &mut self.exec, element, |node, cx| {
            done = node.import(field, record, removes, cx);
        });
        // Packets that come with the state are in the counts that come with it, too.
        self.exec.counters[element].made = made;
        done
    }

    /// Tells elements that their state has come, and runs what waits for it.
    pub(crate) fn resume_with_state(&mut self, elements: &[usize]) {
        for &element in elements {
            self.bill(element);
            self.resume(element);
            self.revive(element);
        }
        self.run_emitted();
    }
}
