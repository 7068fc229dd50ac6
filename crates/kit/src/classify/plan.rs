//! Which bits of packets make up the keys of a set of patterns.

use super::flat::Load;
use super::keys::{Keys, Outcome, Part, Place, There};
use super::pattern::{Base, Expr, Pattern, Test};
use super::prefixes::Bits;
use crate::rules::{Key, WORDS};
use rapidhash::RapidHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How a pattern wants a test to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// The packet passes.
    Yes,
    /// It is long enough, and does not pass.
    No,
    /// It is too short, or does not pass.
    NotYes,
    /// It is too short, or passes.
    NotNo,
}

impl Want {
    pub(crate) fn new(negated: bool, holds: bool) -> Want {
        match (negated, holds) {
            (false, true) => Want::Yes,
            (true, true) => Want::No,
            (false, false) => Want::NotYes,
            (true, false) => Want::NotNo,
        }
    }
}

/// Tests whose outcome is a bit of the key, at most.
const OUTCOMES: usize = 8;
/// One use of a test for so many patterns makes it worth a bit, whose finding out every packet
/// costs, and with which there are more masks.
const OFTEN: u64 = 32;
/// Words of packets for which there is room to look, the most used.
const WORDS_TRIED: usize = 64;
/// Words of a key that have bits of the packet; what is left over is for what is or is not.
const FOR_PARTS: usize = WORDS - 1;

/// For each node of a pattern, whether its truth and its falsehood are asked for.
pub(crate) fn asked_for(pattern: &Pattern) -> Vec<[bool; 2]> {
    let mut asked = vec![[false; 2]; pattern.nodes.len()];
    if let Some(root) = asked.last_mut() {
        root[0] = true;
    }
    for (at, expr) in pattern.nodes.iter().enumerate().rev() {
        let [truth, falsehood] = asked[at];
        let mut ask = |id: u32, of: [bool; 2]| {
            let asked = &mut asked[id as usize];
            *asked = [asked[0] || of[0], asked[1] || of[1]];
        };
        match *expr {
            Expr::Const(_) | Expr::Test { .. } => {}
            Expr::Not(a) => ask(a, [falsehood, truth]),
            Expr::And(a, b) | Expr::Or(a, b) => {
                ask(a, [truth, falsehood]);
                ask(b, [truth, falsehood]);
            }
            Expr::Cond(a, b, c) => {
                ask(a, [true, true]);
                ask(b, [truth, falsehood]);
                ask(c, [truth, falsehood]);
            }
        }
    }
    asked
}

/// How often a test is wanted to end in which way.
#[derive(Clone, Copy, Default)]
struct Uses([u64; 4]);

impl Uses {
    fn of(&self, wants: [Want; 2]) -> bool {
        wants.iter().any(|&want| self.0[want as usize] > 0)
    }

    fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// How often more than one masked word has what is wanted.
    fn hard(&self, test: &Test) -> u64 {
        let [yes, _, _, not_no] = self.0;
        self.sum() - if test.is_equality() { yes + not_no } else { 0 }
    }
}

/// The keys of a set of patterns, and where in them tests find their bits.
pub(crate) struct Plan {
    pub(crate) keys: Keys,
    /// The part that has a word, and how many bits of the part are below it.
    words: RapidHashMap<(Base, u16), (usize, u32)>,
    outcomes: RapidHashMap<Test, usize>,
    theres: RapidHashMap<(Base, u16), Place>,
}

impl Plan {
    pub(crate) fn new<'a>(patterns: impl ExactSizeIterator<Item = &'a Pattern>) -> Plan {
        let often = patterns.len() as u64 / OFTEN;
        let tests = count(patterns);
        let bits = chosen(&tests, often);
        let mut room = Room { used: [0; WORDS] };
        let wanted = by_use(&tests, &bits).into_iter();
        let mut chosen: Vec<(Part, Wanted)> =
            wanted.filter_map(|wanted| Some((wanted.part(&mut room)?, wanted))).collect();
        chosen.sort_by_key(|(part, _)| part.base);
        let mut words = RapidHashMap::default();
        for (at, (_, wanted)) in chosen.iter().enumerate() {
            words.extend(wanted.words.iter().map(|&(word, below)| (word, (at, below))));
        }
        let parts = chosen.into_iter().map(|it| it.0).collect();
        let mut outcomes = Vec::new();
        for test in &bits {
            let uses = &tests[test];
            let mut bit = |is_used: bool| is_used.then(|| room.take(1, WORDS)).flatten();
            let yes = bit(uses.of([Want::Yes, Want::NotYes]));
            let no = bit(uses.of([Want::No, Want::NotNo]));
            outcomes.push(Outcome::new(test, yes, no));
        }
        let mut lengths: Vec<(Base, u16)> =
            tests.keys().filter(|test| !bits.contains(test)).map(length).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let theres: RapidHashMap<(Base, u16), Place> =
            lengths.into_iter().filter_map(|at| Some((at, room.take(1, WORDS)?))).collect();
        let there = |(&(base, bytes), &place): (&(Base, u16), &Place)| There { base, bytes, place };
        Plan {
            keys: Keys::new(parts, outcomes, theres.iter().map(there).collect()),
            words,
            outcomes: bits.into_iter().enumerate().map(|(at, test)| (test, at)).collect(),
            theres,
        }
    }

    /// The bit of a test's outcome, if it has one of its own.
    pub(crate) fn outcome(&self, test: &Test) -> Option<&Outcome> {
        self.outcomes.get(test).map(|&at| &self.keys.outcomes[at])
    }

    /// Bits of the word that a test looks at as those of a key: mask and value.
    pub(crate) fn bits(&self, test: &Test, (mask, value): Bits) -> Option<(Key, Key)> {
        let &(part, below) = self.words.get(&(test.base, test.offset))?;
        let part = &self.keys.parts[part];
        let shift = Load::new(test).1;
        let key = |bits: u32| {
            let mut key = Key::default();
            key.0[part.word] = part.turned(u64::from(bits << shift) << below);
            key
        };
        Some((key(mask), key(value)))
    }

    /// The bit that says that what a test looks at is there.
    pub(crate) fn there(&self, test: &Test) -> Option<Place> {
        self.theres.get(&length(test)).copied()
    }
}

