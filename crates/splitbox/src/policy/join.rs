//! Joining: matches with few bits get a field whose values are known, so that a processor cannot guess
//! them.

use super::stage::{MAX_POLICIES, family, fields};
use super::{CompiledPolicy, PolicyError, drop_action, function_error};
use crate::bits::Ternary;
use crate::function::{NetworkFunction, Node, NodeId, Policy};
use crate::report::guess_bits;
use castanet_kit::address::Address;
use std::fmt::{Display, Formatter};
use std::net::IpAddr;
use std::str::FromStr;

/// Maximum number of addresses of a field.
const MAX_VALUES: usize = 4096;

/// An address field whose values are known: `dst=10.0.0.0/28`, or several prefixes with commas.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinField {
    /// Matches of the whole field, one for each value.
    values: Vec<Ternary>,
}

/// Matches that cannot be joined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JoinError {
    /// Even with the field, matches would have fewer bits.
    Bits {
        /// The bits of a match with the field alone.
        field: u32,
        /// The minimum.
        least: u32,
    },
    /// There would be more policies than a function may have.
    TooMany(usize),
    /// The function with the field cannot be computed privately.
    Function(PolicyError),
}

impl Display for JoinError {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        match self {
            JoinError::Bits { field, least } => {
                write!(f, "matches of the joined field have {field} bits, fewer than {least}")
            }
            JoinError::TooMany(count) => {
                write!(
                    f,
                    "with the joined field there are {count} policies; there can be {MAX_POLICIES}"
                )
            }
            JoinError::Function(error) => write!(f, "with the joined field: {error}"),
        }
    }
}

impl std::error::Error for JoinError {}

impl FromStr for JoinField {
    type Err = String;

    fn from_str(text: &str) -> Result<JoinField, String> {
        let form = || format!("`{text}` is no field with its values, such as dst=10.0.0.0/28");
        let (name, list) = text.split_once('=').ok_or_else(form)?;
        let is_src = match name.trim() {
            "src" => true,
            "dst" => false,
            _ => return Err(form()),
        };
        let mut values = Vec::new();
        for prefix in list.split(',').map(str::trim) {
            let (is_ip6, first, free) = parse_prefix(prefix)
                .ok_or_else(|| format!("`{prefix}` is no address and no prefix"))?;
            let count = 1_usize.checked_shl(free).filter(|&it| free < 32 && it <= MAX_VALUES);
            let Some(count) = count.filter(|it| values.len() + it <= MAX_VALUES) else {
                return Err(format!("`{text}` has more than {MAX_VALUES} addresses"));
            };
            let field = if is_src { fields(is_ip6).src } else { fields(is_ip6).dst };
            let value = |it: usize| family(is_ip6).with(field.at, field.width, first + it as u128);
            values.extend((0..count).map(value));
        }
        values.sort_unstable();
        values.dedup();
        Ok(JoinField { values })
    }
}

/// Whether it is IPv6, the first address, and the number of free bits of an address or a prefix.
fn parse_prefix(text: &str) -> Option<(bool, u128, u32)> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(match address {
            IpAddr::V4(it) => (false, it.to_bits().into(), 0),
            IpAddr::V6(it) => (true, it.to_bits(), 0),
        });
    }
    let four = || u32::parse_prefix(text).map(|(it, n)| (false, it.prefix(n).into(), 32 - n));
    let six = || u128::parse_prefix(text).map(|(it, n)| (true, it.prefix(n), 128 - n));
    four().or_else(six)
}

