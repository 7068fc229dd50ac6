//! Trees as stages one after the other, of which each is a list.

use super::{CompiledPolicy, PolicyError, drop_action, function_error};
use crate::bits::{Bits, HEADER_BITS, Ternary};
use crate::function::{NetworkFunction, Node, NodeId, Policy};
use crate::header::{HeaderField, HeaderFields, IP4, IP6, kind};
use castanet_wire::ip_proto;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Maximum number of policies of a function.
pub(super) const MAX_POLICIES: usize = 1 << 16;

/// The index of the bit of a header string that says IPv6.
pub(super) const IP6_BIT: usize = kind::IP6.leading_zeros() as usize;
/// The index of the bit that says later fragment.
pub(super) const LATER_FRAGMENT_BIT: usize = kind::LATER_FRAGMENT.leading_zeros() as usize;

/// The fields of an address family.
pub(super) fn fields(is_ip6: bool) -> &'static HeaderFields {
    if is_ip6 { &IP6 } else { &IP4 }
}

/// The match of an address family.
pub(super) fn family(is_ip6: bool) -> Ternary {
    Ternary::ANY.with(IP6_BIT, 1, is_ip6.into())
}

/// The match of packets of an address family that have the transport header of a protocol: later
/// fragments do not, and the entry refuses cut packets.
pub(super) fn transport(is_ip6: bool, protocol: u8) -> Ternary {
    let HeaderField { at, width } = fields(is_ip6).protocol;
    family(is_ip6).with(LATER_FRAGMENT_BIT, 1, 0).with(at, width, protocol.into())
}

/// The effect on packets that match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Bits are set; the packet goes to a stage.
    Set(Ternary, Target),
    /// The packet is dropped.
    Drop,
}

/// A stage that packets go to; behind the last one the function ends.
pub(super) type Target = usize;

/// A match with its effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) condition: Ternary,
    pub(super) effect: Effect,
    /// The place in the text.
    pub(super) range: Range<usize>,
}

/// A list of matches, of which the first that a packet matches decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stage {
    pub(super) entries: Vec<Entry>,
    /// The stage of packets that match none.
    pub(super) rest: Target,
}

/// Removes entries that no packet comes to, as an earlier match contains theirs.
pub(super) fn remove_shadowed(conditions: &mut Vec<(Ternary, usize)>) {
    let mut by_projection: HashMap<Bits, HashSet<Bits>> = HashMap::new();
    conditions.retain(|(condition, _)| {
        let (value, projection) = (condition.value(), condition.projection());
        let is_shadowed = by_projection
            .iter()
            .any(|(of, values)| *of & projection == *of && values.contains(&(value & *of)));
        if !is_shadowed {
            by_projection.entry(projection).or_default().insert(value);
        }
        !is_shadowed
    });
}

/// The bits that actions may change for packets that meet a condition: TOS, TTL and addresses of their
/// family, and the ports of TCP and UDP.
pub(super) fn writable(condition: &Ternary) -> Bits {
    let fits = |all: Ternary| all.contains(condition);
    let field =
        |bits: Bits, it: &HeaderField| bits | Ternary::ANY.with(it.at, it.width, 0).projection();
    let of = |is_ip6: bool| {
        let HeaderFields { tos, ttl, src, dst, sport, dport, .. } = fields(is_ip6);
        let has_ports = [ip_proto::TCP, ip_proto::UDP].map(|it| transport(is_ip6, it));
        let ports: &[&HeaderField] =
            if has_ports.into_iter().any(fits) { &[sport, dport] } else { &[] };
        [tos, ttl, src, dst].into_iter().chain(ports.iter().copied()).fold(Bits::ZERO, field)
    };
    let families = [false, true].into_iter().filter(|&it| fits(family(it)));
    families.fold(Bits::ZERO, |bits, is_ip6| bits | of(is_ip6))
}

/// The function of stages; the first one is asked first. Targets are behind the stages that have them.
///
/// # Errors
/// Actions change what they may not, two actions of a path overlap, matches test changed bits, or there
/// are too many policies.
pub(super) fn build(stages: &[Stage]) -> Result<CompiledPolicy, Vec<PolicyError>> {
    let entries = || stages.iter().flat_map(|stage| &stage.entries);
    if let Some(first_excess) = entries().nth(MAX_POLICIES) {
        let message = format!("up to here the function needs {MAX_POLICIES} policies, the maximum");
        return Err(vec![PolicyError::new(first_excess.range.clone(), message)]);
    }
    let errors: Vec<PolicyError> = entries().filter_map(write_error).collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let header_bits = header_bits(entries());
    let starts: Vec<NodeId> = stages
        .iter()
        .scan(0, |next, stage| {
            let start = *next;
            *next += stage.entries.len();
            Some(start)
        })
        .collect();
    let leaf = entries().count();
    let start = |mut stage: Target| {
        while stages.get(stage).is_some_and(|it| it.entries.is_empty()) {
            stage = stages[stage].rest;
        }
        starts.get(stage).copied().unwrap_or(leaf)
    };
    let (mut policies, mut nodes, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
    for stage in stages {
        for (at, entry) in stage.entries.iter().enumerate() {
            let (action, matched) = match entry.effect {
                Effect::Set(action, target) => (action, start(target)),
                Effect::Drop => (drop_action(header_bits), leaf),
            };
            let is_last = at + 1 == stage.entries.len();
            let otherwise = if is_last { start(stage.rest) } else { nodes.len() + 1 };
            nodes.push(Node::Match { policy: policies.len(), matched, otherwise });
            policies.push(Policy { condition: entry.condition, action });
            ranges.push(entry.range.clone());
        }
    }
    debug_assert!(
        nodes.is_empty() || start(0) == 0,
        "the first stages that are not empty follow each other"
    );
    let nodes = nodes.into_iter().chain([Node::Leaf]).collect();
    match NetworkFunction::new(policies, nodes) {
        Ok(function) => Ok(CompiledPolicy { function, header_bits, ranges }),
        Err(error) => Err(vec![function_error(error, &ranges)]),
    }
}

fn write_error(entry: &Entry) -> Option<PolicyError> {
    let Effect::Set(action, _) = entry.effect else { return None };
    let is_outside = action.projection().overlaps(&!writable(&entry.condition));
    is_outside.then(|| {
        PolicyError::new(entry.range.clone(), "the action changes what no action may change")
            .help("actions change TOS, TTL, addresses, and ports of TCP and UDP")
    })
}

/// The bits up to the last one that is tested or changed, as whole bytes; at least one, in which a bit
/// tells packets from dropped ones.
fn header_bits<'e>(entries: impl Iterator<Item = &'e Entry>) -> usize {
    let bits = entries.fold(Bits::ZERO, |bits, entry| {
        let changed = match entry.effect {
            Effect::Set(action, _) => action.projection(),
            Effect::Drop => Bits::ZERO,
        };
        bits | entry.condition.projection() | changed
    });
    let last = (0..HEADER_BITS).rev().find(|&at| bits.get(at)).unwrap_or(0);
    (last + 1).next_multiple_of(8)
}
