//! Data-flow facts about the packet on a path through a program, and what they imply.

use super::pattern::{Base, Test};

/// How many facts of each kind are kept; more would cost compile time and rarely decide a test.
const MAX_FACTS: usize = 12;

/// The fact that a masked word exists and is within a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RangeFact {
    test: Test,
}

/// All facts on one edge. An empty value has no facts and is always true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The minimum length of each header.
    length: [u16; 4],
    ranges: Vec<RangeFact>,
    /// Tests that are false, or that the packet is too short for.
    failed: Vec<Test>,
}

/// The known bits of one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownBits {
    pub(crate) mask: u32,
    pub(crate) value: u32,
}

impl Facts {
    /// The known bits of the word that `test` reads.
    pub(crate) fn known_bits(&self, test: &Test) -> KnownBits {
        let mut known = KnownBits::default();
        for RangeFact { test: fact } in &self.ranges {
            if fact.same_word(test) && fact.is_equality() {
                known.mask |= fact.mask;
                known.value |= fact.lo;
            }
        }
        known
    }

    fn has(&self, base: Base, bytes: u16) -> bool {
        self.length[base as usize] >= bytes
    }

    /// The branch that `test` takes, if the facts decide it. Short packets take the yes branch if
    /// `short_yes`.
    pub(crate) fn decide(&self, test: &Test, short_yes: bool) -> Option<bool> {
        let there = self.has(test.base, test.needs());
        match self.matches(test) {
            Some(answer) if there || answer == short_yes => Some(answer),
            None if there || !short_yes => {
                let ruled_out = self.failed.iter().any(|failed| implies(test, failed));
                ruled_out.then_some(false)
            }
            _ => None,
        }
    }

    /// Whether the word, if the packet has it, passes the test.
    fn matches(&self, test: &Test) -> Option<bool> {
        let known = self.known_bits(test);
        let (bits, free) = (known.value & test.mask, !known.mask & test.mask);
        if test.is_equality() && (bits ^ test.lo) & known.mask & test.mask != 0 {
            return Some(false);
        }
        let certain = range_answer(bits, bits | free, test);
        certain.or_else(|| {
            let mut same = self.ranges.iter().filter(|w| w.test.mask == test.mask);
            same.find(|w| w.test.same_word(test))
                .and_then(|w| range_answer(w.test.lo, w.test.hi, test))
        })
    }

    /// Adds the facts that follow from taking a branch.
    pub(crate) fn assume(&mut self, test: &Test, short_yes: bool, branch: bool) {
        let needs = test.needs();
        let length = &mut self.length[test.base as usize];
        if branch != short_yes {
            *length = (*length).max(needs);
        }
        if *length < needs && !(branch || short_yes) {
            self.fail(*test);
        } else if *length >= needs && branch {
            self.narrow(*test, test.lo, test.hi);
        } else if *length >= needs {
            self.fail(*test);
            self.exclude(test);
        }
    }

    fn fail(&mut self, test: Test) {
        if self.failed.contains(&test) {
            return;
        }
        if self.failed.len() == MAX_FACTS {
            self.failed.remove(0);
        }
        self.failed.push(test);
    }

    /// A false range test that touches an end of the known range leaves a smaller range.
    fn exclude(&mut self, test: &Test) {
        let same = self.ranges.iter().find(|w| w.test.mask == test.mask && w.test.same_word(test));
        let (lo, hi) = same.map_or((0, test.mask), |w| (w.test.lo, w.test.hi));
        if test.lo <= lo && test.hi < hi {
            self.narrow(*test, test.hi + 1, hi);
        } else if test.hi >= hi && test.lo > lo {
            self.narrow(*test, lo, test.lo - 1);
        }
    }

