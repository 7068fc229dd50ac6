//! The epochs that the entry may use.

use super::messages::Hello;
use crate::datagram::{DatagramKind, Link, LinkKey};
use crate::setup::{BlindUse, EntryParty};
use std::collections::VecDeque;
use std::sync::Arc;

/// An epoch that the entry may use.
#[derive(Debug)]
pub struct EntryEpoch {
    /// Its number.
    pub number: u64,
    /// The key of packets to the client.
    pub rest_key: LinkKey,
    /// By processor: the key of header strings.
    pub match_keys: Vec<LinkKey>,
}

impl EntryEpoch {
    fn new(party: &EntryParty, number: u64) -> Option<EntryEpoch> {
        let setup = party.info.id;
        let rest = Link { kind: DatagramKind::Rest, processor: 0 };
        Some(EntryEpoch {
            number,
            rest_key: LinkKey::new(&party.client_secret, setup, rest, number)?,
            match_keys: LinkKey::of_processors(
                &party.processor_secrets,
                setup,
                DatagramKind::Match,
                number,
            )?,
        })
    }
}

/// The epochs that the client has permitted. A session begins when the entry starts; epochs are
/// permitted for a session, so that an entry that starts again uses no blind and no nonce twice.
#[derive(Debug, Default)]
pub struct EntryEpochs {
    session: u64,
    /// Reports in this session.
    reports: u64,
    newest: u64,
    current: u64,
    epochs: VecDeque<Arc<EntryEpoch>>,
}

/// Maximum number of epochs that wait.
const MAX_UNUSED: usize = 16;

impl EntryEpochs {
    /// No epoch, in a session that has a greater number than all before: nanoseconds since the Unix epoch.
    pub fn new(session: u64) -> EntryEpochs {
        EntryEpochs { session, reports: 0, newest: 0, current: 0, epochs: VecDeque::new() }
    }

    /// The number of the session.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// The newest epoch that may be used; 0 if there is none.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// The epoch that is used; 0 if there is none.
    pub fn current(&self) -> u64 {
        self.current
    }

    /// Adds an epoch; returns whether it was new. `is_now` says that older ones must not be used any
    /// more.
    pub fn grant(&mut self, party: &EntryParty, epoch: u64, is_now: bool) -> bool {
        if epoch <= self.newest {
            return false;
        }
        let Some(keys) = EntryEpoch::new(party, epoch) else { return false };
        if is_now || party.info.options.blind_use == BlindUse::Again {
            self.epochs.clear();
        }
        self.newest = epoch;
        self.epochs.push_back(Arc::new(keys));
        if self.epochs.len() > MAX_UNUSED {
            self.epochs.pop_front();
        }
        true
    }

    /// Whether a lane that uses `epoch` must go on with another one at once. All lanes use the epoch that
    /// the first of them has reached, as processors have the rows of few epochs.
    #[inline]
    pub fn is_over(&self, epoch: u64) -> bool {
        epoch < self.current || self.epochs.front().is_none_or(|first| first.number > epoch)
    }

    /// The epoch that follows `epoch`, whose blinds a lane has used up or which is over.
    pub fn next_after(&mut self, epoch: u64) -> Option<Arc<EntryEpoch>> {
        let is_next = |it: &&Arc<EntryEpoch>| it.number > epoch && it.number >= self.current;
        let next = self.epochs.iter().find(is_next).cloned()?;
        self.current = self.current.max(next.number);
        Some(next)
    }

    /// The next report and its number in the session.
    pub fn report(&mut self) -> (u64, Hello) {
        let counter = self.reports;
        self.reports += 1;
        (counter, Hello { newest: self.newest, current: self.current })
    }
}
