//! The epochs that the client makes, sends to the processors, and permits the entry to use.

use super::AHEAD;
use super::messages::{Hello, Status};
use crate::bits::Ternary;
use crate::datagram::{DatagramKind, Link, LinkKey};
use crate::digest::DIGEST_BYTES;
use crate::epoch::{CHUNK_DIGESTS, EpochSecrets, RowMaker};
use crate::private::PrivateFunction;
use crate::replay::{Freshness, ReplayWindow};
use crate::setup::{BlindUse, ClientParty, SetupOptions};
use std::collections::VecDeque;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

/// The keys of an epoch that the entry may use.
#[derive(Debug)]
pub struct ClientEpoch {
    /// Its number.
    pub number: u64,
    /// The key of packets from the entry.
    pub rest_key: LinkKey,
    /// By processor: the key of shares.
    pub share_keys: Vec<LinkKey>,
}

impl ClientEpoch {
    fn new(party: &ClientParty, number: u64) -> Option<ClientEpoch> {
        let setup = party.info.id;
        let rest = Link { kind: DatagramKind::Rest, processor: 0 };
        Some(ClientEpoch {
            number,
            rest_key: LinkKey::new(&party.entry_secret, setup, rest, number)?,
            share_keys: LinkKey::of_processors(
                &party.processor_secrets,
                setup,
                DatagramKind::Share,
                number,
            )?,
        })
    }
}

/// An epoch with its rows.
struct PreparedEpoch {
    keys: Arc<ClientEpoch>,
    maker: RowMaker,
    transfers: Vec<RowTransfer>,
    /// The session of the entry that may use it.
    session: Option<u64>,
}

/// Number of chunks of an epoch: one, which is empty, for a function without matches, as processors learn
/// of an epoch by its chunks.
fn chunk_count(maker: &RowMaker) -> u32 {
    maker.chunks().count().max(1) as u32
}

impl PreparedEpoch {
    /// Whether the entry, which uses `current` in its session, uses this epoch no more. Packets of it may
    /// be on their way, but processors do not need its rows again: they keep those of few epochs, and
    /// one that starts again should have those of the present epoch soon.
    fn is_over(&self, session: u64, current: u64) -> bool {
        self.session.is_some_and(|of| of != session || self.keys.number < current)
    }
}

/// The rows of an epoch on their way to a processor.
struct RowTransfer {
    key: LinkKey,
    is_complete: bool,
    /// Ranges of chunks that are to be sent.
    pending: VecDeque<Range<u32>>,
    /// When the last chunk was sent, in nanoseconds.
    sent_at: u64,
}

/// A chunk of rows to be sent.
pub struct RowDatagram<'k> {
    /// The processor that it is for.
    pub processor: usize,
    /// The key of its datagram.
    pub key: &'k LinkKey,
    /// Its number, which is the counter of the datagram.
    pub chunk: u32,
}

/// The entry or a processor, as far as the client has heard of it.
struct Peer {
    session: u64,
    /// The numbers of the reports of the session that have come.
    reports: ReplayWindow,
    heard_at: u64,
}

/// Number of the latest reports of a peer of which each is told from a replay.
const REPORT_WINDOW: usize = 1024;

impl Peer {
    fn new() -> Peer {
        let reports = ReplayWindow::new(REPORT_WINDOW);
        Peer { session: 0, reports, heard_at: 0 }
    }

    /// Records a report. `Ok` says whether it is the newest one: one that a newer one has overtaken is
    /// authentic too, but says nothing about the present.
    ///
    /// # Errors
    /// The report has come already, or is of a session that is over.
    fn accept(&mut self, now: u64, session: u64, report: u64) -> Result<bool, Freshness> {
        if session < self.session {
            return Err(Freshness::Old);
        }
        if session > self.session {
            *self = Peer { session, ..Peer::new() };
        }
        let is_newest = report >= self.reports.next();
        match self.reports.accept(report) {
            Freshness::New => {}
            freshness => return Err(freshness),
        }
        self.heard_at = now;
        Ok(is_newest)
    }
}