    fn narrow(&mut self, test: Test, mut lo: u32, mut hi: u32) {
        // A single bit has only two values.
        if test.mask.is_power_of_two() {
            lo = if lo > 0 { test.mask } else { 0 };
            hi = if hi < test.mask { 0 } else { test.mask };
        }
        let same = |w: &&mut RangeFact| w.test.mask == test.mask && w.test.same_word(&test);
        if let Some(old) = self.ranges.iter_mut().find(same) {
            old.test.lo = old.test.lo.max(lo);
            old.test.hi = old.test.hi.min(hi);
            return;
        }
        if self.ranges.len() == MAX_FACTS {
            self.ranges.remove(0);
        }
        self.ranges.push(RangeFact { test: Test { lo, hi, ..test } });
    }

    /// Keeps only the facts that `other` has too.
    pub(crate) fn meet(&mut self, other: &Facts) {
        for (length, other_length) in self.length.iter_mut().zip(other.length) {
            *length = (*length).min(other_length);
        }
        self.ranges.retain_mut(|w| {
            let same = |o: &&RangeFact| o.test.mask == w.test.mask && o.test.same_word(&w.test);
            let Some(o) = other.ranges.iter().find(same) else { return false };
            w.test.lo = w.test.lo.min(o.test.lo);
            w.test.hi = w.test.hi.max(o.test.hi);
            true
        });
        self.failed.retain(|f| other.failed.contains(f));
    }
}

/// The result of `test` for all masked words between `lo` and `hi`, if it is the same.
fn range_answer(lo: u32, hi: u32, test: &Test) -> Option<bool> {
    if hi < test.lo || lo > test.hi {
        Some(false)
    } else if lo >= test.lo && hi <= test.hi {
        Some(true)
    } else {
        None
    }
}

/// Whether every packet that passes `test` passes `wider`.
fn implies(test: &Test, wider: &Test) -> bool {
    if !test.same_word(wider) {
        return false;
    }
    if test.mask == wider.mask {
        return wider.lo <= test.lo && test.hi <= wider.hi;
    }
    test.is_equality() && wider.mask & !test.mask == 0 && wider.accepts(test.lo)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(mask: u32, lo: u32, hi: u32) -> Test {
        Test { base: Base::Network, offset: 8, mask, lo, hi }
    }

    #[test]
    fn a_passed_test_decides_equal_and_contradicting_tests() {
        let mut facts = Facts::default();
        facts.assume(&test(0xFF00, 0x600, 0x600), false, true);
        assert_eq!(facts.decide(&test(0xFF00, 0x600, 0x600), false), Some(true));
        assert_eq!(facts.decide(&test(0xFFFF, 0x700, 0x700), false), Some(false));
        assert_eq!(facts.decide(&test(0xFFFF, 0x601, 0x601), false), None);
        // The last byte may be missing, and then this test would be true.
        assert_eq!(facts.decide(&test(0xFFFF, 0x700, 0x700), true), None);
    }

    #[test]
    fn a_failed_test_decides_narrower_ones() {
        let mut facts = Facts::default();
        facts.assume(&test(0xFFFF, 10, 20), false, false);
        assert_eq!(facts.decide(&test(0xFFFF, 12, 13), false), Some(false));
        assert_eq!(facts.decide(&test(0xFFFF, 9, 13), false), None);
        assert_eq!(facts.decide(&test(0xFFFF, 12, 13), true), None);
    }

    #[test]
    fn ranges_close_from_both_ends() {
        let mut facts = Facts::default();
        facts.assume(&test(0xFFFF, 0, 1023), true, false);
        facts.assume(&test(0xFFFF, 2048, 0xFFFF), false, false);
        assert_eq!(facts.decide(&test(0xFFFF, 1024, 2047), false), Some(true));
        facts.assume(&test(0x4, 0, 0), false, false);
        assert_eq!(facts.decide(&test(0x4, 4, 4), true), Some(true));
    }

    #[test]
    fn meet_keeps_the_common_facts() {
        let (mut a, mut b) = (Facts::default(), Facts::default());
        a.assume(&test(0xFF, 6, 6), false, true);
        b.assume(&test(0xFF, 17, 17), false, true);
        a.meet(&b);
        assert_eq!(a.decide(&test(0xFF, 3, 3), false), Some(false));
        assert_eq!(a.decide(&test(0xFF, 6, 6), false), None);
        b.meet(&Facts::default());
        assert_eq!(b, Facts::default());
    }
}
