//! Leakage reports: that which each party can know, from the party's own data.

mod cost;
mod fields;
mod knowledge;
mod text;

pub use cost::SetupCost;
pub use fields::{fields, guess_bits};
pub use text::{HASHES_PER_SECOND, guess_time};

use crate::bits::{Bits, Ternary};
use crate::digest::HashKind;
use crate::function::NetworkFunction;
use crate::header::kind;
use crate::party_file::{Party, PartyRole};
use crate::private::{PrivateFunction, PrivateNode};
use crate::setup::{BlindUse, SetupInfo};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// The leakage of a setup to one party. It has no secrets.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LeakageReport {
    /// The party.
    pub party: String,
    /// The setup, in hexadecimal digits.
    pub setup: String,
    /// t.
    pub processors: usize,
    /// n.
    pub header_bits: usize,
    /// ℍ.
    pub hash: &'static str,
    /// l.
    pub blinds: u64,
    /// Whether each blind is used once.
    pub uses_blinds_once: bool,
    /// Lanes.
    pub lanes: usize,
    /// Whether processors do the same work for each packet.
    pub has_constant_work: bool,
    /// Dummy packets in a million packets, if the party knows it.
    pub dummies_per_million: Option<u32>,
    /// The function, as far as the party knows it.
    pub function: Option<FunctionReport>,
    /// Sentences about that which the party can know.
    pub known: Vec<String>,
    /// Sentences about that which it cannot know.
    pub hidden: Vec<String>,
}

/// The shape of a function.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionReport {
    /// Nodes that compare packets.
    pub rules: usize,
    /// Actions, of which a processor has a share each.
    pub actions: usize,
    /// Different matches.
    pub matches: usize,
    /// Whether the first rule that matches is the last for a packet, as in a firewall.
    pub is_list: bool,
    /// The maximum number of rules that a packet is compared with.
    pub longest_path: usize,
    /// The projections.
    pub projections: Vec<ProjectionReport>,
}

/// A projection, and the cost of a brute force of the digests of its matches.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProjectionReport {
    /// Its Hamming weight.
    pub bits: u32,
    /// The bits that have to be guessed: all but those of the kind byte.
    pub guess_bits: u32,
    /// Guesses of a brute force, which finds all blinded matches of the projection for one blind.
    pub guesses: f64,
    /// The time of these guesses in seconds, at [`HASHES_PER_SECOND`].
    pub seconds: f64,
    /// Matches that have the projection.
    pub matches: usize,
    /// The fields for IPv4 packets.
    pub ip4: Vec<String>,
    /// The fields for IPv6 packets.
    pub ip6: Vec<String>,
}

impl ProjectionReport {
    fn new(projection: &Bits, matches: usize) -> ProjectionReport {
        let guess_bits = guess_bits(projection);
        let guesses = 2_f64.powi(guess_bits as i32);
        ProjectionReport {
            bits: projection.weight(),
            guess_bits,
            guesses,
            seconds: guesses / HASHES_PER_SECOND,
            matches,
            ip4: fields(projection, false),
            ip6: fields(projection, true),
        }
    }
}

impl FunctionReport {
    /// The shape of a function with so many actions.
    pub fn new(function: &PrivateFunction, actions: usize) -> FunctionReport {
        let nodes = function.nodes();
        let mut counts = vec![0; function.projections().len()];
        function.matches().iter().for_each(|&projection| counts[projection] += 1);
        // By node: the rules on the longest path from it, as children come behind their parents.
        let mut lengths = vec![0; nodes.len()];
        for (node, it) in nodes.iter().enumerate().rev() {
            if let PrivateNode::Match { matched, otherwise, .. } = *it {
                lengths[node] = 1 + lengths[matched].max(lengths[otherwise]);
            }
        }
        let is_end = |node: usize| nodes[node] == PrivateNode::Leaf;
        let ends = |it: &PrivateNode| match *it {
            PrivateNode::Leaf => true,
            PrivateNode::Match { matched, .. } => is_end(matched),
        };
        let projections = function.projections().iter().zip(&counts);
        FunctionReport {
            rules: nodes.iter().filter(|it| **it != PrivateNode::Leaf).count(),
            actions,
            matches: function.matches().len(),
            is_list: nodes.iter().all(ends),
            longest_path: lengths.first().copied().unwrap_or(0),
            projections: projections.map(|(it, &count)| ProjectionReport::new(it, count)).collect(),
        }
    }
}

