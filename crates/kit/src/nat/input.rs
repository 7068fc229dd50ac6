//! The input specifications of rewriters, which decide about packets without a mapping.

use super::mapper::{Mapper, PatternOutputs};
use super::pattern::Pattern;
use super::{Outputs, RewriterKind};
use crate::classify::Names;
use std::fmt;

/// The treatment of an input's packets that have no mapping.
#[derive(Clone, Debug, Default)]
pub enum InputSpec {
    /// Drops them.
    #[default]
    Drop,
    /// Forwards them unchanged, without a mapping.
    Pass(u8),
    /// Forwards them unchanged, with a mapping.
    Keep(Outputs),
    /// Rewrites them by a pattern.
    Pattern(Pattern, Outputs),
    /// Rewrites them by the pattern that a mapper selects.
    Mapper(Mapper),
}

/// Resolves the names in arguments.
pub trait NameResolver {
    /// The names of addresses.
    fn names(&self) -> &dyn Names;
    /// The pattern of that name.
    fn pattern(&self, name: &str) -> Option<Pattern>;
    /// The element of that name, and whether it is a mapper.
    fn mapper(&self, name: &str) -> Option<NamedElement>;
}

/// An element that is named in place of a pattern.
pub enum NamedElement {
    /// A mapper; its name and class for errors.
    Mapper(Mapper, String),
    /// An element of another class.
    Other,
}

/// An error in Click's words.
pub type InputError = String;

/// Parses `PATTERN FOUTPUT ROUTPUT`.
pub fn parse_pattern_outputs(
    words: &[&str],
    resolver: &dyn NameResolver,
) -> Result<PatternOutputs, InputError> {
    let [pattern @ .., forward, reply] = words else { return Err("syntax error".into()) };
    let pattern = match pattern {
        [] => return Err("syntax error".into()),
        [name] => resolver.pattern(name).ok_or_else(|| format!("no such pattern '{name}'"))?,
        words => Pattern::parse(words, resolver.names())?,
    };
    Ok((pattern, outputs(&[forward, reply])?))
}

fn outputs(words: &[&str]) -> Result<Outputs, InputError> {
    let number = |word: &str| word.parse::<i32>().ok();
    let [forward, reply] = *words else { return Err("bad forward port".into()) };
    let forward = number(forward).ok_or("bad forward port")?;
    let reply = number(reply).ok_or("bad reply port")?;
    // A number that cannot be an output becomes one beyond all outputs.
    Ok([forward, reply].map(|port| u8::try_from(port).unwrap_or(u8::MAX)))
}

fn connected(ports: &[u8], outputs: usize) -> Result<(), InputError> {
    let all = ports.iter().all(|&port| usize::from(port) < outputs);
    all.then_some(()).ok_or_else(|| "output port out of range".into())
}

impl InputSpec {
    /// Parses an argument of a rewriter of this kind with so many outputs.
    pub fn parse(
        text: &str,
        kind: RewriterKind,
        outputs: usize,
        resolver: &dyn NameResolver,
    ) -> Result<InputSpec, InputError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [word, rest @ ..] = words.as_slice() else { return Err("empty argument".into()) };
        let input = match *word {
            "pass" | "passthrough" | "nochange" => {
                let output = match rest {
                    [] => Some(0),
                    [output] => output.parse::<i32>().ok(),
                    _ => None,
                };
                let output = output.ok_or("syntax error, expected 'nochange [OUTPUT]'")?;
                InputSpec::Pass(u8::try_from(output).unwrap_or(u8::MAX))
            }
            "keep" => InputSpec::Keep(self::outputs(rest)?),
            "drop" | "discard" if rest.is_empty() => InputSpec::Drop,
            "drop" | "discard" => return Err(format!("syntax error, expected '{word}'")),
            "pattern" | "xpattern" => {
                let (pattern, outputs) = parse_pattern_outputs(rest, resolver)?;
                InputSpec::Pattern(kind.adapt_pattern(pattern)?, outputs)
            }
            name => match resolver.mapper(name) {
                None => return Err("unknown specification".into()),
                Some(_) if !rest.is_empty() => {
                    return Err("syntax error, expected element name".into());
                }
                Some(NamedElement::Other) => return Err("element is not an IPMapper".into()),
                Some(NamedElement::Mapper(mapper, label)) => {
                    for (n, (pattern, ports)) in mapper.entries().iter().enumerate() {
                        kind.adapt_pattern(pattern.clone())?;
                        connected(ports, outputs)
                            .map_err(|e| format!("{e} in {label} pattern {n}"))?;
                    }
                    let adapt =
                        |pattern: Pattern| kind.adapt_pattern(pattern.clone()).unwrap_or(pattern);
                    InputSpec::Mapper(mapper.map(adapt))
                }
            },
        };
        match &input {
            InputSpec::Pass(output) => connected(&[*output], outputs)?,
            InputSpec::Keep(ports) | InputSpec::Pattern(_, ports) => connected(ports, outputs)?,
            InputSpec::Drop | InputSpec::Mapper(_) => {}
        }
        Ok(input)
    }
}

/// The form of Click's handlers.
impl fmt::Display for InputSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputSpec::Drop => f.write_str("<drop>"),
            InputSpec::Pass(_) => f.write_str("<nochange>"),
            InputSpec::Keep(_) => f.write_str("<keep>"),
            InputSpec::Pattern(pattern, _) => pattern.fmt(f),
            InputSpec::Mapper(_) => f.write_str("<mapper>"),
        }
    }
}
