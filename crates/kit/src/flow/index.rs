//! From hashes to flows: extendible hashing (Fagin et al. 1979) over lines of
//! twelve, of which each hash has two.

use super::entries::Slot;

/// Slots in a line, which is one line of the processor's cache.
const WAYS: usize = 12;
/// Lines in a segment, which is a page.
const LINES: usize = 64;
/// Segments that lie together.
const PIECE: usize = 16;

/// Twelve slots; a tag is 0 where there is none, else a byte of its hash.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    tags: [u8; WAYS],
    /// How many slots that belong here are in their second line.
    spilled: u32,
    slots: [Slot; WAYS],
}

const EMPTY: Line = Line { tags: [0; WAYS], spilled: 0, slots: [Slot::NONE; WAYS] };

type Segment = [Line; LINES];
const EMPTY_SEGMENT: Segment = [EMPTY; LINES];

/// Where a hash belongs within its segment.
#[derive(Clone, Copy)]
struct Place {
    tag: u8,
    first: usize,
    second: usize,
}

impl Place {
    #[inline]
    fn of(hash: u64) -> Place {
        let first = (hash >> 8) as usize % LINES;
        // An odd distance: another line, whichever the first is.
        let second = first ^ (((hash >> 14) as usize % LINES) | 1);
        Place { tag: (hash as u8).max(1), first, second }
    }
}

/// Which bytes of a line's tags are `tag`, as the highest bits of bytes.
#[derive(Clone, Copy)]
struct Matches(u64, u32);

impl Matches {
    #[inline]
    fn of(tags: &[u8; WAYS], tag: u8) -> Matches {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *tags;
        let all = u64::from_le_bytes([tag; 8]);
        let x = u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ all;
        let y = u32::from_le_bytes([i, j, k, l]) ^ all as u32;
        // The highest bit of each byte that is zero, and of no other.
        let x = !(((x & LOW) + LOW) | x | LOW);
        let y = !(((y & LOW as u32) + LOW as u32) | y | LOW as u32);
        Matches(x, y)
    }
}

impl Iterator for Matches {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 != 0 {
            let way = self.0.trailing_zeros() / u8::BITS;
            self.0 &= self.0 - 1;
            return Some(way as usize);
        }
        if self.1 != 0 {
            let way = self.1.trailing_zeros() / u8::BITS;
            self.1 &= self.1 - 1;
            return Some(8 + way as usize);
        }
        None
    }
}

impl Line {
    #[inline]
    fn find(&self, tag: u8, is_it: impl FnMut(&Slot) -> bool) -> Option<Slot> {
        Matches::of(&self.tags, tag).map(|way| self.slots[way]).find(is_it)
    }

    fn put(&mut self, tag: u8, slot: Slot) -> bool {
        let Some(way) = Matches::of(&self.tags, 0).next() else { return false };
        (self.tags[way], self.slots[way]) = (tag, slot);
        true
    }

    fn take(&mut self, tag: u8, slot: Slot) -> bool {
        let found = Matches::of(&self.tags, tag).find(|&way| self.slots[way] == slot);
        found.inspect(|&way| self.tags[way] = 0).is_some()
    }
}

/// What one look at an index says of a hash.
#[derive(Clone, Copy)]
pub(super) enum Guess {
    /// If it is there, it is probably this one.
    This(Slot),
    /// If it is there, it is in its second line.
    Elsewhere,
    /// It is not there.
    None,
}

/// Slots by hash.
pub(super) struct Index {
    /// By the first `depth` bits of a hash: its segment.
    directory: Vec<u32>,
    depth: u32,
    pieces: Vec<Box<[Segment; PIECE]>>,
    /// By segment: how many first bits its hashes have in common.
    depths: Vec<u8>,
    /// The most that they may have: hashes that all fall together get no more room.
    deepest: u32,
}

impl Index {
    pub(super) fn new(limit: usize) -> Index {
        let mut index = Index {
            directory: vec![0],
            depth: 0,
            pieces: Vec::new(),
            depths: Vec::new(),
            deepest: 0,
        };
        index.set_limit(limit);
        index.add_segment(EMPTY_SEGMENT, 0);
        index
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        // Segments differ by chance in how full they are, and a flow may have two keys.
        const SPARE: usize = 16;
        let segments = (limit * SPARE / (LINES * WAYS)).max(1);
        self.deepest = self.deepest.max(segments.next_power_of_two().ilog2());
    }

    pub(super) fn memory(&self) -> usize {
        let segments = self.pieces.len() * PIECE * size_of::<Segment>();
        segments + self.directory.capacity() * size_of::<u32>() + self.depths.capacity()
    }

