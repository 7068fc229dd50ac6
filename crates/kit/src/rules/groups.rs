//! Groups: the rules of one mask that have the same value share one entry.

use super::index::GroupId;
use super::shape::{INLINE_WORDS, Shape, WIDE};
use super::{Key, MaskedWords};

/// Groups of one allocation, which never moves.
const CHUNK: usize = 4096;
/// A rule number is below this bit; with the bit it is the number of a list.
const LIST: u32 = 1 << 31;
/// The `shape` of an unused entry.
const FREE: u32 = u32::MAX;

/// A group, in half a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Group {
    /// The words of the value under the mask; if there are more, the first is an index of `wide`.
    value: [u64; INLINE_WORDS],
    shape: u32,
    /// The rule, or a list of rules.
    rules: u32,
}

const UNUSED: Group = Group { value: [0; INLINE_WORDS], shape: FREE, rules: 0 };

/// A mask with more words than fit into a group, and its value.
#[derive(Clone)]
struct WideValue {
    mask: Key,
    value: Key,
}

/// All groups, by id.
#[derive(Clone, Default)]
pub(super) struct Groups {
    chunks: Vec<Box<[Group; CHUNK]>>,
    /// The ids handed out so far, including those free again.
    end: usize,
    free: Vec<u32>,
    wide: Vec<WideValue>,
    free_wide: Vec<u32>,
    lists: Vec<Vec<u32>>,
    free_lists: Vec<u32>,
}

/// The result of removing a rule from a group.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum RuleRemoval {
    /// The rule was not in the group.
    NotFound,
    /// Other rules remain in the group.
    Remaining,
    /// It was the group's last rule.
    Last,
}

impl Groups {
    pub(super) fn len(&self) -> usize {
        self.end - self.free.len()
    }

    /// One more than the largest id handed out so far.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    pub(super) fn memory(&self) -> usize {
        let lists: usize = self.lists.iter().map(|list| list.capacity() * size_of::<u32>()).sum();
        let spare = self.free.capacity() + self.free_wide.capacity() + self.free_lists.capacity();
        self.chunks.len() * CHUNK * size_of::<Group>()
            + self.wide.capacity() * size_of::<WideValue>()
            + self.lists.capacity() * size_of::<Vec<u32>>()
            + lists
            + spare * size_of::<u32>()
    }

    #[inline]
    fn at(&self, slot: GroupId) -> &Group {
        let number = slot as usize;
        &self.chunks[number / CHUNK][number % CHUNK]
    }

    fn at_mut(&mut self, slot: GroupId) -> &mut Group {
        let number = slot as usize;
        &mut self.chunks[number / CHUNK][number % CHUNK]
    }

    /// The mask number of a group, if the id is in use.
    pub(super) fn shape_at(&self, number: usize) -> Option<u32> {
        let shape = self.at(number as GroupId).shape;
        (shape != FREE).then_some(shape & !WIDE)
    }

    /// A group's value as a key.
    pub(super) fn value(&self, slot: GroupId, shape: &Shape) -> Key {
        let group = self.at(slot);
        match shape.is_wide() {
            true => self.wide[group.value[0] as usize].value,
            false => shape.key(&group.value),
        }
    }

    /// Whether a group has the value of a key under a mask.
    #[inline]
    pub(super) fn matches(&self, slot: GroupId, masked: &MaskedWords, key: &Key) -> bool {
        let group = self.at(slot);
        let ([a, b, c], [d, e, f]) = (masked.words, group.value);
        group.shape == masked.number
            && match masked.number & WIDE {
                0 => (a ^ d) | (b ^ e) | (c ^ f) == 0,
                _ => self.matches_wide(group.value[0], key),
            }
    }

    /// The same for values that are stored outside the group.
    fn matches_wide(&self, index: u64, key: &Key) -> bool {
        let WideValue { mask, value } = &self.wide[index as usize];
        *key & *mask == *value
    }

    pub(super) fn add(&mut self, shape: &Shape, value: &Key, rule: u32) -> GroupId {
        let mut words = shape.masked_words(value);
        if shape.is_wide() {
            let all = WideValue { mask: shape.mask, value: *value };
            words[0] = match self.free_wide.pop() {
                Some(far) => {
                    self.wide[far as usize] = all;
                    far.into()
                }
                None => {
                    self.wide.push(all);
                    self.wide.len() as u64 - 1
                }
            };
        }
        let group = Group { value: words, shape: shape.number(), rules: rule };
        if let Some(free) = self.free.pop() {
            *self.at_mut(free) = group;
            return free;
        }
        if self.end == self.chunks.len() * CHUNK {
            let chunk: Vec<Group> = vec![UNUSED; CHUNK];
            self.chunks.extend(chunk.into_boxed_slice().try_into().ok());
        }
        let slot = self.end as GroupId;
        self.end += 1;
        *self.at_mut(slot) = group;
        slot
    }

    /// Removes a group that has no rules.
    pub(super) fn remove(&mut self, slot: GroupId, shape: &Shape) {
        let group = self.at_mut(slot);
        let far = group.value[0] as u32;
        group.shape = FREE;
        if shape.is_wide() {
            self.free_wide.push(far);
        }
        self.free.push(slot);
    }

    /// Adds a rule to a group.
    pub(super) fn add_rule(&mut self, slot: GroupId, rule: u32) {
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

    /// Removes a rule from a group.
    pub(super) fn remove_rule(&mut self, slot: GroupId, rule: u32) -> RuleRemoval {
        let rules = self.at(slot).rules;
        if rules & LIST == 0 {
            return if rules == rule { RuleRemoval::Last } else { RuleRemoval::NotFound };
        }
        let number = rules & !LIST;
        let list = &mut self.lists[number as usize];
        let Some(at) = list.iter().position(|&other| other == rule) else {
            return RuleRemoval::NotFound;
        };
        list.swap_remove(at);
        if let [only] = list[..] {
            *list = Vec::new();
            self.free_lists.push(number);
            self.at_mut(slot).rules = only;
        }
        RuleRemoval::Remaining
    }

    /// Calls `with` for each rule of a group.
    #[inline]
    pub(super) fn for_each_rule(&self, slot: GroupId, mut with: impl FnMut(u32)) {
        match self.at(slot).rules {
            rule if rule & LIST == 0 => with(rule),
            list => self.lists[(list & !LIST) as usize].iter().for_each(|&rule| with(rule)),
        }
    }
}

const _: () = assert!(size_of::<Group>() == 32);
