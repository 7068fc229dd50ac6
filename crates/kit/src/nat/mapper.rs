//! Mappers: selection between several patterns.

use super::Outputs;
use super::pattern::{Pattern, RoundRobinCursor};
use crate::conntrack::Tuple4;
use crate::rng::CRandom;
use std::net::Ipv4Addr;

/// A pattern, with the outputs of the flow's packets and of their replies.
pub type PatternOutputs = (Pattern, Outputs);

/// The facts beside the flow on which the choice of a new mapping depends.
pub struct ChoiceContext<'a> {
    /// Index of the worker that opens the mapping.
    pub worker: usize,
    /// Draws a random number from 0 to its argument, inclusive.
    pub random: &'a mut dyn FnMut(u32) -> u32,
}

/// Selects one of several patterns for a new flow.
#[derive(Clone, Debug)]
pub enum Mapper {
    /// Each in turn; a pattern without a free choice is skipped.
    RoundRobin(Vec<PatternOutputs>, RoundRobinCursor),
    /// By consistent hashing of the source address.
    SourceHash(Vec<PatternOutputs>, HashRing),
    /// By the worker that opens the mapping: worker n has pattern n modulo their number.
    Worker(Vec<PatternOutputs>),
}

impl Mapper {
    /// The rewritten flow and its outputs; see [`Pattern::rewrite`].
    pub(super) fn rewrite(
        &self,
        flow: Tuple4,
        taken: impl Fn(&Tuple4) -> bool,
        context: &mut ChoiceContext,
    ) -> Option<(Tuple4, Outputs)> {
        let worker = context.worker;
        let mut by = |(pattern, outputs): &PatternOutputs| {
            Some((pattern.rewrite(flow, &taken, context.random)?, *outputs))
        };
        match self {
            Mapper::RoundRobin(entries, cursor) => {
                (0..entries.len()).find_map(|_| by(&entries[cursor.next(entries.len())]))
            }
            Mapper::SourceHash(entries, ring) => by(entries.get(ring.server(flow.src().0))?),
            Mapper::Worker(entries) => by(entries.get(worker.checked_rem(entries.len())?)?),
        }
    }

    /// The patterns that it selects from.
    pub fn entries(&self) -> &[PatternOutputs] {
        match self {
            Mapper::RoundRobin(entries, _)
            | Mapper::SourceHash(entries, _)
            | Mapper::Worker(entries) => entries,
        }
    }

    /// The same mapper with each pattern changed.
    pub(super) fn map(self, f: impl Fn(Pattern) -> Pattern) -> Mapper {
        let each = |entries: Vec<PatternOutputs>| {
            entries.into_iter().map(|(it, out)| (f(it), out)).collect()
        };
        match self {
            Mapper::RoundRobin(entries, cursor) => Mapper::RoundRobin(each(entries), cursor),
            Mapper::SourceHash(entries, ring) => Mapper::SourceHash(each(entries), ring),
            Mapper::Worker(entries) => Mapper::Worker(each(entries)),
        }
    }
}

/// A ring of consistent hashing (Karger et al. 1997): servers by hash, each at several points.
#[derive(Clone, Debug)]
pub struct HashRing(Vec<(u32, usize)>);

impl HashRing {
    /// The ring of servers with these numbers. Each has `nodes` points that follow from its number
    /// and `seed`: rings with the same seed agree on the servers that they share. Of equal numbers
    /// the first counts.
    pub fn new(servers: &[u32], nodes: usize, seed: u32) -> HashRing {
        let mut random = CRandom::new(seed);
        let mut points = Vec::new();
        for number in 0..=servers.iter().copied().max().unwrap_or(0) {
            let server = servers.iter().position(|&it| it == number);
            for _ in 0..nodes {
                let point = random.bits();
                points.extend(server.map(|server| (point, server)));
            }
        }
        points.sort_unstable();
        HashRing(points)
    }

    /// The index of the server for an address.
    pub fn server(&self, src: Ipv4Addr) -> usize {
        // The points of the ring are below this.
        const RING_SIZE: u32 = i32::MAX as u32;
        let [first, ..] = src.octets();
        // Neighbouring addresses differ in the last byte only, here the highest one. The
        // multiplication by an odd number spreads it over the others.
        let odd = u32::from(first) << 24 | 1;
        let hash = u32::from_le_bytes(src.octets()).wrapping_mul(odd) % RING_SIZE;
        let next = self.0.partition_point(|&(point, _)| point < hash);
        self.0.get(next).or(self.0.first()).map_or(0, |&(_, server)| server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_a_server_moves_only_its_own_addresses() {
        let addresses = (0..10_000u32).map(|n| Ipv4Addr::from_bits(0x0a00_0000 + n * 7));
        let all = HashRing::new(&[1, 2, 3, 4], 100, 7);
        let fewer = HashRing::new(&[1, 2, 4], 100, 7);
        let mut counts = [0; 4];
        for address in addresses {
            let (before, after) = (all.server(address), [0, 1, 3][fewer.server(address)]);
            assert!(before == after || before == 2, "{address}");
            counts[before] += 1;
        }
        assert!(counts.iter().all(|count| *count > 1000), "{counts:?}");
    }
}
