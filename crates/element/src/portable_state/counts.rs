//! Counts as records.

use super::{PortableState, RecordReader, RecordWriter};
use crate::cx::Cx;
use crate::error::ArgError;
use crate::handler::Value;
use serde::{Deserialize, Serialize};

/// The highest count that a record may lead to: a byte counter of a link of 100 Gb/s reaches it after eleven
/// years, and what elements add from then on does not overflow.
const MAX_COUNT: u64 = 1 << 62;
/// The counts that one record of a list has.
const COUNTS: usize = 256;

/// Adds a count that has come.
fn add(count: &mut u64, more: u64) -> Result<(), ArgError> {
    let sum = count.checked_add(more).filter(|sum| *sum <= MAX_COUNT);
    *count = sum.ok_or_else(|| ArgError::new("no counter counts that far"))?;
    Ok(())
}

/// Adds counts that have come.
///
/// # Errors
/// A sum is too high.
pub fn add_counts<const N: usize>(to: [&mut u64; N], more: [u64; N]) -> Result<(), ArgError> {
    to.into_iter().zip(more).try_for_each(|(count, more)| add(count, more))
}

/// A count: a number that comes in is added.
impl PortableState for u64 {
    fn export(&self, _: u64, to: &mut RecordWriter) -> Option<u64> {
        if *self > 0 {
            to.write(&(), self);
        }
        None
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        add(self, record.value()?)
    }
}

/// The highest value that something had: the higher one stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Highest(pub u64);

impl Highest {
    /// Takes in a value.
    pub fn raise(&mut self, value: usize) {
        self.0 = self.0.max(value as u64);
    }
}

impl From<Highest> for Value {
    fn from(highest: Highest) -> Value {
        Value::Count(highest.0)
    }
}

impl PortableState for Highest {
    fn export(&self, _: u64, to: &mut RecordWriter) -> Option<u64> {
        to.write(&(), self);
        None
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        *self = (*self).max(record.value()?);
        Ok(())
    }
}

/// Counts of which each is added: a record has the number of the first and some counts.
impl<const N: usize> PortableState for [u64; N] {
    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        export(self, from, to)
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        let (from, counts) = read(record)?;
        add_each(self.get_mut(from..), &counts)
    }
}

/// Counts of which each is added; the list becomes longer if needed, without gaps.
impl PortableState for Vec<u64> {
    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        export(self, from, to)
    }

    fn import(&mut self, record: &RecordReader, _: &mut Cx) -> Result<(), ArgError> {
        let (from, counts) = read(record)?;
        if from <= self.len() {
            self.resize(self.len().max(from + counts.len()), 0);
        }
        add_each(self.get_mut(from..), &counts)
    }
}

fn export(counts: &[u64], from: u64, to: &mut RecordWriter) -> Option<u64> {
    let first = usize::try_from(from).unwrap_or(usize::MAX);
    let rest = counts.get(first..).unwrap_or_default();
    let part = &rest[..rest.len().min(COUNTS)];
    if !part.is_empty() {
        // Big-endian, so that records in the order of their keys are in that of the counts.
        to.write(&from.to_be_bytes(), &part);
    }
    (rest.len() > COUNTS).then_some(from + COUNTS as u64)
}

fn read(record: &RecordReader) -> Result<(usize, Vec<u64>), ArgError> {
    let from = u64::from_be_bytes(record.key()?);
    Ok((usize::try_from(from).unwrap_or(usize::MAX), record.value()?))
}

fn add_each(to: Option<&mut [u64]>, counts: &[u64]) -> Result<(), ArgError> {
    let to = to.and_then(|to| to.get_mut(..counts.len()));
    let Some(to) = to else { return Err(ArgError::new("there are fewer counts here")) };
    to.iter_mut().zip(counts).try_for_each(|(count, more)| add(count, *more))
}
