//! Up to 256 masks, and the probes that choose among them.

use super::choose::{Candidate, choose};
use super::common::Common;
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
#[derive(Clone)]
struct Held {
    shape: Shape,
    groups: usize,
    /// The bits that all groups have in common, and one of these.
    common: (Key, Key),
}

/// A filter that does not know all groups yet.
#[derive(Clone)]
struct Growing {
    filter: Filter,
    /// The first group that it does not know.
    next: usize,
}

/// Masks, and which of them are worth a lookup.
#[derive(Clone)]
pub(super) struct Block {
    /// Which of the blocks it is.
    number: usize,
    held: Vec<Held>,
    /// What the groups of each have in common.
    commons: Vec<Common>,
    /// Masks that have groups.
    active: Bits,
    /// The same, with what their groups have in common.
    used: Vec<Common>,
    filter: Filter,
    growing: Option<Growing>,
    groups: usize,
    /// Groups that came or went since the filter was chosen.
    changes: usize,
    /// Whether nothing is chosen until all is settled.
    waits: bool,
}

impl Block {
    pub(super) fn new(number: usize) -> Block {
        Block {
            number,
            held: Vec::new(),
            commons: Vec::new(),
            used: Vec::new(),
            active: Bits::default(),
            filter: Filter::default(),
            growing: None,
            groups: 0,
            changes: 0,
            waits: false,
        }
    }

    /// Chooses nothing until it settles.
    pub(super) fn wait(&mut self) {
        self.waits = true;
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
        let commons = (self.commons.capacity() + self.used.capacity()) * size_of::<Common>();
        self.held.capacity() * size_of::<Held>() + commons + self.filter.memory() + growing
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
                self.held.push(Held { shape, groups: 0, common: Default::default() });
                self.commons.push(Common::default());
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
        let Held { shape, groups: own, common } = &mut self.held[place];
        *own += 1;
        if *own == 1 {
            *common = (shape.mask, *value);
            filter::set(&mut self.active, place);
            self.commons[place] = Common::of(place as u8, &shape.mask, value);
            self.used.push(self.commons[place]);
        } else if self.commons[place].with(common, value) {
            let all = self.used.iter_mut().filter(|it| usize::from(it.place) == place);
            all.for_each(|it| *it = self.commons[place]);
        }
        let shape = *shape;
        self.groups += 1;
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
            self.used.retain(|it| usize::from(it.place) != place);
        }
        self.changed(groups);
    }

    fn changed(&mut self, groups: &Groups) {
        self.changes += 1;
        if self.waits {
            return;
        }
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
            true => choose(self.number, &self.candidates(), cells, groups),
            false => Vec::new(),
        };
        let mut filter = Filter::new(&parts, self.held.len(), cells);
        for (place, held) in self.held.iter().enumerate() {
            filter.add_shape(place, &held.shape);
        }
        self.growing = Some(Growing { filter, next: 0 });
    }

    fn candidates<'a>(&'a self) -> Vec<Candidate<'a>> {
        let used = self.held.iter().enumerate().filter(|(_, held)| held.groups > 0);
        let candidate = |(place, held): (usize, &'a Held)| {
            let (shape, groups, common) = (&held.shape, held.groups, self.commons[place]);
            Candidate { place, shape, groups, common }
        };
        used.map(candidate).collect()
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
        self.waits = false;
        self.choose(groups);
        self.grow(groups, usize::MAX);
    }

    /// Puts the places of the masks that may have a rule for this key into `wanted`; how many
    /// there are.
    #[inline]
    pub(super) fn wanted(&self, key: &Key, wanted: &mut [u8; MASKS]) -> usize {
        let mut count = 0;
        let mut add = |common: &Common| {
            // Without a jump, that nobody could foretell.
            wanted[count % MASKS] = common.place;
            count += usize::from(common.holds(key));
        };
        if self.filter.len() == 0 {
            self.used.iter().for_each(add);
            return count;
        }
        let pass = self.filter.pass(self.active, key);
        for (commons, mut bits) in self.commons.chunks(u64::BITS as usize).zip(pass) {
            while let Some(common) = commons.get(bits.trailing_zeros() as usize) {
                add(common);
                bits &= bits - 1;
            }
        }
        count
    }
}
