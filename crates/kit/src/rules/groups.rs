//! The rules of one mask that have the same value, as one entry.

use super::index::Number;
use super::shape::{NEAR, Shape, WIDE};
use super::{Key, Of};

/// Groups that lie together; they never move.
const PIECE: usize = 4096;
/// A rule's number has fewer bits; with this one it is a list's.
const LIST: u32 = 1 << 31;
/// The mask of no group.
const FREE: u32 = u32::MAX;

/// Half a line of the cache.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Group {
    /// The value's words; if they are more, the first says where they are.
    value: [u64; NEAR],
    shape: u32,
    /// The rule, or a list of them.
    rules: u32,
}

const NOBODY: Group = Group { value: [0; NEAR], shape: FREE, rules: 0 };

/// A value of more words, and its mask.
#[derive(Clone)]
struct Far {
    mask: Key,
    value: Key,
}

/// All groups, by number.
#[derive(Clone, Default)]
pub(super) struct Groups {
    pieces: Vec<Box<[Group; PIECE]>>,
    /// How many numbers were ever given out.
    places: usize,
    free: Vec<u32>,
    far: Vec<Far>,
    free_far: Vec<u32>,
    lists: Vec<Vec<u32>>,
    free_lists: Vec<u32>,
}

/// What became of a group when a rule left it.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Parted {
    /// The rule was not in it.
    NotThere,
    /// There are others.
    Others,
    /// It was the last.
    Empty,
}

impl Groups {
    pub(super) fn len(&self) -> usize {
        self.places - self.free.len()
    }

    /// How many numbers were ever given out.
    pub(super) fn places(&self) -> usize {
        self.places
    }

    pub(super) fn memory(&self) -> usize {
        let lists: usize = self.lists.iter().map(|list| list.capacity() * size_of::<u32>()).sum();
        let spare = self.free.capacity() + self.free_far.capacity() + self.free_lists.capacity();
        self.pieces.len() * PIECE * size_of::<Group>()
            + self.far.capacity() * size_of::<Far>()
            + self.lists.capacity() * size_of::<Vec<u32>>()
            + lists
            + spare * size_of::<u32>()
    }

    #[inline]
    fn at(&self, slot: Number) -> &Group {
        let number = slot as usize;
        &self.pieces[number / PIECE][number % PIECE]
    }

    fn at_mut(&mut self, slot: Number) -> &mut Group {
        let number = slot as usize;
        &mut self.pieces[number / PIECE][number % PIECE]
    }

    /// The mask of a number, if it is a group's.
    pub(super) fn shape_at(&self, number: usize) -> Option<u32> {
        let shape = self.at(number as Number).shape;
        (shape != FREE).then_some(shape & !WIDE)
    }

    /// A group's value as a key.
    pub(super) fn value(&self, slot: Number, shape: &Shape) -> Key {
        let group = self.at(slot);
        match shape.is_wide() {
            true => self.far[group.value[0] as usize].value,
            false => shape.key(&group.value),
        }
    }

    /// Whether a group is that of a key under a mask.
    #[inline]
    pub(super) fn is(&self, slot: Number, of: &Of, key: &Key) -> bool {
        let group = self.at(slot);
        let ([a, b, c], [d, e, f]) = (of.near, group.value);
        group.shape == of.number
            && match of.number & WIDE {
                0 => (a ^ d) | (b ^ e) | (c ^ f) == 0,
                _ => self.is_far(group.value[0], key),
            }
    }

    /// The same where values are more words.
    fn is_far(&self, place: u64, key: &Key) -> bool {
        let Far { mask, value } = &self.far[place as usize];
        *key & *mask == *value
    }

    pub(super) fn add(&mut self, shape: &Shape, value: &Key, rule: u32) -> Number {
        let mut words = shape.near(value);
        if shape.is_wide() {
            let all = Far { mask: shape.mask, value: *value };
            words[0] = match self.free_far.pop() {
                Some(far) => {
                    self.far[far as usize] = all;
                    far.into()
                }
                None => {
                    self.far.push(all);
                    self.far.len() as u64 - 1
                }
            };
        }
        let group = Group { value: words, shape: shape.number(), rules: rule };
        if let Some(free) = self.free.pop() {
            *self.at_mut(free) = group;
            return free;
        }
        if self.places == self.pieces.len() * PIECE {
            let piece: Vec<Group> = vec![NOBODY; PIECE];
            self.pieces.extend(piece.into_boxed_slice().try_into().ok());
        }
        let slot = self.places as Number;
        self.places += 1;
        *self.at_mut(slot) = group;
        slot
    }

    /// Forgets a group that has no rules.
    pub(super) fn remove(&mut self, slot: Number, shape: &Shape) {
        let group = self.at_mut(slot);
        let far = group.value[0] as u32;
        group.shape = FREE;
        if shape.is_wide() {
            self.free_far.push(far);
        }
        self.free.push(slot);
    }

    /// Adds a rule to a group.
    pub(super) fn join(&mut self, slot: Number, rule: u32) {
        let rules = self.at(slot).rules;
        if rules & LIST != 0 {
            self.lists[(rules & !LIST) as usize].push(rule);
            return;
        }
        let list = self.free_lists.pop().unwrap_or_else(|| {
            self.lists.push(Vec::new());
            self.lists.len() as u32 - 1
        });
        self.lists[list as usize].extend([rules, rule]);
        self.at_mut(slot).rules = LIST | list;
    }

    /// Takes a rule out of a group.
    pub(super) fn part(&mut self, slot: Number, rule: u32) -> Parted {
        let rules = self.at(slot).rules;
        if rules & LIST == 0 {
            return if rules == rule { Parted::Empty } else { Parted::NotThere };
        }
        let number = rules & !LIST;
        let list = &mut self.lists[number as usize];
        let Some(at) = list.iter().position(|&other| other == rule) else {
            return Parted::NotThere;
        };
        list.swap_remove(at);
        if let [only] = list[..] {
            *list = Vec::new();
            self.free_lists.push(number);
            self.at_mut(slot).rules = only;
        }
        Parted::Others
    }

    /// Calls `with` for each rule of a group.
    #[inline]
    pub(super) fn each(&self, slot: Number, mut with: impl FnMut(u32)) {
        match self.at(slot).rules {
            rule if rule & LIST == 0 => with(rule),
            list => self.lists[(list & !LIST) as usize].iter().for_each(|&rule| with(rule)),
        }
    }
}

const _: () = assert!(size_of::<Group>() == 32);
