//! Policies in TOML: address translation or a load balancer, and a firewall in front of it.

mod endpoint;
mod load_balancer;
mod nat;

use super::ip_filter::{entries, filter};
use super::stage::{Effect, Entry, Stage, Target, build, family};
use super::{CompiledPolicy, PolicyError};
use crate::bits::Ternary;
use castanet_wire::ip_proto;
use load_balancer::LoadBalancer;
use nat::Nat;
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;

/// A policy in TOML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    firewall: Option<Firewall>,
    nat: Option<Spanned<Nat>>,
    load_balancer: Option<Spanned<LoadBalancer>>,
}

/// Rules in front of a translation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Firewall {
    /// Rules of `IPFilter`.
    rules: Vec<Spanned<String>>,
    /// The effect on IPv6, which no rule of `IPFilter` is about.
    #[serde(default = "drop_all")]
    ip6: Rest,
}

fn drop_all() -> Rest {
    Rest::Drop
}

/// The effect on packets that nothing else is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Rest {
    /// They pass unchanged.
    Pass,
    /// They are dropped.
    Drop,
}

/// A transport protocol with ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    fn number(self) -> u8 {
        match self {
            Protocol::Tcp => ip_proto::TCP,
            Protocol::Udp => ip_proto::UDP,
        }
    }
}

/// Compiles a policy in TOML.
///
/// # Errors
/// The first error of the text's structure; otherwise all errors of its values.
pub(super) fn compile(text: &str) -> Result<CompiledPolicy, Vec<PolicyError>> {
    let document: Document = toml::from_str(text).map_err(|error| {
        let end = text.len()..text.len();
        vec![PolicyError::new(error.span().unwrap_or(end), error.message().trim_end())]
    })?;
    let (mut stages, mut errors) = (Vec::new(), Vec::new());
    if let Some(firewall) = &document.firewall {
        match firewall_entries(firewall, text) {
            Ok(entries) => stages.push(Stage { entries, rest: 1 }),
            Err(more) => errors.extend(more),
        }
    }
    let translation = match (&document.nat, &document.load_balancer) {
        (Some(_), Some(balancer)) => {
            let message = "a policy has address translation or a load balancer, not both";
            let error = PolicyError::new(balancer.span(), message);
            Err(vec![error.help("make two policies, with parties of their own")])
        }
        (Some(nat), None) => nat.get_ref().entries(),
        (None, Some(balancer)) => balancer.get_ref().entries(),
        (None, None) if document.firewall.is_none() => {
            let message = "the policy is empty";
            let help = "it has a table `firewall`, `nat` or `load_balancer`";
            Err(vec![PolicyError::new(0..text.len(), message).help(help)])
        }
        (None, None) => Ok((Vec::new(), Rest::Pass, 0..0)),
    };
    match translation {
        Ok((mut entries, rest, range)) => {
            let end = stages.len() + 1;
            for entry in &mut entries {
                if let Effect::Set(_, target) = &mut entry.effect {
                    *target = end;
                }
            }
            if rest == Rest::Drop {
                let (condition, effect) = (Ternary::ANY, Effect::Drop);
                entries.push(Entry { condition, effect, range });
            }
            stages.push(Stage { entries, rest: end });
        }
        Err(more) => errors.extend(more),
    }
    if errors.is_empty() { build(&stages) } else { Err(errors) }
}

/// The entries of translations, the effect on other packets, and its place.
type Translation = Result<(Vec<Entry>, Rest, Range<usize>), Vec<PolicyError>>;

/// The first stage: packets that pass go to the next one.
fn firewall_entries(firewall: &Firewall, text: &str) -> Result<Vec<Entry>, Vec<PolicyError>> {
    const NEXT: Target = 1;
    let rules = firewall.rules.iter().map(|rule| (content_start(rule, text), &rule.get_ref()[..]));
    let mut all = entries(rules, filter, NEXT)?;
    if firewall.ip6 == Rest::Pass {
        let range = firewall.rules.first().map_or(0..0, Spanned::span);
        let effect = Effect::Set(Ternary::ANY, NEXT);
        all.insert(0, Entry { condition: family(true), effect, range });
    }
    Ok(all)
}

/// The offset of a string's first character in the text: behind the quotes.
fn content_start(string: &Spanned<String>, text: &str) -> usize {
    let span = string.span();
    let quoted = text.get(span.clone()).unwrap_or_default();
    span.start + quoted.find(&string.get_ref()[..]).unwrap_or(0)
}

#[cfg(test)]
pub(super) mod tests;