/// The answer to a report of the entry.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EntryReport {
    /// Epochs that the entry may use and does not know yet, in order.
    pub grants: Vec<u64>,
    /// Whether it must not use any other epoch.
    pub is_now: bool,
}

/// All epochs of the client.
pub struct ClientEpochs {
    party: Arc<ClientParty>,
    function: PrivateFunction,
    /// By number: the distinct matches of the function.
    matches: Vec<Ternary>,
    /// By number.
    epochs: Vec<PreparedEpoch>,
    entry: Peer,
    /// The epoch that the entry uses, as its last report says; 0 if there is none.
    current: u64,
    processors: Vec<Peer>,
    last_number: u64,
    /// Blinds are used again until then, in nanoseconds.
    rotation_at: u64,
    rotation: u64,
}

/// Epochs that are kept for packets on their way, the present one included.
const KEPT: usize = 4;
/// Greater numbers of epochs in reports are ignored: no clock has them, and numbers must not overflow.
const MAX_NUMBER: u64 = 1 << 62;
/// A processor that has not reported for so long is not sent rows, in nanoseconds.
const SILENCE: u64 = 1_000_000_000;
/// A processor's report is about all chunks that were sent so long before, in nanoseconds.
const TRANSIT: u64 = 20_000_000;

impl ClientEpochs {
    /// No epoch yet. Where blinds are used again, an epoch lasts for `rotation` nanoseconds.
    pub fn new(party: Arc<ClientParty>, rotation: u64) -> ClientEpochs {
        let (function, matches) = PrivateFunction::new(&party.function);
        let processors = (0..party.info.options.processors).map(|_| Peer::new()).collect();
        ClientEpochs {
            party,
            function,
            matches,
            epochs: Vec::new(),
            entry: Peer::new(),
            current: 0,
            processors,
            last_number: 0,
            rotation_at: u64::MAX,
            rotation,
        }
    }

    fn is_once(&self) -> bool {
        self.party.info.options.blind_use == BlindUse::Once
    }

    /// The epochs that the entry may use, and that it used a short time ago.
    pub fn usable(&self) -> Vec<Arc<ClientEpoch>> {
        let granted = self.epochs.iter().filter(|it| it.session.is_some());
        granted.map(|it| it.keys.clone()).collect()
    }

    /// Begins the next epoch at a time in nanoseconds since the Unix epoch, if there are not enough, and
    /// forgets the oldest. Numbers of epochs are milliseconds, so that they grow when the client starts
    /// again.
    pub fn prepare(&mut self, now: u64) {
        let spare = self.epochs.iter().filter(|it| it.session.is_none()).count();
        let wanted = if self.is_once() { AHEAD.saturating_sub(self.unused()) } else { 1 };
        if spare < wanted {
            self.begin(now);
        }
        let used = self.epochs.iter().filter(|it| it.session.is_some()).count();
        // Older ones are all in use: the entry is permitted no epoch behind a newer one.
        let limit = KEPT + if self.is_once() { AHEAD } else { 0 };
        self.epochs.drain(..used.saturating_sub(limit));
    }

    fn begin(&mut self, now: u64) {
        let number = (now / 1_000_000).max(self.last_number + 1);
        let ClientParty { info, blind_key, hash_key, processor_secrets, .. } = &*self.party;
        let Some(keys) = ClientEpoch::new(&self.party, number) else { return };
        let row_keys =
            LinkKey::of_processors(processor_secrets, info.id, DatagramKind::Rows, number);
        let Some(row_keys) = row_keys else { return };
        let secrets = EpochSecrets { blinds: blind_key, hash: hash_key };
        let (function, matches) = (&self.function, &self.matches[..]);
        let SetupOptions { hash, blinds, .. } = info.options;
        let maker = RowMaker::new(function, matches, secrets, hash, number, blinds);
        let transfer = |key| {
            let pending = std::iter::once(0..chunk_count(&maker)).collect();
            RowTransfer { key, is_complete: false, pending, sent_at: 0 }
        };
        let transfers = row_keys.into_iter().map(transfer).collect();
        self.last_number = number;
        self.epochs.push(PreparedEpoch { keys: keys.into(), maker, transfers, session: None });
    }

