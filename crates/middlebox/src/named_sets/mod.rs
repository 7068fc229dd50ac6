//! Named sets of values, which rules refer to as `@NAME`.

#[cfg(test)]
mod tests;

use crate::rule::{Predicate, Rule};
use crate::value::{Value, net4, net6, number, protocol, station};
use crate::value_set::{NumberSet, ValueFamily, check_name};
use castanet_lang::nearest;
use imbl::OrdMap;
use std::fmt::Write;
use std::sync::Arc;

/// A value of a set, or a range of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetElement {
    family: ValueFamily,
    low: u128,
    high: u128,
}

impl SetElement {
    /// Parses a number, a protocol, an address, a prefix or a range of two numbers or addresses; the
    /// error says what is expected.
    pub fn parse(text: &str) -> Result<SetElement, String> {
        let wanted = || {
            Err("a set has numbers, addresses, prefixes and ranges, such as 80, 8000-8100, \
                 10.0.0.0/8 or 2001:db8::1"
                .to_owned())
        };
        // An Ethernet address may have `-` between its bytes.
        if let Some(element) = SetElement::one(text) {
            return Ok(element);
        }
        let Some((low, high)) = text.split_once('-') else { return wanted() };
        let (Some(low), Some(high)) = (SetElement::one(low), SetElement::one(high)) else {
            return wanted();
        };
        let is_single = low.low == low.high && high.low == high.high;
        match is_single && low.family == high.family && low.low <= high.high {
            true => Ok(SetElement { high: high.high, ..low }),
            false => Err("a range is of two single values, the lesser one first".into()),
        }
    }

    /// Parses what is no range.
    fn one(text: &str) -> Option<SetElement> {
        let number = || protocol(text).map(u64::from).or_else(|| number(text, 64));
        let found = [
            (ValueFamily::Station, text.parse().ok().map(station)),
            (ValueFamily::Number, number().map(Value::Number)),
            (ValueFamily::Ip4, net4(text)),
            (ValueFamily::Ip6, net6(text)),
        ];
        let (family, value) = found.into_iter().find_map(|(of, it)| Some((of, it?)))?;
        let (low, high) = value.range()?;
        Some(SetElement { family, low, high })
    }
}

/// A change of a named set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetChange {
    /// Adds values, to a new set if there is none.
    Add(Vec<SetElement>),
    /// Removes values.
    Remove(Vec<SetElement>),
    /// Puts values in place of all.
    Replace(Vec<SetElement>),
    /// Deletes the set.
    Delete,
}

/// The values of a set, by family.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct NamedSet {
    ranges: [NumberSet; FAMILIES.len()],
}

/// The families, in the order in which a set has them.
const FAMILIES: [ValueFamily; 4] =
    [ValueFamily::Number, ValueFamily::Ip4, ValueFamily::Ip6, ValueFamily::Station];

/// The word for the values of a family; values of one set have the same word.
fn noun(family: ValueFamily) -> &'static str {
    match family {
        ValueFamily::Number => "numbers",
        ValueFamily::Ip4 | ValueFamily::Ip6 => "IP addresses",
        ValueFamily::Station => "Ethernet addresses",
    }
}

impl NamedSet {
    /// The values of a family.
    fn of(&self, family: ValueFamily) -> &NumberSet {
        &self.ranges[family as usize]
    }

    /// The words for its values, each once.
    fn nouns(&self) -> Vec<&'static str> {
        let families = FAMILIES.iter().filter(|&&it| !self.of(it).as_slice().is_empty());
        let mut nouns: Vec<_> = families.map(|&it| noun(it)).collect();
        nouns.dedup();
        nouns
    }

    /// This set with elements, or without them.
    fn changed(&self, elements: &[SetElement], adds: bool) -> NamedSet {
        let ranges = FAMILIES.map(|family| {
            let own = elements.iter().filter(|it| it.family == family);
            let own = own.map(|it| (it.low, it.high));
            match adds {
                true => self.of(family).with(own),
                false => self.of(family).without(&NumberSet::new(own.collect())),
            }
        });
        NamedSet { ranges }
    }

    /// Its values, as commands write them.
    fn texts(&self) -> impl Iterator<Item = String> {
        FAMILIES.iter().flat_map(|&family| self.of(family).text(family.kind(), family))
    }

    /// Number of values and ranges.
    fn len(&self) -> usize {
        self.ranges.iter().map(|it| it.as_slice().len()).sum()
    }
}

