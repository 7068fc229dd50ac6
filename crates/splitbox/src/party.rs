//! The algorithms of the parties in one epoch (paper, figure 21).

mod processor;

pub use processor::Processor;

use crate::bits::Bits;
use crate::counter::{LaneCounter, blind_index};
use crate::secret::BlindStream;
use crate::setup::{ClientParty, EntryParty, SetupOptions};
use crate::share::ActionShare;

/// A blinded header string, for the processors and for the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlindedHeader {
    /// The packet in its epoch: a [`LaneCounter`] as one number.
    pub counter: u64,
    /// The header string and the blind, by exclusive or.
    pub header: Bits,
}

/// A lane of the middlebox A, which knows the packets and nothing of the policy.
#[derive(Debug)]
pub struct Entry {
    stream: BlindStream,
    within: Bits,
    options: SetupOptions,
    next: LaneCounter,
}

impl Entry {
    /// A lane of the entry in an epoch. Lanes count from 0.
    pub fn new(party: &EntryParty, lane: u8, epoch: u64) -> Entry {
        let options = party.info.options;
        Entry {
            stream: BlindStream::new(&party.blind_key, epoch),
            within: Bits::first(options.header_bits),
            options,
            next: LaneCounter { lane, sequence: 0 },
        }
    }

    /// Blinds the header string of the next packet (paper, algorithm Split Packet); `None` when the
    /// blinds of the lane are used up, or the setup has no such lane.
    #[inline]
    pub fn split(&mut self, header: Bits) -> Option<BlindedHeader> {
        let counter = self.next.number();
        let blind = self.stream.blind(blind_index(counter, &self.options)?);
        self.next.sequence += 1;
        Some(BlindedHeader { counter, header: (header ^ blind) & self.within })
    }
}

/// The middlebox C, which knows everything.
#[derive(Debug)]
pub struct Client {
    /// By lane: the blinds, as packets of one lane have neighbouring ones.
    streams: Vec<BlindStream>,
    within: Bits,
    options: SetupOptions,
}

impl Client {
    /// The client in an epoch.
    pub fn new(party: &ClientParty, epoch: u64) -> Client {
        let options = party.info.options;
        let stream = |_| BlindStream::new(&party.blind_key, epoch);
        Client {
            streams: (0..options.lanes).map(stream).collect(),
            within: Bits::first(options.header_bits),
            options,
        }
    }

    /// The result of the function for a packet, from the entry's part and from one share of each
    /// processor (paper, algorithm Merge Shares); `None` unless there are as many shares as
    /// processors, and the packet has a blind.
    #[inline]
    pub fn merge(&mut self, packet: &BlindedHeader, shares: &[ActionShare]) -> Option<Bits> {
        if shares.len() != self.options.processors {
            return None;
        }
        let index = blind_index(packet.counter, &self.options)?;
        let stream = self.streams.get_mut(usize::from(LaneCounter::of(packet.counter).lane))?;
        let blind = stream.blind(index) & self.within;
        let sum = shares.iter().fold(ActionShare::ZERO, |sum, share| sum.plus(share));
        Some(sum.apply(packet.header ^ blind))
    }
}

#[cfg(test)]
mod tests;
