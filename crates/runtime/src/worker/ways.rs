//! The ways of packets without descriptors from a source, and the choice among them.

use crate::graph::bypass::{BypassPath, PassedElement};

/// Packets after which it is looked whether another way is that of more.
const PACKETS: usize = 16;
/// Loans in a row that a way does not take before the next one is tried.
const LOANS: u32 = 64;

/// The ways of a source's packets. A loan has one of them: if more of the last packets take another way than stay on it, the
/// next loan has the other one.
pub(crate) struct BypassWays {
    /// At least one.
    paths: Vec<BypassPath>,
    /// That of the last loan.
    current: usize,
    strays: Strays,
    /// By way: the strays that could take it.
    candidates: Vec<usize>,
    /// Loans in a row that the current one has not taken.
    refusals: u32,
}

/// Packets of loans that take another way than theirs.
#[derive(Default)]
pub(super) struct Strays {
    packets: usize,
    /// All packets of the loans.
    all: usize,
    /// By where they leave the way.
    groups: Vec<StrayGroup>,
}

/// Packets that leave a way at one place.
struct StrayGroup {
    packets: usize,
    /// The number of the element on the way, and its output.
    place: usize,
    output: u8,
}

impl Strays {
    /// Counts the packets of a burst.
    pub(super) fn count(&mut self, packets: usize) {
        self.all += packets;
    }

    /// Those of these fates that do not go on behind the element at a place of the way.
    #[cold]
    pub(super) fn add(&mut self, place: usize, it: &PassedElement, fates: &[u8]) {
        for &output in fates.iter().filter(|fate| !it.outputs.contains(fate)) {
            self.packets += 1;
            let group = self.groups.iter_mut().find(|it| (it.place, it.output) == (place, output));
            match group {
                Some(group) => group.packets += 1,
                None => self.groups.push(StrayGroup { packets: 1, place, output }),
            }
        }
    }

    fn clear(&mut self) {
        (self.packets, self.all) = (0, 0);
        self.groups.clear();
    }
}

impl BypassWays {
    /// These, at least one.
    pub(crate) fn new(paths: Vec<BypassPath>) -> BypassWays {
        let candidates = vec![0; paths.len()];
        BypassWays { paths, current: 0, strays: Strays::default(), candidates, refusals: 0 }
    }

    /// Forgets the ways past elements of which `is_fit` is not true; `false` if none is left.
    pub(super) fn retain(&mut self, is_fit: impl Fn(usize) -> bool) -> bool {
        self.paths.retain(|path| path.elements().all(&is_fit));
        self.candidates.truncate(self.paths.len());
        self.turn_to(0);
        !self.paths.is_empty()
    }

    /// The way of the last loan.
    pub(super) fn current(&mut self) -> &mut BypassPath {
        &mut self.paths[self.current]
    }

    /// Begins a loan.
    #[inline]
    pub(super) fn begin(&mut self) -> (&mut BypassPath, &mut Strays) {
        if self.strays.all >= PACKETS {
            let stay = self.strays.all - self.strays.packets;
            if self.strays.packets > stay {
                self.choose(stay);
            }
            self.strays.clear();
        }
        (&mut self.paths[self.current], &mut self.strays)
    }

    /// Ends a loan, which the way has taken or not.
    #[inline]
    pub(super) fn end(&mut self, is_taken: bool) {
        self.refusals = if is_taken { 0 } else { self.refusals + 1 };
        if self.refusals == LOANS {
            self.turn_to((self.current + 1) % self.paths.len());
        }
    }

    /// Turns to the way of most strays, if those are more than the packets that `stay`.
    #[cold]
    fn choose(&mut self, stay: usize) {
        self.candidates.fill(0);
        for group in &self.strays.groups {
            if let Some(way) = self.way_of(group) {
                self.candidates[way] += group.packets;
            }
        }
        let most = self.candidates.iter().zip(0..).max_by_key(|(packets, _)| **packets);
        if let Some((_, way)) = most.filter(|(packets, _)| **packets > stay) {
            self.turn_to(way);
        }
    }

    /// The first way that a group of strays could take: the same as theirs up to where they leave it.
    fn way_of(&self, group: &StrayGroup) -> Option<usize> {
        let (before, rest) = self.paths[self.current].past.split_at_checked(group.place)?;
        let element = rest.first()?.element;
        let is_like =
            |a: &PassedElement, b: &PassedElement| a.element == b.element && a.outputs == b.outputs;
        self.paths.iter().position(|path| {
            let Some((its, rest)) = path.past.split_at_checked(group.place) else { return false };
            let leads =
                |it: &PassedElement| it.element == element && it.outputs.contains(&group.output);
            rest.first().is_some_and(leads) && its.iter().zip(before).all(|(a, b)| is_like(a, b))
        })
    }

    fn turn_to(&mut self, way: usize) {
        (self.current, self.refusals) = (way, 0);
        self.strays.clear();
    }
}
