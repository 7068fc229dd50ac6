//! The epochs whose rows a processor has.

use super::MAX_EPOCHS;
use super::messages::{EpochStatus, Status};
use crate::datagram::{DatagramInfo, DatagramKind, Link, LinkKey};
use crate::epoch::{CHUNK_DIGESTS, EpochRows};
use crate::replay::ReplayWindow;
use crate::setup::ProcessorParty;
use castanet_element::shared::Shared;
use std::sync::Arc;

/// An epoch of a processor.
pub struct ProcessorEpoch {
    /// Its number.
    pub number: u64,
    /// The key of header strings from the entry.
    pub match_key: LinkKey,
    /// The key of shares to the client.
    pub share_key: LinkKey,
    rows_key: LinkKey,
    rows: Arc<EpochRows>,
    is_complete: bool,
    lanes: Vec<Shared<Option<ReplayWindow>>>,
}

/// A chunk of rows that is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowsRefusal {
    /// It is for another processor or setup.
    Foreign,
    /// It is not authentic.
    Forged,
    /// It has come already.
    Replayed,
    /// Its epoch is older than all that the processor has.
    Old,
    /// It has a number or a length that no chunk has.
    Malformed,
}

/// Counters of a lane that a processor tells apart.
const REPLAY_WINDOW: usize = 1 << 16;

impl ProcessorEpoch {
    fn new(party: &ProcessorParty, number: u64, rows_key: LinkKey) -> Option<ProcessorEpoch> {
        let ProcessorParty { info, function, hash_key, .. } = party;
        let key = |secret, kind| {
            LinkKey::new(secret, info.id, Link { kind, processor: party.number }, number)
        };
        let options = &info.options;
        let (hash, blinds) = (options.hash, options.blinds);
        let rows = EpochRows::empty(function, hash_key, hash, number, blinds, u64::MAX).ok()?;
        Some(ProcessorEpoch {
            number,
            match_key: key(&party.entry_secret, DatagramKind::Match)?,
            share_key: key(&party.client_secret, DatagramKind::Share)?,
            rows_key,
            is_complete: false,
            rows: Arc::new(rows),
            lanes: (0..options.lanes).map(|_| Shared::default()).collect(),
        })
    }

    /// The rows; `None` until they are complete.
    #[inline]
    pub fn rows(&self) -> Option<&Arc<EpochRows>> {
        self.is_complete.then_some(&self.rows)
    }

    /// Calls `f` with the counters of a lane that have come; `None` if there is no such lane.
    #[inline]
    pub fn with_lane<R>(&self, lane: u8, f: impl FnOnce(&mut ReplayWindow) -> R) -> Option<R> {
        let window = || ReplayWindow::new(REPLAY_WINDOW);
        self.lanes.get(usize::from(lane)).map(|it| it.with(|it| f(it.get_or_insert_with(window))))
    }

    fn insert(&mut self, chunk: u64, payload: &[u8]) -> Result<bool, RowsRefusal> {
        // Nobody else has the rows before they are complete.
        let rows = Arc::get_mut(&mut self.rows).filter(|_| !self.is_complete);
        let rows = rows.ok_or(RowsRefusal::Replayed)?;
        let chunk = u32::try_from(chunk).map_err(|_| RowsRefusal::Malformed)?;
        let inserted = rows.insert(u64::from(chunk) * CHUNK_DIGESTS, payload);
        inserted.map_err(|_| RowsRefusal::Malformed)?;
        self.is_complete = rows.is_complete();
        Ok(self.is_complete)
    }

    fn status(&self) -> EpochStatus {
        EpochStatus { epoch: self.number, missing: self.rows.missing(Status::MAX_RANGES) }
    }
}

/// The key of rows from the client.
fn rows_key(party: &ProcessorParty, epoch: u64) -> Result<LinkKey, RowsRefusal> {
    let link = Link { kind: DatagramKind::Rows, processor: party.number };
    let key = LinkKey::new(&party.client_secret, party.info.id, link, epoch);
    key.ok_or(RowsRefusal::Forged)
}

/// The newest epochs of a processor.
#[derive(Default)]
pub struct ProcessorEpochs {
    /// By number.
    epochs: Vec<ProcessorEpoch>,
}

impl ProcessorEpochs {
    /// The epoch with a number.
    #[inline]
    pub fn find(&self, number: u64) -> Option<&ProcessorEpoch> {
        self.epochs.iter().rev().find(|it| it.number == number)
    }

    /// The epochs, by number.
    pub fn all(&self) -> &[ProcessorEpoch] {
        &self.epochs
    }

    /// Opens a datagram with a chunk of rows, for [`ProcessorEpochs::insert`].
    ///
    /// # Errors
    /// The datagram is refused.
    pub fn open<'d>(
        &self,
        party: &ProcessorParty,
        info: &DatagramInfo,
        datagram: &'d mut [u8],
    ) -> Result<&'d [u8], RowsRefusal> {
        if info.setup != party.info.id || info.link.processor != party.number {
            return Err(RowsRefusal::Foreign);
        }
        let opened = match self.find(info.epoch) {
            Some(epoch) if epoch.is_complete => return Err(RowsRefusal::Replayed),
            Some(epoch) => epoch.rows_key.open(info, datagram),
            None if self.is_old(info.epoch) => return Err(RowsRefusal::Old),
            None => rows_key(party, info.epoch)?.open(info, datagram),
        };
        opened.map(|payload| &*payload).map_err(|_| RowsRefusal::Forged)
    }

    /// Whether all epochs that the processor may have are newer than this one.
    fn is_old(&self, number: u64) -> bool {
        self.epochs.len() >= MAX_EPOCHS && self.epochs.first().is_some_and(|it| number < it.number)
    }

    /// Takes the payload of a datagram with a chunk of rows; returns whether it makes its epoch complete.
    ///
    /// # Errors
    /// The chunk is refused.
    pub fn insert(
        &mut self,
        party: &ProcessorParty,
        info: &DatagramInfo,
        payload: &[u8],
    ) -> Result<bool, RowsRefusal> {
        let at = self.epochs.partition_point(|it| it.number < info.epoch);
        if let Some(epoch) = self.epochs.get_mut(at).filter(|it| it.number == info.epoch) {
            return epoch.insert(info.counter, payload);
        }
        if self.is_old(info.epoch) {
            return Err(RowsRefusal::Old);
        }
        let key = rows_key(party, info.epoch)?;
        let mut epoch = ProcessorEpoch::new(party, info.epoch, key).ok_or(RowsRefusal::Forged)?;
        let is_complete = epoch.insert(info.counter, payload)?;
        self.epochs.insert(at, epoch);
        if self.epochs.len() > MAX_EPOCHS {
            self.epochs.remove(0);
        }
        Ok(is_complete)
    }

    /// Whether the rows of an epoch are not complete.
    pub fn is_incomplete(&self) -> bool {
        self.epochs.iter().any(|it| it.rows().is_none())
    }

    /// The report for the client.
    pub fn status(&self) -> Status {
        Status { epochs: self.epochs.iter().map(ProcessorEpoch::status).collect() }
    }
}
