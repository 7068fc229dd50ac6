//! A block of up to 256 masks, with the filter that rules most of them out for a packet.

use super::common::{CommonBits, SoleGroup};
use super::filter::{self, Bits, Filter};
use super::groups::Groups;
use super::index::GroupId;
use super::probe_selection::{Candidate, select_fields};
use super::shape::Shape;
use super::{Key, MaskStats};

/// Masks in a block. A position in the block fits in a byte.
pub(super) const MASKS: usize = 256;
/// With at most this many masks, lookups are faster than a filter.
const MAX_UNFILTERED_MASKS: usize = 3;
/// The same for masks with a single group each, which are compared without lookups: a comparison takes some ten
/// instructions, a probe 14 and a lookup 120.
const MAX_COMPARED_MASKS: usize = 12;
/// Groups that one change enters into a new filter: some microseconds of work.
const GROUPS_PER_CHANGE: usize = 64;

/// A mask and the number of its groups.
#[derive(Clone)]
struct MaskEntry {
    shape: Shape,
    groups: usize,
    /// The bits that all groups have in common, and the value of the first group.
    common: (Key, Key),
}

/// A filter that is being built.
#[derive(Clone)]
struct FilterBuild {
    filter: Filter,
    /// The first group that has not been entered yet.
    next: usize,
}

/// Up to 256 masks, and the filter that tells which of them to look up.
#[derive(Clone)]
pub(super) struct Block {
    /// The number of this block.
    number: usize,
    entries: Vec<MaskEntry>,
    /// The common bits of each mask's groups.
    common_bits: Vec<CommonBits>,
    /// The masks that have groups.
    active: Bits,
    /// The common bits of the active masks only.
    active_bits: Vec<CommonBits>,
    filter: Filter,
    build: Option<FilterBuild>,
    groups: usize,
    /// Groups added and removed since the filter was last built.
    changes: usize,
    /// Whether the filter is built only by `settle`.
    deferred: bool,
}

impl Block {
    pub(super) fn new(number: usize) -> Block {
        Block {
            number,
            entries: Vec::new(),
            common_bits: Vec::new(),
            active_bits: Vec::new(),
            active: Bits::default(),
            filter: Filter::default(),
            build: None,
            groups: 0,
            changes: 0,
            deferred: false,
        }
    }

    /// Builds no filter until `settle`.
    pub(super) fn defer(&mut self) {
        self.deferred = true;
    }

    #[inline]
    pub(super) fn shape(&self, position: usize) -> &Shape {
        &self.entries[position].shape
    }

    /// The masks that have groups, if each has only one, and they are so few that no filter is needed.
    #[inline]
    pub(super) fn sole_groups(&self) -> Option<&[CommonBits]> {
        let is_sole = |common: &CommonBits| common.sole_group() != SoleGroup::None;
        let masks = Some(&self.active_bits[..]).filter(|masks| masks.len() <= MAX_COMPARED_MASKS);
        masks.filter(|masks| masks.iter().all(is_sole))
    }

    /// The common bits of the mask at this position.
    #[inline]
    pub(super) fn common_bits(&self, position: usize) -> &CommonBits {
        &self.common_bits[position]
    }

    pub(super) fn masks(&self) -> impl Iterator<Item = MaskStats> {
        let used = self.entries.iter().filter(|entry| entry.groups > 0);
        used.map(|entries| MaskStats { mask: entries.shape.mask, values: entries.groups })
    }

    pub(super) fn probes(&self) -> usize {
        self.filter.len()
    }

    pub(super) fn memory(&self) -> usize {
        let build = self.build.as_ref().map_or(0, |build| build.filter.memory());
        let common_bits =
            (self.common_bits.capacity() + self.active_bits.capacity()) * size_of::<CommonBits>();
        self.entries.capacity() * size_of::<MaskEntry>()
            + common_bits
            + self.filter.memory()
            + build
    }

    /// A position for another mask.
    pub(super) fn free_position(&mut self) -> Option<usize> {
        if self.entries.len() < MASKS {
            return Some(self.entries.len());
        }
        self.entries.iter().position(|entry| entry.groups == 0)
    }

    /// Puts a mask at a free position and returns the mask that was there.
    pub(super) fn put_mask(&mut self, position: usize, shape: Shape) -> Option<Key> {
        if !self.filters().all(|filter| filter.covers(position)) {
            // The filter would always pass this mask: the next change builds a new one.
            self.changes += self.groups;
        }
        self.filters().for_each(|filter| filter.add_mask(position, &shape));
        match self.entries.get_mut(position) {
            Some(entries) => Some(std::mem::replace(&mut entries.shape, shape).mask),
            None => {
                self.entries.push(MaskEntry { shape, groups: 0, common: Default::default() });
                self.common_bits.push(CommonBits::default());
                None
            }
        }
    }

    fn filters(&mut self) -> impl Iterator<Item = &mut Filter> {
        let build = self.build.as_mut().map(|build| &mut build.filter);
        std::iter::once(&mut self.filter).chain(build)
    }

