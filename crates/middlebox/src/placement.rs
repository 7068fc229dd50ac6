//! Checks rules against the interfaces, and against what happens to packets behind the element.

use crate::analysis::{RuleDiagnostic, RulePart};
use crate::field::FieldLocation;
use crate::interfaces::Interfaces;
use crate::rule::{Hop, Predicate, Rule, Target};
use crate::value::{Condition, Value};
use castanet_element::prelude::*;
use castanet_lang::nearest;

/// How packets are forwarded behind the element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forwarding {
    /// They leave as frames to the station that their Ethernet header names.
    Bridge,
    /// A router follows their destination annotation, and gives them an Ethernet header.
    Router,
}

impl FromArg for Forwarding {
    const SYNTAX: &'static str = "bridge or router";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text {
            "bridge" => Ok(Forwarding::Bridge),
            "router" => Ok(Forwarding::Router),
            _ => Err(ArgError::new(format!("`{text}` is not {}", Forwarding::SYNTAX))),
        }
    }
}

/// Why a rule has no effect here, if so.
pub(crate) fn placement_error(
    rule: &Rule,
    interfaces: &Interfaces,
    forwarding: Option<Forwarding>,
) -> Option<RuleDiagnostic> {
    let unknown_interface = || {
        rule.matches.iter().enumerate().find_map(|(at, it)| unknown_interface(at, it, interfaces))
    };
    unknown_interface()
        .or_else(|| impossible_path(rule, interfaces))
        .or_else(|| unreachable_hop(rule, forwarding?))
}

/// The interface that a match tests: whether it is the output interface, its name, and whether it
/// must be equal.
fn interface_match(predicate: &Predicate) -> Option<(bool, &str, bool)> {
    let is_out = match predicate.field.spec().location {
        FieldLocation::In => false,
        FieldLocation::Out => true,
        _ => return None,
    };
    match &predicate.test {
        Some((condition, Value::Name(name))) => {
            Some((is_out, name, (*condition == Condition::Equal) != predicate.negated))
        }
        _ => None,
    }
}

/// Error: a match names an unknown interface.
fn unknown_interface(
    at: usize,
    predicate: &Predicate,
    interfaces: &Interfaces,
) -> Option<RuleDiagnostic> {
    let (is_out, name, _) = interface_match(predicate)?;
    let known = || (0..interfaces.len()).map(|port| interfaces.name(port, is_out));
    if known().any(|it| it == name) {
        return None;
    }
    let way = if is_out { "leaves by" } else { "comes in by" };
    let message = format!("there is no interface `{name}` that a packet {way}");
    let help = match nearest(name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are: {}", known().collect::<Vec<_>>().join(", ")),
    };
    Some(RuleDiagnostic::new(RulePart::Match(at), message, help))
}

/// Error: no input has the combination of interfaces that the matches require.
fn impossible_path(rule: &Rule, interfaces: &Interfaces) -> Option<RuleDiagnostic> {
    let all =
        || rule.matches.iter().enumerate().filter_map(|(at, it)| Some((at, interface_match(it)?)));
    let (last, _) = all().next_back()?;
    let is_so = |port: usize, upto: usize| {
        let own = all().take_while(|(at, _)| *at <= upto);
        own.into_iter().all(|(_, (is_out, name, is))| (interfaces.name(port, is_out) == name) == is)
    };
    let ports = 0..interfaces.len();
    if ports.clone().any(|port| is_so(port, last)) {
        return None;
    }
    let (at, _) = all().find(|(at, _)| !ports.clone().any(|port| is_so(port, *at)))?;
    let message = format!("no packet comes in and leaves so that it is `{}`", rule.matches[at]);
    let ways = ports.map(|port| {
        format!(
            "what comes in by {} leaves by {}",
            interfaces.name(port, false),
            interfaces.name(port, true)
        )
    });
    Some(RuleDiagnostic::new(RulePart::Match(at), message, ways.collect::<Vec<_>>().join(", ")))
}

/// Error: packets do not reach the next hops of `lb`.
fn unreachable_hop(rule: &Rule, forwarding: Forwarding) -> Option<RuleDiagnostic> {
    rule.targets.iter().enumerate().find_map(|(at, target)| {
        let Target::Balance(hops) = target else { return None };
        let is_lost = |hop: &&Hop| match hop {
            Hop::Address(_) => forwarding == Forwarding::Bridge,
            Hop::Station(_) => forwarding == Forwarding::Router,
        };
        let hop = hops.iter().find(is_lost)?;
        let (message, help) = match forwarding {
            Forwarding::Bridge => (
                format!("no packet goes to {hop}: this is a bridge, where none is routed"),
                "name stations, such as `lb 02:00:00:00:00:01`, or make it a router",
            ),
            Forwarding::Router => (
                format!("no packet goes to {hop}: this is a router, which chooses stations itself"),
                "name addresses, such as `lb 10.0.0.1`",
            ),
        };
        Some(RuleDiagnostic::new(RulePart::Target(at), message, help.to_owned()))
    })
}