/// The named sets of a rule set. A copy shares its contents with the original.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct NamedSets(OrdMap<Arc<str>, NamedSet>);

impl NamedSets {
    /// Changes a set, and returns the answer.
    pub(crate) fn change(&mut self, name: &str, change: &SetChange) -> Result<String, String> {
        check_name(name)?;
        let old = self.0.get(name).cloned();
        let new = match change {
            SetChange::Add(elements) => old.clone().unwrap_or_default().changed(elements, true),
            SetChange::Replace(elements) => NamedSet::default().changed(elements, true),
            SetChange::Remove(elements) => {
                old.clone().ok_or_else(|| self.unknown(name))?.changed(elements, false)
            }
            SetChange::Delete => {
                old.ok_or_else(|| self.unknown(name))?;
                self.0.remove(name);
                return Ok(format!("deleted set {name}"));
            }
        };
        if let [one, other, ..] = new.nouns()[..] {
            return Err(format!("set {name} cannot have both {one} and {other}"));
        }
        let count = new.len();
        self.0.insert(name.into(), new);
        let noun = if count == 1 { "value or range" } else { "values or ranges" };
        Ok(format!("set {name} has {count} {noun}"))
    }

    /// The error that there is no set of this name.
    fn unknown(&self, name: &str) -> String {
        let near = nearest(name, self.0.keys().map(|it| &**it));
        let near = near.map(|it| format!("; did you mean `{it}`?"));
        let help = || format!("; `set add {name} VALUE…` makes one");
        format!("there is no set `{name}`{}", near.unwrap_or_else(help))
    }

    /// The rule with the values that its named sets have now; unchanged if it has them.
    pub(crate) fn resolve(&self, rule: &Rule) -> Result<Option<Rule>, String> {
        let mut changed = None;
        for (at, predicate) in rule.matches.iter().enumerate() {
            let Some(ranges) = self.values_of(predicate)? else { continue };
            let Some((condition, value)) = &predicate.test else { continue };
            let Some(set) = value.set().filter(|set| *set.ranges() != ranges) else { continue };
            let value = Value::Set(Arc::new(set.with_ranges(ranges)));
            changed.get_or_insert_with(|| rule.clone()).matches[at].test =
                Some((*condition, value));
        }
        Ok(changed)
    }

    /// The values that the named set of a match has now; `None` if it has no such set.
    fn values_of(&self, predicate: &Predicate) -> Result<Option<NumberSet>, String> {
        let Some(set) = predicate.set() else { return Ok(None) };
        let (Some(name), Some(family)) = (set.name(), ValueFamily::of(predicate.field)) else {
            return Ok(None);
        };
        let set = self.0.get(name).ok_or_else(|| self.unknown(name))?;
        match set.nouns()[..] {
            [has, ..] if has != noun(family) => Err(format!(
                "set `{name}` has {has}, and {} wants {}",
                predicate.field,
                family.word()
            )),
            _ => Ok(Some(set.of(family).clone())),
        }
    }

    /// The names of the sets.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }

    /// The commands that make these sets, one a line.
    pub(crate) fn text(&self) -> String {
        /// Values in a line.
        const MOST: usize = 16;
        let mut text = String::new();
        for (name, set) in &self.0 {
            let values: Vec<String> = set.texts().collect();
            if values.is_empty() {
                let _ = writeln!(text, "set add {name}");
            }
            for some in values.chunks(MOST) {
                let _ = writeln!(text, "set add {name} {}", some.join(" "));
            }
        }
        text
    }

    /// A line for each set: its name, how many values and ranges it has, and, if `verbose`, which.
    pub(crate) fn list(&self, verbose: bool) -> String {
        let mut text = String::new();
        for (name, set) in &self.0 {
            let _ = write!(text, "{name} {}", set.len());
            if verbose {
                set.texts().for_each(|value| _ = write!(text, " {value}"));
            }
            text.push('\n');
        }
        text
    }
}

/// Whether a rule has a match with the set of this name.
pub(crate) fn uses(rule: &Rule, name: &str) -> bool {
    rule.matches.iter().any(|it| it.set().is_some_and(|set| set.name() == Some(name)))
}
