//! From `Counter(ACTIVE true)` to typed values, with errors worth reading.

use crate::error::ArgError;

mod annotations;
mod call;
mod memory;
mod names;
mod patterns;
mod ports;
mod scoped_names;
mod values;

pub use annotations::AnnoAt;
pub use call::Call;
pub use castanet_lang::io_error_text;
pub use memory::affordable;
pub use names::{ANNO, AddressKind, Names, PATTERN, SPINLOCK, TCP_PORT, UDP_PORT};
pub use ports::{ListenPort, TcpPort, UdpPort};
pub use scoped_names::{DeclaredNames, ScopedNames};
pub use values::{Bandwidth, Data, FromArg, Net, Net6, Words, within};

use castanet_lang::args::{ArgText, split};
use castanet_lang::nearest;
use std::collections::VecDeque;

/// One declared argument, as the manual and the parser both see it.
#[derive(Clone, Copy)]
pub struct ArgSpec {
    /// Keyword, in capitals as Click spells it.
    pub name: &'static str,
    /// How it may be given.
    pub kind: ArgKind,
    /// The form of a value, from [`FromArg::SYNTAX`].
    pub syntax: &'static str,
    /// The default as written in the source; `None` makes it mandatory.
    pub default: Option<&'static str>,
    /// Whether it can be read and written while the router runs.
    pub live: bool,
    /// The field's doc comment.
    pub doc: &'static str,
}

/// How an argument may be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgKind {
    /// By place or by keyword.
    Place,
    /// By keyword only.
    Keyword,
    /// All remaining places.
    Rest,
}

/// A parsed argument list; written by `#[derive(Args)]`.
pub trait Args: Sized {
    /// The declared arguments, in order.
    const ARGS: &'static [ArgSpec];
    /// Takes the arguments out of a list in which the first of them is number
    /// `first`; what is wrong is noted there.
    fn take(taker: &mut Taker, first: usize) -> Option<Self>;
    /// Parses the text between the parentheses; reports all that is wrong.
    fn parse(text: &str, names: &Names) -> Result<Self, Vec<ArgError>> {
        let mut taker = Taker::new(text, Self::ARGS, names);
        let taken = Self::take(&mut taker, 0);
        taker.finish();
        taken.filter(|_| taker.errors.is_empty()).ok_or(taker.errors)
    }
}

impl Args for () {
    const ARGS: &'static [ArgSpec] = &[];
    fn take(_: &mut Taker, _: usize) -> Option<()> {
        Some(())
    }
}

/// How many arguments there are in all.
#[doc(hidden)]
pub const fn total(parts: &[&[ArgSpec]]) -> usize {
    let (mut count, mut part) = (0, 0);
    while part < parts.len() {
        count += parts[part].len();
        part += 1;
    }
    count
}

/// All arguments in order; `N` is how many they are.
#[doc(hidden)]
pub const fn joined<const N: usize>(parts: &[&[ArgSpec]]) -> [ArgSpec; N] {
    const NONE: ArgSpec = ArgSpec {
        name: "",
        kind: ArgKind::Keyword,
        syntax: "",
        default: None,
        live: false,
        doc: "",
    };
    let (mut all, mut count, mut part) = ([NONE; N], 0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            all[count] = parts[part][at];
            count += 1;
            at += 1;
        }
        part += 1;
    }
    all
}

/// The argument list while the derived parser takes it apart.
pub struct Taker<'a> {
    specs: &'static [ArgSpec],
    names: &'a Names,
    places: VecDeque<ArgText>,
    keywords: Vec<(&'static str, ArgText)>,
    /// Everything found wrong so far; all of it is reported.
    pub errors: Vec<ArgError>,
}

impl<'a> Taker<'a> {
    /// Splits `text` at its top-level commas and finds the keywords.
    pub fn new(text: &str, specs: &'static [ArgSpec], names: &'a Names) -> Self {
        let mut taker = Taker {
            specs,
            names,
            places: VecDeque::new(),
            keywords: Vec::new(),
            errors: Vec::new(),
        };
        for part in split(text) {
            taker.sort(part);
        }
        taker
    }