/// How long a packet has to be for a test.
fn length(test: &Test) -> (Base, u16) {
    let load = Load::new(test).0;
    (load.base, load.length())
}

/// How often tests are used.
fn count<'a>(patterns: impl Iterator<Item = &'a Pattern>) -> RapidHashMap<Test, Uses> {
    let mut tests: RapidHashMap<Test, Uses> = RapidHashMap::default();
    for pattern in patterns {
        for (expr, asked) in pattern.nodes.iter().zip(asked_for(pattern)) {
            let Expr::Test { test, negated } = *expr else { continue };
            let uses = tests.entry(test).or_default();
            for (asked, holds) in asked.into_iter().zip([true, false]) {
                uses.0[Want::new(negated, holds) as usize] += u64::from(asked);
            }
        }
    }
    tests
}

/// The tests that become bits of their own: those that would be several rows of bits else,
/// and that many patterns have.
fn chosen(tests: &RapidHashMap<Test, Uses>, often: u64) -> Vec<Test> {
    let hard = tests.iter().map(|(test, uses)| (uses.hard(test), *test));
    let mut chosen: Vec<(u64, Test)> = hard.filter(|(hard, _)| *hard > often).collect();
    let order = |test: &Test| (test.base, test.offset, test.mask, test.lo, test.hi);
    chosen.sort_by_key(|(hard, test)| (Reverse(*hard), order(test)));
    chosen.truncate(OUTCOMES);
    chosen.into_iter().map(|(_, test)| test).collect()
}

/// Eight bytes of which keys are to have bits.
struct Wanted {
    base: Base,
    offset: u16,
    mask: u64,
    uses: u64,
    /// The words that these are of, and how many bits are below each.
    words: Vec<((Base, u16), u32)>,
}

impl Wanted {
    fn width(&self) -> u32 {
        u64::BITS - self.mask.leading_zeros() - self.mask.trailing_zeros()
    }

    fn part(&self, room: &mut Room) -> Option<Part> {
        let Place { word, shift } = room.take(self.width(), FOR_PARTS)?;
        let turn = (u64::BITS + self.mask.trailing_zeros() - shift) % u64::BITS;
        Some(Part { base: self.base, offset: self.offset, mask: self.mask, word, turn })
    }
}

/// The words of all tests that are no bits of their own, neighbours together, the most used
/// and widest first.
fn by_use(tests: &RapidHashMap<Test, Uses>, bits: &[Test]) -> Vec<Wanted> {
    let mut words: BTreeMap<(Base, u16), (Test, u64)> = BTreeMap::new();
    for (test, uses) in tests.iter().filter(|(test, _)| !bits.contains(test)) {
        let (all, sum) = words.entry((test.base, test.offset)).or_insert((*test, 0));
        all.mask |= test.mask;
        *sum += uses.sum();
    }
    // The widest words come first, each with the wider of its neighbours.
    let mut left: Vec<(Load, (Base, u16), u64)> =
        words.into_iter().map(|(at, (test, uses))| (Load::new(&test).0, at, uses)).collect();
    left.sort_by_key(|(_, at, uses)| (Reverse(*uses), *at));
    left.truncate(WORDS_TRIED);
    left.sort_by_key(|(load, ..)| Reverse(load.mask.count_ones()));
    let mut wanted: Vec<Wanted> = Vec::new();
    while !left.is_empty() {
        let (load, at, uses) = left.remove(0);
        let is_near = |(it, ..): &(Load, (Base, u16), u64)| {
            it.base == load.base && it.offset.abs_diff(load.offset) == 4
        };
        let near = left.iter().position(is_near).map(|near| left.remove(near));
        // Alone, a word comes last, so that nothing is read that need not be there.
        let first = near.map_or(load.offset.saturating_sub(4), |it| it.0.offset.min(load.offset));
        let mut both =
            Wanted { base: load.base, offset: first, mask: 0, uses: 0, words: Vec::new() };
        for (load, at, uses) in std::iter::once((load, at, uses)).chain(near) {
            let below = 32 - 8 * u32::from(load.offset - first);
            both.mask |= u64::from(load.mask) << below;
            both.uses += uses;
            both.words.push((at, below));
        }
        wanted.push(both);
    }
    wanted.sort_by_key(|it| (Reverse(it.uses), Reverse(it.width()), it.base, it.offset));
    wanted
}

/// Bits of a key that are still free: those above the used ones of each word.
struct Room {
    used: [u32; WORDS],
}

impl Room {
    /// Bits side by side in one of the first words.
    fn take(&mut self, width: u32, words: usize) -> Option<Place> {
        let fits = |used: &u32| used + width <= u64::BITS;
        let word = self.used.iter().take(words).position(fits)?;
        let shift = self.used[word];
        self.used[word] += width;
        Some(Place { word, shift })
    }
}