    fn add_segment(&mut self, segment: Segment, depth: u8) {
        let number = self.depths.len();
        if number == self.pieces.len() * PIECE {
            self.pieces.push(Box::new([EMPTY_SEGMENT; PIECE]));
        }
        self.pieces[number / PIECE][number % PIECE] = segment;
        self.depths.push(depth);
    }

    /// The first `bits` bits of a hash.
    #[inline]
    fn prefix(hash: u64, bits: u32) -> usize {
        // In two steps, for no bits at all.
        (hash >> 1 >> (u64::BITS - 1 - bits)) as usize
    }

    #[inline]
    fn number(&self, hash: u64) -> usize {
        self.directory[Index::prefix(hash, self.depth)] as usize
    }

    #[inline]
    fn segment(&self, hash: u64) -> &Segment {
        let number = self.number(hash);
        &self.pieces[number / PIECE][number % PIECE]
    }

    fn segment_mut(&mut self, hash: u64) -> &mut Segment {
        let number = self.number(hash);
        &mut self.pieces[number / PIECE][number % PIECE]
    }

    /// The slot of a hash for which `is_it` holds.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(Slot) -> bool) -> Option<Slot> {
        let (segment, place) = (self.segment(hash), Place::of(hash));
        let first = &segment[place.first];
        let found = first.find(place.tag, |&slot| is_it(slot));
        if found.is_some() || first.spilled == 0 {
            return found;
        }
        segment[place.second].find(place.tag, |&slot| is_it(slot))
    }

    /// The first slot that may be a hash's, without a look at its second line.
    #[inline]
    pub(super) fn guess(&self, hash: u64) -> Guess {
        let place = Place::of(hash);
        let line = &self.segment(hash)[place.first];
        match Matches::of(&line.tags, place.tag).next() {
            Some(way) => Guess::This(line.slots[way]),
            None if line.spilled == 0 => Guess::None,
            None => Guess::Elsewhere,
        }
    }

    /// Adds a slot; whether there was room. `rehash` is asked for hashes of others.
    pub(super) fn insert(&mut self, hash: u64, slot: Slot, rehash: impl Fn(Slot) -> u64) -> bool {
        let place = Place::of(hash);
        loop {
            let segment = self.segment_mut(hash);
            if segment[place.first].put(place.tag, slot) {
                return true;
            }
            if segment[place.second].put(place.tag, slot) {
                segment[place.first].spilled += 1;
                return true;
            }
            if !self.split(hash, &rehash) {
                return false;
            }
        }
    }

    pub(super) fn remove(&mut self, hash: u64, slot: Slot) {
        let (segment, place) = (self.segment_mut(hash), Place::of(hash));
        if !segment[place.first].take(place.tag, slot)
            && segment[place.second].take(place.tag, slot)
        {
            segment[place.first].spilled -= 1;
        }
    }

    /// Makes two segments of a hash's one; whether there may be more.
    fn split(&mut self, hash: u64, rehash: impl Fn(Slot) -> u64) -> bool {
        let number = self.number(hash);
        let depth = u32::from(self.depths[number]);
        if depth >= self.deepest {
            return false;
        }
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|&it| [it, it]).collect();
            self.depth += 1;
        }
        let old = &mut self.pieces[number / PIECE][number % PIECE];
        let mut new = *old;
        part(old, &mut new, rehash, |hash| hash << depth >> (u64::BITS - 1) != 0);
        let sibling = self.depths.len() as u32;
        self.depths[number] += 1;
        self.add_segment(new, self.depths[number]);
        // Of the places with the common bits, the upper half leads to the new one.
        let common = Index::prefix(hash, depth);
        let width = 1 << (self.depth - depth);
        let upper = common * width + width / 2;
        self.directory[upper..common * width + width].fill(sibling);
        true
    }
}

/// Of two equal segments, leaves in `new` the slots whose hashes it `is_for`, and
/// the rest in `old`: each where it was, for a line has the same number in all.
fn part(
    old: &mut Segment,
    new: &mut Segment,
    rehash: impl Fn(Slot) -> u64,
    is_for: impl Fn(u64) -> bool,
) {
    // All hashes first: what they wait for in memory, they wait for together.
    let mut hashes = [[0; WAYS]; LINES];
    for (hashes, line) in hashes.iter_mut().zip(old.iter()) {
        for way in (0..WAYS).filter(|&way| line.tags[way] != 0) {
            hashes[way] = rehash(line.slots[way]);
        }
    }
    for (line, hashes) in hashes.iter().enumerate() {
        for (way, &hash) in hashes.iter().enumerate() {
            if old[line].tags[way] == 0 {
                continue;
            }
            let left = if is_for(hash) { &mut *old } else { &mut *new };
            left[line].tags[way] = 0;
            let first = Place::of(hash).first;
            if first != line {
                left[first].spilled -= 1;
            }
        }
    }
}