    fn sort(&mut self, part: ArgText) {
        let word = part.text.split(char::is_whitespace).next().unwrap_or_default();
        let named = |s: &&ArgSpec| s.kind != ArgKind::Rest && s.name == word;
        if let Some(spec) = self.specs.iter().find(named) {
            let value = part.text[word.len()..].trim_start();
            let offset = part.offset + (part.text.len() - value.len());
            self.keywords.push((spec.name, ArgText { text: value.to_owned(), offset }));
        } else if self.takes_no_place()
            && let Some(error) = self.unknown_keyword(&part)
        {
            self.errors.push(error);
        } else {
            self.places.push_back(part);
        }
    }

    /// The error about an argument that looks like a keyword and its value; `None` if it does not.
    fn unknown_keyword(&self, arg: &ArgText) -> Option<ArgError> {
        let word = arg.text.split(char::is_whitespace).next().unwrap_or_default();
        if !is_keyword(word) || word.len() == arg.text.len() {
            return None;
        }
        let error = ArgError::new(format!("no argument {word}"))
            .click(format!("{word}: unknown argument"))
            .within(arg.offset, word.len());
        Some(match nearest(word, self.specs.iter().map(|s| s.name)) {
            Some(near) => error.help(format!("did you mean {near}?")),
            None => error,
        })
    }

    fn takes_no_place(&self) -> bool {
        let places = self.specs.iter().filter(|s| s.kind == ArgKind::Place).count();
        !self.specs.iter().any(|s| s.kind == ArgKind::Rest) && self.places.len() >= places
    }

    /// The text given for argument `i`, by keyword or by place.
    pub fn text(&mut self, i: usize) -> Option<ArgText> {
        let spec = &self.specs[i];
        // The last of several wins, as in Click.
        if let Some(at) = self.keywords.iter().rposition(|(k, _)| *k == spec.name) {
            let (_, text) = self.keywords.swap_remove(at);
            self.keywords.retain(|(k, _)| *k != spec.name);
            return Some(text);
        }
        if spec.kind != ArgKind::Place {
            return None;
        }
        self.places.pop_front().filter(|p| !p.text.is_empty())
    }

    /// The value of argument `i` as `parse` reads it, or `default`; records
    /// what is wrong.
    pub fn take<T>(
        &mut self,
        i: usize,
        default: Option<T>,
        parse: impl Fn(&str, &Names) -> Result<T, ArgError>,
    ) -> Option<T> {
        let spec = &self.specs[i];
        let by_keyword = self.keywords.iter().any(|(keyword, _)| *keyword == spec.name);
        match (self.text(i), default) {
            (Some(arg), _) => {
                let value = parse(&arg.text, self.names);
                let unknown = || self.unknown_keyword(&arg).filter(|_| !by_keyword);
                let located = |e: ArgError| e.within(arg.offset, arg.text.len()).at(spec.name);
                value
                    .map_err(|e| unknown().unwrap_or_else(|| located(e)))
                    .map_err(|e| self.errors.push(e))
                    .ok()
            }
            (None, Some(default)) => Some(default),
            (None, None) => {
                self.errors.push(
                    ArgError::new(format!("is missing; it wants {}", spec.syntax))
                        .click("required argument missing")
                        .at(spec.name),
                );
                None
            }
        }
    }

    /// Every place not yet taken.
    pub fn rest<T: FromArg>(&mut self, i: usize) -> Option<Vec<T>> {
        let name = self.specs[i].name;
        let (mut values, before) = (Vec::new(), self.errors.len());
        for (n, arg) in std::mem::take(&mut self.places).into_iter().enumerate() {
            match T::from_arg(&arg.text, self.names) {
                Ok(value) => values.push(value),
                Err(e) => {
                    let e = e.within(arg.offset, arg.text.len());
                    self.errors.push(e.at(format_args!("{name} {}", n + 1)));
                }
            }
        }
        (self.errors.len() == before).then_some(values)
    }

    /// Records places nobody asked for.
    pub fn finish(&mut self) {
        let extra: Vec<_> = self.places.drain(..).filter(|p| !p.text.is_empty()).collect();
        for (n, arg) in extra.into_iter().enumerate() {
            if let Some(error) = self.unknown_keyword(&arg) {
                self.errors.push(error);
                continue;
            }
            let error = ArgError::new(format!("`{}` is one argument too many", arg.text))
                .within(arg.offset, arg.text.len());
            self.errors.push(if n == 0 {
                error.click("too many arguments")
            } else {
                error.click("")
            });
        }
    }
}

fn is_keyword(word: &str) -> bool {
    word.len() > 1
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}
