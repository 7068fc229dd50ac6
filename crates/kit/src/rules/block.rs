//! Up to 256 masks, and the probes that choose among them.

use super::choose::{Candidate, choose};
use super::filter::{self, Bits, Filter};
use super::groups::Groups;
use super::index::Number;
use super::shape::Shape;
use super::{Key, Mask};

/// Masks in a block: as many as bits in what a probe has of a value.
pub(super) const MASKS: usize = 256;
/// So many masks are looked up faster than ruled out.
const FEW: usize = 3;
/// Groups that a change enters into a new filter: some microseconds.
const STEP: usize = 64;

/// A mask and how many groups it has.
struct Held {
    shape: Shape,
    groups: usize,
}

/// A filter that does not know all groups yet.
struct Growing {
    filter: Filter,
    /// The first group that it does not know.
    next: usize,
}

/// Masks, and which of them are worth a lookup.
pub(super) struct Block {
    /// Which of the blocks it is.
    number: usize,
    held: Vec<Held>,
    /// Masks that have groups.
    active: Bits,
    filter: Filter,
    growing: Option<Growing>,
    groups: usize,
    /// Groups that came or went since the filter was chosen.
    changes: usize,
}

impl Block {
    pub(super) fn new(number: usize) -> Block {
        Block {
            number,
            held: Vec::new(),
            active: Bits::default(),
            filter: Filter::default(),
            growing: None,
            groups: 0,
            changes: 0,
        }
    }

    #[inline]
    pub(super) fn shape(&self, place: usize) -> &Shape {
        &self.held[place].shape
    }

    pub(super) fn masks(&self) -> impl Iterator<Item = Mask> {
        let used = self.held.iter().filter(|held| held.groups > 0);
        used.map(|held| Mask { mask: held.shape.mask, values: held.groups })
    }

    pub(super) fn probes(&self) -> usize {
        self.filter.len()
    }

    pub(super) fn memory(&self) -> usize {
        let growing = self.growing.as_ref().map_or(0, |growing| growing.filter.memory());
        self.held.capacity() * size_of::<Held>() + self.filter.memory() + growing
    }

    /// A place for another mask.
    pub(super) fn room(&mut self) -> Option<usize> {
        if self.held.len() < MASKS {
            return Some(self.held.len());
        }
        self.held.iter().position(|held| held.groups == 0)
    }

    /// Takes a mask to a place that has room; gives back the one that was there.
    pub(super) fn take(&mut self, place: usize, shape: Shape) -> Option<Key> {
        if !self.filters().all(|filter| filter.knows(place)) {
            // It would always pass: the next change is to choose.
            self.changes += self.groups;
        }
        self.filters().for_each(|filter| filter.add_shape(place, &shape));
        match self.held.get_mut(place) {
            Some(held) => Some(std::mem::replace(&mut held.shape, shape).mask),
            None => {
                self.held.push(Held { shape, groups: 0 });
                None
            }
        }
    }

    fn filters(&mut self) -> impl Iterator<Item = &mut Filter> {
        let growing = self.growing.as_mut().map(|growing| &mut growing.filter);
        std::iter::once(&mut self.filter).chain(growing)
    }

    /// A group came to the mask at this place.
    pub(super) fn added(&mut self, place: usize, value: &Key, groups: &Groups) {
        let shape = self.held[place].shape;
        self.held[place].groups += 1;
        self.groups += 1;
        filter::set(&mut self.active, place);
        self.filters().for_each(|filter| filter.add(place, &shape, value));
        self.changed(groups);
    }

    /// A group went from the mask at this place.
    pub(super) fn removed(&mut self, place: usize, groups: &Groups) {
        let held = &mut self.held[place];
        held.groups -= 1;
        self.groups -= 1;
        if held.groups == 0 {
            filter::clear(&mut self.active, place);
        }
        self.changed(groups);
    }

    fn changed(&mut self, groups: &Groups) {
        self.changes += 1;
        if self.growing.is_some() {
            self.grow(groups, STEP);
        } else if self.changes > self.groups / 2 + 8 {
            self.choose(groups);
            self.grow(groups, STEP);
        }
    }

    /// Begins a new filter; the old one does until that knows all groups.
    fn choose(&mut self, groups: &Groups) {
        self.changes = 0;
        let most = self.held.iter().map(|held| held.groups).max().unwrap_or_default();
        let cells = filter::cells(most);
        let parts = match filter::count(&self.active) as usize > FEW {
            true => choose(self.number, &self.candidates_of_probes(), cells, groups),
            false => Vec::new(),
        };
        let mut filter = Filter::new(&parts, self.held.len(), cells);
        for (place, held) in self.held.iter().enumerate() {
            filter.add_shape(place, &held.shape);
        }
        self.growing = Some(Growing { filter, next: 0 });
    }

    fn candidates_of_probes(&self) -> Vec<Candidate<'_>> {
        let used = self.held.iter().enumerate().filter(|(_, held)| held.groups > 0);
        used.map(|(place, Held { shape, groups })| Candidate { place, shape, groups: *groups })
            .collect()
    }

    /// Enters up to so many groups into the new filter.
    fn grow(&mut self, groups: &Groups, most: usize) {
        let Some(mut growing) = self.growing.take() else { return };
        let all = groups.places();
        let end = growing.next.saturating_add(most).min(all);
        // Without probes there is nothing to enter.
        let first = if growing.filter.len() == 0 { all } else { growing.next };
        for number in first..end {
            let shape = groups.shape_at(number).map(|shape| shape as usize);
            if let Some(shape) = shape.filter(|shape| shape / MASKS == self.number) {
                let (place, of) = (shape % MASKS, self.shape(shape % MASKS));
                growing.filter.add(place, of, &groups.value(number as Number, of));
            }
        }
        growing.next = end;
        match end.max(first) == all {
            true => self.filter = growing.filter,
            false => self.growing = Some(growing),
        }
    }

    /// Chooses anew and to the end.
    pub(super) fn settle(&mut self, groups: &Groups) {
        self.choose(groups);
        self.grow(groups, usize::MAX);
    }

    /// The masks that may have a rule for this key.
    #[inline]
    pub(super) fn candidates(&self, key: &Key) -> Bits {
        self.filter.pass(self.active, key)
    }
}