    /// Counts a new group of the mask at this position.
    pub(super) fn add_group(
        &mut self,
        position: usize,
        (group, value): (GroupId, &Key),
        groups: &Groups,
    ) {
        let MaskEntry { shape, groups: own, common } = &mut self.entries[position];
        *own += 1;
        if *own == 1 {
            *common = (shape.mask, *value);
            filter::set(&mut self.active, position);
            let common_bits = CommonBits::of_group(position as u8, &shape.mask, value, group);
            self.common_bits[position] = common_bits;
            self.active_bits.push(self.common_bits[position]);
        } else if self.common_bits[position].with(common, value) {
            let all = self.active_bits.iter_mut().filter(|it| usize::from(it.position) == position);
            all.for_each(|it| *it = self.common_bits[position]);
        }
        let shape = *shape;
        self.groups += 1;
        self.filters().for_each(|filter| filter.add(position, &shape, value));
        self.count_change(groups);
    }

    /// Counts a removed group of the mask at this position.
    pub(super) fn remove_group(&mut self, position: usize, groups: &Groups) {
        let entries = &mut self.entries[position];
        entries.groups -= 1;
        self.groups -= 1;
        if entries.groups == 0 {
            filter::clear(&mut self.active, position);
            self.active_bits.retain(|it| usize::from(it.position) != position);
        }
        self.count_change(groups);
    }

    fn count_change(&mut self, groups: &Groups) {
        self.changes += 1;
        if self.deferred {
            return;
        }
        if self.build.is_some() {
            self.continue_build(groups, GROUPS_PER_CHANGE);
        } else if self.changes > self.groups / 2 + 8 {
            self.start_build(groups);
            self.continue_build(groups, GROUPS_PER_CHANGE);
        }
    }

    /// Starts a new filter. The old one stays in use until all groups have been entered.
    fn start_build(&mut self, groups: &Groups) {
        self.changes = 0;
        let max_groups = self.entries.iter().map(|entry| entry.groups).max().unwrap_or_default();
        let cells = filter::cells(max_groups);
        let needs_filter = filter::count(&self.active) as usize > MAX_UNFILTERED_MASKS
            && self.sole_groups().is_none();
        let fields = match needs_filter {
            true => select_fields(self.number, &self.candidates(), cells, groups),
            false => Vec::new(),
        };
        let mut filter = Filter::new(&fields, self.entries.len(), cells);
        for (position, entry) in self.entries.iter().enumerate() {
            filter.add_mask(position, &entry.shape);
        }
        self.build = Some(FilterBuild { filter, next: 0 });
    }

    fn candidates<'a>(&'a self) -> Vec<Candidate<'a>> {
        let used = self.entries.iter().enumerate().filter(|(_, entry)| entry.groups > 0);
        let candidate = |(position, entry): (usize, &'a MaskEntry)| {
            let (shape, groups, common) = (&entry.shape, entry.groups, self.common_bits[position]);
            Candidate { position, shape, groups, common }
        };
        used.map(candidate).collect()
    }

    /// Enters up to `limit` groups into the new filter.
    fn continue_build(&mut self, groups: &Groups, limit: usize) {
        let Some(mut build) = self.build.take() else { return };
        let all = groups.end();
        let end = build.next.saturating_add(limit).min(all);
        // Without probes there is nothing to enter.
        let first = if build.filter.len() == 0 { all } else { build.next };
        for number in first..end {
            let shape = groups.shape_at(number).map(|shape| shape as usize);
            if let Some(shape) = shape.filter(|shape| shape / MASKS == self.number) {
                let (position, of) = (shape % MASKS, self.shape(shape % MASKS));
                build.filter.add(position, of, &groups.value(number as GroupId, of));
            }
        }
        build.next = end;
        match end.max(first) == all {
            true => self.filter = build.filter,
            false => self.build = Some(build),
        }
    }

    /// Builds a new filter at once.
    pub(super) fn settle(&mut self, groups: &Groups) {
        self.deferred = false;
        self.start_build(groups);
        self.continue_build(groups, usize::MAX);
    }

    /// Writes the positions of the masks that may have a rule for this key to `positions`, and
    /// returns how many there are.
    #[inline]
    pub(super) fn candidates_for(&self, key: &Key, positions: &mut [u8; MASKS]) -> usize {
        let mut count = 0;
        let mut add = |common: &CommonBits| {
            // Without a branch, which the processor could not predict.
            positions[count % MASKS] = common.position;
            count += usize::from(common.holds(key));
        };
        if self.filter.len() == 0 {
            self.active_bits.iter().for_each(add);
            return count;
        }
        let candidates = self.filter.candidates(self.active, key);
        for (common_bits, mut bits) in self.common_bits.chunks(u64::BITS as usize).zip(candidates) {
            while let Some(common) = common_bits.get(bits.trailing_zeros() as usize) {
                add(common);
                bits &= bits - 1;
            }
        }
        count
    }
}
