//! Who chooses between several patterns.

use super::Outputs;
use super::pattern::{Pattern, Turn};
use crate::flow::Tuple4;
use std::net::Ipv4Addr;

/// A pattern, and where its packets and their replies go.
pub type Way = (Pattern, Outputs);

/// What chooses between several patterns.
#[derive(Clone, Debug)]
pub enum Mapper {
    /// One after the other; who has nothing left is passed over.
    RoundRobin(Vec<Way>, Turn),
    /// By source address.
    SourceHash(Vec<Way>, Ring),
}

impl Mapper {
    /// What a flow becomes, and where its packets go; see [`Pattern::rewrite`].
    pub(super) fn rewrite(
        &self,
        flow: Tuple4,
        taken: impl Fn(&Tuple4) -> bool,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<(Tuple4, Outputs)> {
        let mut by =
            |(pattern, outputs): &Way| Some((pattern.rewrite(flow, &taken, random)?, *outputs));
        match self {
            Mapper::RoundRobin(ways, turn) => {
                (0..ways.len()).find_map(|_| by(&ways[turn.next(ways.len())]))
            }
            Mapper::SourceHash(ways, ring) => by(ways.get(ring.of(flow.src().0))?),
        }
    }

    /// The patterns between which it chooses.
    pub fn ways(&self) -> &[Way] {
        match self {
            Mapper::RoundRobin(ways, _) | Mapper::SourceHash(ways, _) => ways,
        }
    }

    /// The same with each pattern changed.
    pub(super) fn map(self, f: impl Fn(Pattern) -> Pattern) -> Mapper {
        let each = |ways: Vec<Way>| ways.into_iter().map(|(it, out)| (f(it), out)).collect();
        match self {
            Mapper::RoundRobin(ways, turn) => Mapper::RoundRobin(each(ways), turn),
            Mapper::SourceHash(ways, ring) => Mapper::SourceHash(each(ways), ring),
        }
    }
}

/// A ring of consistent hashing (Karger et al. 1997): servers by hash, each at several places.
#[derive(Clone, Debug)]
pub struct Ring(Vec<(u32, usize)>);

impl Ring {
    /// The ring of servers with these numbers, each at `nodes` places that follow from its
    /// number and `seed`: so who has the same seed has the same ring, as far as they have the
    /// same servers. Of equal numbers the first counts.
    pub fn new(servers: &[u32], nodes: usize, seed: u32) -> Ring {
        let mut random = Random::new(seed);
        let mut places = Vec::new();
        for number in 0..=servers.iter().copied().max().unwrap_or(0) {
            let server = servers.iter().position(|&it| it == number);
            for _ in 0..nodes {
                let place = random.next();
                places.extend(server.map(|server| (place, server)));
            }
        }
        places.sort_unstable();
        Ring(places)
    }

    /// Which server an address is for.
    pub fn of(&self, src: Ipv4Addr) -> usize {
        // Places of the ring are below this.
        const ROUND: u32 = i32::MAX as u32;
        let [first, ..] = src.octets();
        // Neighbours differ in their last byte only, here the highest: that it reaches the
        // others they are multiplied by an odd number.
        let odd = u32::from(first) << 24 | 1;
        let hash = u32::from_le_bytes(src.octets()).wrapping_mul(odd) % ROUND;
        let next = self.0.partition_point(|&(place, _)| place < hash);
        self.0.get(next).or(self.0.first()).map_or(0, |&(_, server)| server)
    }
}

/// The numbers that `random` of the C library gives, by which Click makes its rings: an additive
/// generator (Knuth, volume 2, 3.2.2).
struct Random {
    state: [u32; DEGREE],
    at: usize,
}

const DEGREE: usize = 31;
const LAG: usize = 3;

impl Random {
    fn new(seed: u32) -> Random {
        let mut state = [0; DEGREE];
        // Park and Miller's generator fills it.
        let mut word = i64::from(seed.max(1) as i32);
        for slot in &mut state {
            *slot = word as u32;
            word = (word * 16807).rem_euclid(i32::MAX.into());
        }
        let mut random = Random { state, at: LAG };
        (0..10 * DEGREE).for_each(|_| {
            random.next();
        });
        random
    }

    fn next(&mut self) -> u32 {
        let lagged = self.state[(self.at + DEGREE - LAG) % DEGREE];
        let slot = &mut self.state[self.at];
        *slot = slot.wrapping_add(lagged);
        let number = *slot >> 1;
        self.at = (self.at + 1) % DEGREE;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_are_those_of_the_c_library() {
        let mut random = Random::new(1);
        // What the manual page's generator says first after `srandom(1)`.
        assert_eq!(
            [(); 4].map(|()| random.next()),
            [1804289383, 846930886, 1681692777, 1714636915]
        );
    }

    #[test]
    fn who_leaves_a_ring_leaves_the_others_where_they_were() {
        let addresses = (0..10_000u32).map(|n| Ipv4Addr::from_bits(0x0a00_0000 + n * 7));
        let all = Ring::new(&[1, 2, 3, 4], 100, 7);
        let fewer = Ring::new(&[1, 2, 4], 100, 7);
        let mut counts = [0; 4];
        for address in addresses {
            let (before, after) = (all.of(address), [0, 1, 3][fewer.of(address)]);
            assert!(before == after || before == 2, "{address}");
            counts[before] += 1;
        }
        assert!(counts.iter().all(|count| *count > 1000), "{counts:?}");
    }
}
