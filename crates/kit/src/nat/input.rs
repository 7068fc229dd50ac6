//! What becomes of packets that no mapping is for, as a rewriter's arguments say it.

use super::mapper::{Mapper, Way};
use super::pattern::Pattern;
use super::{By, Outputs};
use crate::classify::Names;
use std::fmt;

/// What becomes of such packets that come in on one input.
#[derive(Clone, Debug, Default)]
pub enum Input {
    /// They are dropped.
    #[default]
    Drop,
    /// They go on as they are, and there is no mapping.
    Pass(u8),
    /// They go on as they are, by a mapping.
    Keep(Outputs),
    /// They are rewritten by a pattern.
    Pattern(Pattern, Outputs),
    /// They are rewritten as somebody chooses.
    Mapper(Mapper),
}

/// Who knows what is named in arguments.
pub trait Named {
    /// Names of addresses.
    fn names(&self) -> &dyn Names;
    /// The pattern of that name.
    fn pattern(&self, name: &str) -> Option<Pattern>;
    /// The element of that name, as far as it is a mapper.
    fn mapper(&self, name: &str) -> Option<Element>;
}

/// An element that is named in place of a pattern.
pub enum Element {
    /// A mapper; its name and class for errors.
    Mapper(Mapper, String),
    /// Something else.
    Other,
}

/// What is wrong, in Click's words.
pub type Wrong = String;

/// Reads `PATTERN FOUTPUT ROUTPUT`.
pub fn way(words: &[&str], named: &dyn Named) -> Result<Way, Wrong> {
    let [pattern @ .., forward, reply] = words else { return Err("syntax error".into()) };
    let pattern = match pattern {
        [] => return Err("syntax error".into()),
        [name] => named.pattern(name).ok_or_else(|| format!("no such pattern '{name}'"))?,
        words => Pattern::parse(words, named.names())?,
    };
    Ok((pattern, outputs(&[forward, reply])?))
}

fn outputs(words: &[&str]) -> Result<Outputs, Wrong> {
    let number = |word: &str| word.parse::<i32>().ok();
    let [forward, reply] = *words else { return Err("bad forward port".into()) };
    let forward = number(forward).ok_or("bad forward port")?;
    let reply = number(reply).ok_or("bad reply port")?;
    // What is no output at all is beyond all of them.
    Ok([forward, reply].map(|port| u8::try_from(port).unwrap_or(u8::MAX)))
}

fn connected(ports: &[u8], outputs: usize) -> Result<(), Wrong> {
    let all = ports.iter().all(|&port| usize::from(port) < outputs);
    all.then_some(()).ok_or_else(|| "output port out of range".into())
}

impl Input {
    /// Reads the argument of an element that rewrites `by` something and has so many outputs.
    pub fn parse(text: &str, by: By, outputs: usize, named: &dyn Named) -> Result<Input, Wrong> {
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
                Input::Pass(u8::try_from(output).unwrap_or(u8::MAX))
            }
            "keep" => Input::Keep(self::outputs(rest)?),
            "drop" | "discard" if rest.is_empty() => Input::Drop,
            "drop" | "discard" => return Err(format!("syntax error, expected '{word}'")),
            "pattern" | "xpattern" => {
                let (pattern, outputs) = way(rest, named)?;
                Input::Pattern(by.fit(pattern)?, outputs)
            }
            name => match named.mapper(name) {
                None => return Err("unknown specification".into()),
                Some(_) if !rest.is_empty() => {
                    return Err("syntax error, expected element name".into());
                }
                Some(Element::Other) => return Err("element is not an IPMapper".into()),
                Some(Element::Mapper(mapper, label)) => {
                    for (n, (pattern, ports)) in mapper.ways().iter().enumerate() {
                        by.fit(pattern.clone())?;
                        connected(ports, outputs)
                            .map_err(|e| format!("{e} in {label} pattern {n}"))?;
                    }
                    let fit = |pattern: Pattern| by.fit(pattern.clone()).unwrap_or(pattern);
                    Input::Mapper(mapper.map(fit))
                }
            },
        };
        match &input {
            Input::Pass(output) => connected(&[*output], outputs)?,
            Input::Keep(ports) | Input::Pattern(_, ports) => connected(ports, outputs)?,
            Input::Drop | Input::Mapper(_) => {}
        }
        Ok(input)
    }
}

/// As Click's handlers show it.
impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Drop => f.write_str("<drop>"),
            Input::Pass(_) => f.write_str("<nochange>"),
            Input::Keep(_) => f.write_str("<keep>"),
            Input::Pattern(pattern, _) => pattern.fmt(f),
            Input::Mapper(_) => f.write_str("<mapper>"),
        }
    }
}
