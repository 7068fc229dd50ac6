//! Packets as keys of [`rules`](crate::rules): the bits that patterns look at, side by side.

use super::flat::{Load, Words};
use super::listing::listed;
use super::pattern::{Base, Test};
use crate::rules::{Key, WORDS};
use std::fmt;

/// Bits of a word of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) word: usize,
    pub(crate) shift: u32,
}

impl Place {
    /// Sets these bits of a key, which are zero.
    #[inline(always)]
    fn put(self, key: &mut Key, bits: u32) {
        key.0[self.word % WORDS] |= u64::from(bits) << self.shift;
    }

    /// A key that has nothing but these bits.
    pub(crate) fn key(self, bits: u32) -> Key {
        let mut key = Key::default();
        self.put(&mut key, bits);
        key
    }
}

/// Bits of eight bytes of the packet, as they lie there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) base: Base,
    /// The first byte.
    pub(crate) offset: u16,
    pub(crate) mask: u64,
    /// The word of the key that has them, turned so far to the right.
    pub(crate) word: usize,
    pub(crate) turn: u32,
}

impl Part {
    #[inline(always)]
    fn put(&self, key: &mut Key, bits: u64) {
        key.0[self.word % WORDS] |= self.turned(bits);
    }

    #[inline(always)]
    pub(crate) fn turned(&self, bits: u64) -> u64 {
        (bits & self.mask).rotate_right(self.turn)
    }

    /// The bits, in which bytes beyond the packet's end are zero.
    fn padded<W: Words>(&self, words: &W) -> u64 {
        let header = words.header(self.base).get(usize::from(self.offset)..);
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(header.unwrap_or_default()).for_each(|(to, from)| *to = *from);
        u64::from_be_bytes(bytes)
    }
}

/// What a test says, a bit each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    load: Load,
    lo: u32,
    span: u32,
    /// That the packet passes it.
    pub(crate) yes: Option<Place>,
    /// That the packet is long enough for it, and does not pass.
    pub(crate) no: Option<Place>,
}

impl Outcome {
    pub(crate) fn new(test: &Test, yes: Option<Place>, no: Option<Place>) -> Outcome {
        let (load, shift) = Load::new(test);
        Outcome { load, lo: test.lo << shift, span: (test.hi - test.lo) << shift, yes, no }
    }

    #[inline(always)]
    fn put(&self, key: &mut Key, word: u32) {
        let passes = word.wrapping_sub(self.lo) <= self.span;
        if let Some(yes) = self.yes {
            yes.put(key, passes.into());
        }
        if let Some(no) = self.no {
            no.put(key, (!passes).into());
        }
    }
}

/// That a packet has so many bytes from a header on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct There {
    pub(crate) base: Base,
    pub(crate) bytes: u16,
    pub(crate) place: Place,
}

/// Instructions of a key, as callgrind counts them.
const BASE: u32 = 50;
/// Those of a part of it.
const PART: u32 = 25;
/// Those of an outcome.
const OUTCOME: u32 = 24;
/// No key takes less.
pub(crate) const LEAST: u32 = BASE + PART;

/// What of a packet is which bits of its key.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    pub(crate) parts: Vec<Part>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) theres: Vec<There>,
    /// The headers that are looked at: how many bytes a packet has that has everything, and
    /// how many parts are of them, which are in that order.
    headers: Vec<(Base, usize, usize)>,
    /// The bits of all `theres`.
    all: Key,
}

impl Keys {
    /// The parts are by header.
    pub(crate) fn new(parts: Vec<Part>, outcomes: Vec<Outcome>, theres: Vec<There>) -> Keys {
        let mut headers = Vec::new();
        for base in [Base::Packet, Base::Link, Base::Network, Base::Transport] {
            // Words are read as a whole, even if their last bytes do not matter.
            let here = parts.iter().filter(|it| it.base == base);
            let of_parts = here.clone().map(|it| it.offset + 8);
            let of_outcomes = outcomes.iter().filter(|it| it.load.base == base);
            let ends = of_parts.chain(of_outcomes.map(|it| it.load.offset + 4));
            if let Some(bytes) = ends.max() {
                headers.push((base, usize::from(bytes), here.count()));
            }
        }
        debug_assert!(parts.is_sorted_by_key(|it| it.base));
        let mut all = Key::default();
        theres.iter().for_each(|it| it.place.put(&mut all, 1));
        Keys { parts, outcomes, theres, headers, all }
    }

    /// A packet's key.
    #[inline]
    pub(crate) fn of<W: Words>(&self, words: &W) -> Key {
        let mut key = self.all;
        let mut parts = &self.parts[..];
        for &(base, length, count) in &self.headers {
            let bytes = words.bytes(base);
            if !words.are(bytes, length) {
                return self.of_short(words);
            }
            let Some((here, rest)) = parts.split_at_checked(count) else { break };
            for part in here {
                part.put(&mut key, words.long(bytes, base, part.offset).unwrap_or_default());
            }
            parts = rest;
        }
        for outcome in &self.outcomes {
            outcome.put(&mut key, outcome.load.whole(words));
        }
        key
    }

    /// The key of a packet that lacks some of what patterns look at.
    #[cold]
    fn of_short<W: Words>(&self, words: &W) -> Key {
        let mut key = Key::default();
        for part in &self.parts {
            part.put(&mut key, part.padded(words));
        }
        let has = |base, bytes: u16| words.length(base) >= usize::from(bytes);
        for outcome in self.outcomes.iter().filter(|it| has(it.load.base, it.load.length())) {
            outcome.put(&mut key, outcome.load.padded(words));
        }
        for there in self.theres.iter().filter(|it| has(it.base, it.bytes)) {
            there.place.put(&mut key, 1);
        }
        key
    }

    /// How many instructions a key takes, about.
    pub(crate) fn cost(&self) -> u32 {
        BASE + PART * self.parts.len() as u32 + OUTCOME * self.outcomes.len() as u32
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Part { base, offset, mask, word, turn } in &self.parts {
            let at = listed(*base) + usize::from(*offset);
            writeln!(f, "key {word} {at}%{mask:016x} turned by {turn}")?;
        }
        for Outcome { load, lo, span, yes, no } in &self.outcomes {
            let range = match span {
                0 => format!("{lo:08x}"),
                _ => format!("{lo:08x}-{:08x}", lo + span),
            };
            for (place, word) in [(yes, "yes"), (no, "no")] {
                if let Some(place) = place {
                    writeln!(f, "key {place} {}/{range}%{:08x} {word}", at(load), load.mask)?;
                }
            }
        }
        for There { base, bytes, place } in &self.theres {
            writeln!(f, "key {place} {} there", listed(*base) + usize::from(*bytes) - 1)?;
        }
        Ok(())
    }
}

/// Where a word lies, as Click counts.
fn at(load: &Load) -> usize {
    listed(load.base) + usize::from(load.offset)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit {}", self.word, self.shift)
    }
}
