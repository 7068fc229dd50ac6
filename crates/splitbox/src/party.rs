//! The algorithms of the parties in one epoch (paper, figure 21).

use crate::bits::Bits;
use crate::epoch::EpochRows;
use crate::private::{MatchId, PrivateFunction};
use crate::secret::BlindStream;
use crate::setup::{ClientParty, EntryParty, ProcessorParty};
use crate::share::ActionShare;
use std::sync::Arc;

/// A blinded header string, for the processors and for the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlindedHeader {
    /// Number of the packet in its epoch.
    pub counter: u64,
    /// The header string and the blind, by exclusive or.
    pub header: Bits,
}

/// The middlebox A, which knows the packets and nothing of the policy.
#[derive(Debug)]
pub struct Entry {
    stream: BlindStream,
    within: Bits,
    blinds: u64,
    counter: u64,
}

impl Entry {
    /// The entry in an epoch.
    pub fn new(party: &EntryParty, epoch: u64) -> Entry {
        let options = &party.info.options;
        Entry {
            stream: BlindStream::new(&party.blind_key, epoch),
            within: Bits::first(options.header_bits),
            blinds: options.blinds,
            counter: 0,
        }
    }

    /// Blinds the header string of the next packet (paper, algorithm Split Packet).
    pub fn split(&mut self, header: Bits) -> BlindedHeader {
        let counter = self.counter;
        self.counter += 1;
        let blind = self.stream.blind(counter % self.blinds);
        BlindedHeader { counter, header: (header ^ blind) & self.within }
    }
}

/// A middlebox B(j), which knows projections, blinded header strings and its shares of the actions.
#[derive(Clone, Debug)]
pub struct Processor {
    function: Arc<PrivateFunction>,
    shares: Arc<[ActionShare]>,
    rows: Arc<EpochRows>,
    /// Scratch buffer of the traversal.
    found: Vec<Option<Option<MatchId>>>,
}

impl Processor {
    /// A processor in the epoch of these rows.
    pub fn new(party: &ProcessorParty, rows: Arc<EpochRows>) -> Processor {
        let ProcessorParty { function, shares, .. } = party;
        Processor { function: function.clone(), shares: shares.clone(), rows, found: Vec::new() }
    }

    /// The processor's share of the result for a packet: each projection is hashed once, and all
    /// matches of the projection are looked up at once.
    pub fn process(&mut self, packet: &BlindedHeader) -> ActionShare {
        let Processor { function, shares, rows, found } = self;
        let blind = packet.counter % rows.blinds();
        let mut sum = ActionShare::ZERO;
        function.traverse_by_projections(
            found,
            |at| rows.find(blind, (at, &function.projections()[at]), packet.header),
            |action| sum = sum.plus(&shares[action as usize]),
        );
        sum
    }

    /// The same as the paper has it: a hash for each match that is tried (algorithms Private
    /// Traversal, Compute Match and Compute Action).
    pub fn process_each_match(&self, packet: &BlindedHeader) -> ActionShare {
        let Processor { function, shares, rows, .. } = self;
        let blind = packet.counter % rows.blinds();
        let mut sum = ActionShare::ZERO;
        function.traverse(
            |id| {
                let at = function.matches()[id as usize];
                rows.is_match(blind, id, (at, &function.projections()[at]), packet.header)
            },
            |action| sum = sum.plus(&shares[action as usize]),
        );
        sum
    }
}

/// The middlebox C, which knows everything.
#[derive(Debug)]
pub struct Client {
    stream: BlindStream,
    within: Bits,
    processors: usize,
    blinds: u64,
}

impl Client {
    /// The client in an epoch.
    pub fn new(party: &ClientParty, epoch: u64) -> Client {
        let options = &party.info.options;
        Client {
            stream: BlindStream::new(&party.blind_key, epoch),
            within: Bits::first(options.header_bits),
            processors: options.processors,
            blinds: options.blinds,
        }
    }

    /// The result of the function for a packet, from the entry's part and from one share of each
    /// processor (paper, algorithm Merge Shares); `None` unless there are as many shares as
    /// processors.
    pub fn merge(&mut self, packet: &BlindedHeader, shares: &[ActionShare]) -> Option<Bits> {
        if shares.len() != self.processors {
            return None;
        }
        let blind = self.stream.blind(packet.counter % self.blinds) & self.within;
        let sum = shares.iter().fold(ActionShare::ZERO, |sum, share| sum.plus(share));
        Some(sum.apply(packet.header ^ blind))
    }
}

#[cfg(test)]
mod tests;