    /// Lets epochs that are not in use yet have greater numbers than an epoch that a party knows. The
    /// clock alone does not see to that if it was set back before the client started.
    fn number_behind(&mut self, known: u64) {
        if (self.last_number + 1..MAX_NUMBER).contains(&known) {
            self.last_number = known;
            self.epochs.retain(|it| it.session.is_some());
        }
    }

    /// Sends up to `count` chunks to each processor: `send` gets where they go, and their bytes.
    pub fn send_rows(&mut self, now: u64, count: usize, mut send: impl FnMut(RowDatagram, &[u8])) {
        let mut bytes = [0; CHUNK_DIGESTS as usize * DIGEST_BYTES];
        for (processor, peer) in self.processors.iter().enumerate() {
            if peer.session == 0 || now.saturating_sub(peer.heard_at) > SILENCE {
                continue;
            }
            let mut left = count;
            for epoch in &mut self.epochs {
                if epoch.is_over(self.entry.session, self.current) {
                    continue;
                }
                let PreparedEpoch { maker, transfers, .. } = epoch;
                let transfer = &mut transfers[processor];
                while let Some(range) = transfer.pending.front_mut().filter(|_| left > 0) {
                    let chunk = range.start;
                    range.start += 1;
                    if range.start >= range.end {
                        transfer.pending.pop_front();
                    }
                    let digests = maker.chunks().digests(chunk);
                    let bytes = &mut bytes[..(digests.end - digests.start) as usize * DIGEST_BYTES];
                    maker.fill(digests.start, bytes);
                    send(RowDatagram { processor, key: &transfer.key, chunk }, bytes);
                    transfer.sent_at = now;
                    left -= 1;
                }
            }
        }
    }

    /// Whether chunks wait to be sent to a processor that listens.
    pub fn is_sending(&self, now: u64) -> bool {
        let epochs = self.epochs.iter().filter(|it| !it.is_over(self.entry.session, self.current));
        let mut pending = epochs.flat_map(|it| it.transfers.iter().zip(&self.processors));
        pending.any(|(transfer, peer)| {
            !transfer.pending.is_empty() && now.saturating_sub(peer.heard_at) <= SILENCE
        })
    }

    /// Takes the report of a processor; one that a newer one has overtaken changes nothing.
    ///
    /// # Errors
    /// The report has come already, or is of a session that is over.
    pub fn take_status(
        &mut self,
        now: u64,
        processor: usize,
        (session, report): (u64, u64),
        status: &Status,
    ) -> Result<(), Freshness> {
        let peer = self.processors.get_mut(processor).ok_or(Freshness::Old)?;
        if !peer.accept(now, session, report)? {
            return Ok(());
        }
        self.number_behind(status.epochs.iter().map(|it| it.epoch).max().unwrap_or(0));
        for epoch in &mut self.epochs {
            let chunks = chunk_count(&epoch.maker);
            let transfer = &mut epoch.transfers[processor];
            let known = status.epochs.iter().find(|it| it.epoch == epoch.keys.number);
            transfer.is_complete = known.is_some_and(|it| it.missing.is_empty());
            let is_settled =
                transfer.pending.is_empty() && now.saturating_sub(transfer.sent_at) > TRANSIT;
            if transfer.is_complete {
                transfer.pending.clear();
            } else if is_settled {
                let within = |it: &Range<u32>| it.start.min(chunks)..it.end.min(chunks);
                transfer.pending = match known {
                    Some(known) => known.missing.iter().map(within).collect(),
                    None => std::iter::once(0..chunks).collect(),
                };
                transfer.pending.retain(|it| it.start < it.end);
            }
        }
        Ok(())
    }