impl LeakageReport {
    /// The leakage to a party.
    pub fn new(party: &Party) -> LeakageReport {
        let info = party.info();
        let (role, dummies, function) = match party {
            Party::Entry(it) => (PartyRole::Entry, Some(it.dummies_per_million), None),
            Party::Processor(it) => {
                let function = FunctionReport::new(&it.function, it.shares.len());
                (PartyRole::Processor(it.number), None, Some(function))
            }
            Party::Client(it) => {
                let private = PrivateFunction::new(&it.function).0;
                let function = FunctionReport::new(&private, it.function.policies().len());
                (PartyRole::Client, Some(it.dummies_per_million), Some(function))
            }
        };
        let (known, hidden) = match (party, &function) {
            (Party::Entry(_), _) => knowledge::entry(info),
            (Party::Processor(_), Some(function)) => knowledge::processor(info, function),
            _ => knowledge::client(),
        };
        LeakageReport { function, known, hidden, ..LeakageReport::of_setup(role, info, dummies) }
    }

    /// The part of a report that all parties of a setup have.
    fn of_setup(role: PartyRole, info: &SetupInfo, dummies: Option<u32>) -> LeakageReport {
        let options = &info.options;
        LeakageReport {
            party: role.of(options.processors as u8),
            setup: format!("{:08x}", info.id),
            processors: options.processors,
            header_bits: options.header_bits,
            hash: match options.hash {
                HashKind::Blake3 => "BLAKE3 with a key",
                HashKind::Sha1 => "SHA-1",
            },
            blinds: options.blinds,
            uses_blinds_once: options.blind_use == BlindUse::Once,
            lanes: options.lanes,
            has_constant_work: options.has_constant_work,
            dummies_per_million: dummies,
            function: None,
            known: Vec::new(),
            hidden: Vec::new(),
        }
    }
}

/// Matches of one projection that a brute force finds with few guesses.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LowWeightMatches {
    /// The indexes of the policies that have these matches.
    pub policies: Vec<usize>,
    /// Different matches.
    pub matches: usize,
    /// The bits that have to be guessed.
    pub guess_bits: u32,
    /// The fields that they test.
    pub fields: Vec<String>,
}

/// The matches of a function that take fewer than 2^`minimum` guesses, by projection, those with the
/// fewest first. Matches that test nothing but the kind byte are left out: there is nothing to guess.
pub fn low_weight(function: &NetworkFunction, minimum: u32) -> Vec<LowWeightMatches> {
    type Policies = (Vec<usize>, HashSet<Ternary>);
    let mut all: BTreeMap<(u32, bool, Bits), Policies> = BTreeMap::new();
    for (policy, it) in function.policies().iter().enumerate() {
        let projection = it.condition.projection();
        let bits = guess_bits(&projection);
        if bits > 0 && bits < minimum {
            let is_ip6 = it.condition.value().0[0] & kind::IP6 != 0;
            let (policies, matches) = all.entry((bits, is_ip6, projection)).or_default();
            policies.push(policy);
            matches.insert(it.condition);
        }
    }
    let lists = all.into_iter().map(|((guess_bits, is_ip6, projection), (policies, matches))| {
        let fields = fields(&projection, is_ip6);
        LowWeightMatches { policies, matches: matches.len(), guess_bits, fields }
    });
    lists.collect()
}

#[cfg(test)]
mod tests;
