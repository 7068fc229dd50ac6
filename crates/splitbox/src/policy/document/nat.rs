//! Static address translation: prefixes to prefixes, and ports to ports.

use super::endpoint::{Endpoint, Side};
use super::{Protocol, Rest, Translation};
use crate::policy::PolicyError;
use crate::policy::stage::{Effect, Entry};
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;

/// The table `nat`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nat {
    direction: Direction,
    rest: Rest,
    map: Vec<Spanned<Map>>,
}

/// The packets that a function is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    /// From outside: destinations are translated.
    #[default]
    Inbound,
    /// From inside: sources are translated.
    Outbound,
}

/// A line of the translation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Map {
    inside: Spanned<String>,
    outside: Spanned<String>,
    protocol: Option<Protocol>,
}

/// A map that is right by itself.
struct Pair {
    inside: Endpoint,
    outside: Endpoint,
    protocol: Option<Protocol>,
    range: Range<usize>,
}

impl Nat {
    /// The entries of the translation, the rest, and the place of the rest.
    ///
    /// # Errors
    /// All maps that are wrong or overlap.
    pub(super) fn entries(&self) -> Translation {
        let (mut pairs, mut errors): (Vec<Pair>, Vec<PolicyError>) = (Vec::new(), Vec::new());
        for map in &self.map {
            match Pair::new(map, &pairs) {
                Ok(pair) => pairs.push(pair),
                Err(more) => errors.extend(more),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let end = self.map.last().map_or(0..0, Spanned::span);
        let entry = |pair: Pair| {
            let (side, from, to) = match self.direction {
                Direction::Inbound => (Side::Destination, pair.outside, pair.inside),
                Direction::Outbound => (Side::Source, pair.inside, pair.outside),
            };
            let condition = from.condition(side, pair.protocol);
            Entry { condition, effect: Effect::Set(to.action(side), 0), range: pair.range }
        };
        Ok((pairs.into_iter().map(entry).collect(), self.rest, end))
    }
}

impl Pair {
    fn new(map: &Spanned<Map>, before: &[Pair]) -> Result<Pair, Vec<PolicyError>> {
        let Map { inside, outside, protocol } = map.get_ref();
        let pair = match (Endpoint::parse(inside), Endpoint::parse(outside)) {
            (Ok(inside), Ok(outside)) => {
                Pair { inside, outside, protocol: *protocol, range: map.span() }
            }
            (inside, outside) => {
                return Err([inside.err(), outside.err()].into_iter().flatten().collect());
            }
        };
        let mut errors: Vec<PolicyError> = pair.form_error().into_iter().collect();
        let others = if errors.is_empty() { before } else { &[] };
        for other in others {
            let sides =
                [(inside, &pair.inside, &other.inside), (outside, &pair.outside, &other.outside)];
            for (text, own, others) in sides {
                if pair.has_packets_of(other) && has_common_ends(own, others) {
                    let message =
                        format!("`{}` overlaps {others}, which another map has", text.get_ref());
                    let help =
                        "each address, or port of it, is translated by one map on either side";
                    errors.push(PolicyError::new(text.span(), message).help(help));
                }
            }
        }
        if errors.is_empty() { Ok(pair) } else { Err(errors) }
    }

    /// The error of the two sides that do not fit each other.
    fn form_error(&self) -> Option<PolicyError> {
        let Pair { inside, outside, protocol, range } = self;
        let (message, help) = match (inside.port, outside.port, protocol) {
            _ if inside.is_ip6 != outside.is_ip6 => {
                ("one side is IPv4, the other IPv6", "both sides are of one family")
            }
            _ if inside.length != outside.length => {
                ("the prefixes have different lengths", "each address has one on the other side")
            }
            (Some(_), None, _) | (None, Some(_), _) => {
                ("one side has a port, the other has none", "both sides have a port or none")
            }
            (Some(_), Some(_), None) => {
                ("ports without a protocol", "write `protocol = \"tcp\"` or \"udp\"")
            }
            (None, None, Some(_)) => {
                ("a protocol without ports", "maps of addresses are for all protocols")
            }
            _ => return None,
        };
        Some(PolicyError::new(range.clone(), message).help(help))
    }

    /// Whether a packet can be of both maps by its protocol.
    fn has_packets_of(&self, other: &Pair) -> bool {
        let (own, other) = (self.protocol, other.protocol);
        own.is_none() || other.is_none() || own == other
    }
}

/// Whether an address, or a port of it, is of both.
fn has_common_ends(own: &Endpoint, other: &Endpoint) -> bool {
    own.overlaps(other) && (own.port.is_none() || other.port.is_none() || own.port == other.port)
}