    /// Takes the report of the entry. With `Ok` the answer tells which epochs it may use; to one that a
    /// newer one has overtaken it has none.
    ///
    /// # Errors
    /// The report has come already, or is of a session that is over.
    pub fn take_hello(
        &mut self,
        now: u64,
        (session, report): (u64, u64),
        hello: &Hello,
    ) -> Result<EntryReport, Freshness> {
        if !self.entry.accept(now, session, report)? {
            return Ok(EntryReport::default());
        }
        self.current = hello.current;
        self.number_behind(hello.newest);
        // Else the entry has epochs of a client that has started again.
        let is_known = hello.newest == 0 || self.granted_after(0).any(|it| it == hello.newest);
        self.permit(now);
        let new = self.granted_after(hello.newest).collect();
        Ok(EntryReport { grants: new, is_now: !is_known })
    }

    /// The epochs that the entry may use in its present session, from those with a greater number on.
    fn granted_after(&self, number: u64) -> impl Iterator<Item = u64> + '_ {
        let own = self.epochs.iter().filter(|it| it.session == Some(self.entry.session));
        own.map(|it| it.keys.number).filter(move |&it| it > number)
    }

    /// Epochs that the entry may use and does not use yet, as far as its last report says.
    fn unused(&self) -> usize {
        self.granted_after(self.current).count()
    }

    /// Permits epochs whose rows all processors have: where blinds are used once as many as the entry
    /// should have ahead, else one when the present one has lasted long enough.
    fn permit(&mut self, now: u64) {
        let session = self.entry.session;
        let has_any = self.epochs.iter().any(|it| it.session == Some(session));
        let count = match self.is_once() {
            true => AHEAD.saturating_sub(self.unused()),
            false => usize::from(!has_any || now >= self.rotation_at),
        };
        let is_ready = |it: &PreparedEpoch| {
            it.session.is_none() && it.transfers.iter().all(|transfer| transfer.is_complete)
        };
        let mut newest = 0;
        for epoch in self.epochs.iter_mut().filter(|it| is_ready(it)).take(count) {
            epoch.session = Some(session);
            newest = epoch.keys.number;
            self.rotation_at = now.saturating_add(self.rotation);
        }
        self.epochs.retain(|it| it.session.is_some() || it.keys.number > newest);
    }

    /// Lets epochs last for so many nanoseconds, the present one included.
    pub fn set_rotation(&mut self, rotation: u64) {
        let before = std::mem::replace(&mut self.rotation, rotation);
        self.rotation_at = self.rotation_at.saturating_sub(before).saturating_add(rotation);
    }

    /// Has the next epoch begin as soon as all processors have its rows.
    pub fn rotate(&mut self) {
        self.rotation_at = 0;
    }

    /// The entry, the processors and the epochs, a line each.
    pub fn state(&self, now: u64) -> String {
        let heard = |peer: &Peer| match peer.session {
            0 => "not heard yet".to_owned(),
            _ => {
                let tenths = now.saturating_sub(peer.heard_at) / 100_000_000;
                format!("heard {}.{} s ago", tenths / 10, tenths % 10)
            }
        };
        let mut text = format!("entry {}\n", heard(&self.entry));
        for (processor, peer) in self.processors.iter().enumerate() {
            _ = writeln!(text, "processor {} {}", processor + 1, heard(peer));
        }
        for epoch in &self.epochs {
            let number = epoch.keys.number;
            if epoch.is_over(self.entry.session, self.current) {
                _ = writeln!(text, "epoch {number} over");
                continue;
            }
            let (all, has) = (epoch.transfers.len(), epoch.transfers.iter());
            let has = has.filter(|it| it.is_complete).count();
            let state = if epoch.session.is_some() { "in use" } else { "prepared" };
            _ = writeln!(text, "epoch {number} {state}, rows at {has} of {all} processors");
        }
        text
    }
}