impl JoinField {
    /// The function in which matches with fewer than `least_bits` bits to guess have the field too: each becomes one
    /// match for each value of the field. Packets with another value are dropped; all others have the
    /// same results. Matches of all packets stay, as they have nothing to guess; a function without
    /// matches of too few bits stays as it is.
    ///
    /// # Errors
    /// There would be too many policies, or still too few bits, or matches test what actions change.
    pub fn join(
        &self,
        policy: &CompiledPolicy,
        least_bits: u32,
    ) -> Result<CompiledPolicy, JoinError> {
        let function = &policy.function;
        let is_short = |it: &Policy| {
            let projection = it.condition.projection();
            !projection.is_zero() && guess_bits(&projection) < least_bits
        };
        if !function.policies().iter().any(is_short) {
            return Ok(policy.clone());
        }
        let field = self.values.iter().map(|it| guess_bits(&it.projection())).min().unwrap_or(0);
        if field < least_bits {
            return Err(JoinError::Bits { field, least: least_bits });
        }
        let header_bits = self.header_bits(policy);
        let drop = drop_action(policy.header_bits);
        let joined: Vec<Vec<Policy>> = function
            .policies()
            .iter()
            .map(|it| {
                let action = if it.action == drop { drop_action(header_bits) } else { it.action };
                let with =
                    |value: &Ternary| Some(Policy { condition: it.condition.and(value)?, action });
                match is_short(it) {
                    true => self.values.iter().filter_map(with).collect(),
                    false => vec![Policy { condition: it.condition, action }],
                }
            })
            .collect();
        self.build(policy, &joined, header_bits)
    }

    /// n of the function with the field.
    fn header_bits(&self, policy: &CompiledPolicy) -> usize {
        let ends = [false, true].into_iter().flat_map(|is_ip6| {
            let all = fields(is_ip6);
            [all.src, all.dst].map(|it| (it, is_ip6))
        });
        let is_used = |(field, is_ip6): &(crate::header::HeaderField, bool)| {
            let whole = family(*is_ip6).with(field.at, field.width, 0).projection();
            self.values.iter().any(|it| it.projection() == whole)
        };
        let ends = ends.filter(is_used).map(|(field, _)| field.at + field.width);
        ends.max().unwrap_or(0).max(policy.header_bits).next_multiple_of(8)
    }

    /// The function of joined policies, behind matches of all values of the field.
    fn build(
        &self,
        policy: &CompiledPolicy,
        joined: &[Vec<Policy>],
        header_bits: usize,
    ) -> Result<CompiledPolicy, JoinError> {
        let old = policy.function.nodes();
        let front = self.values.len() + 1;
        let size = |node: &Node| match node {
            Node::Leaf => 1,
            Node::Match { policy, .. } => joined[*policy].len(),
        };
        let count = front + old.iter().map(size).sum::<usize>();
        if count > MAX_POLICIES {
            return Err(JoinError::TooMany(count));
        }
        // The first node of each old one; a node without matches is the one that follows it.
        let mut starts = vec![0; old.len()];
        let mut next = count;
        for (at, node) in old.iter().enumerate().rev() {
            next -= size(node);
            starts[at] = match *node {
                Node::Match { otherwise, .. } if size(node) == 0 => starts[otherwise],
                _ => next,
            };
        }
        let (mut nodes, mut policies, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
        let leaf = old.iter().position(|it| *it == Node::Leaf).map_or(count, |at| starts[at]);
        let mut put = |nodes: &mut Vec<Node>, it: Policy, range, matched, otherwise| {
            nodes.push(Node::Match { policy: policies.len(), matched, otherwise });
            policies.push(it);
            ranges.push(range);
        };
        for &condition in &self.values {
            let next = nodes.len() + 1;
            put(&mut nodes, Policy { condition, action: Ternary::ANY }, 0..0, starts[0], next);
        }
        let drop = Policy { condition: Ternary::ANY, action: drop_action(header_bits) };
        put(&mut nodes, drop, 0..0, leaf, leaf);
        for node in old {
            let Node::Match { policy: index, matched, otherwise } = *node else {
                nodes.push(Node::Leaf);
                continue;
            };
            let range = policy.ranges.get(index).cloned().unwrap_or_default();
            for (at, it) in joined[index].iter().enumerate() {
                let next: NodeId = nodes.len() + 1;
                let is_last = at + 1 == joined[index].len();
                let otherwise = if is_last { starts[otherwise] } else { next };
                put(&mut nodes, *it, range.clone(), starts[matched], otherwise);
            }
        }
        match NetworkFunction::new(policies, nodes) {
            Ok(function) => Ok(CompiledPolicy { function, header_bits, ranges }),
            Err(error) => Err(JoinError::Function(function_error(error, &ranges))),
        }
    }
}

#[cfg(test)]
mod tests;
