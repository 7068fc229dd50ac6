//! The index from hashes to flows: extendible hashing (Fagin et al. 1979) with buckets of twelve
//! slots, of which each hash has two.

use super::entries::Slot;

/// Slots in a line, which is one cache line.
const WAYS: usize = 12;
/// Lines in a segment, which is a page.
const LINES: usize = 64;
/// Segments in one allocation.
const CHUNK: usize = 16;

/// Twelve slots. The tag of an empty slot is 0, other tags are a byte of the hash.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    tags: [u8; WAYS],
    /// How many slots whose first line is this one are in their second line.
    spilled: u32,
    slots: [Slot; WAYS],
}

const EMPTY: Line = Line { tags: [0; WAYS], spilled: 0, slots: [Slot::NONE; WAYS] };

type Segment = [Line; LINES];
const EMPTY_SEGMENT: Segment = [EMPTY; LINES];

/// The position of a hash within its segment.
#[derive(Clone, Copy)]
struct Position {
    tag: u8,
    first: usize,
    second: usize,
}

impl Position {
    #[inline]
    fn new(hash: u64) -> Position {
        let first = (hash >> 8) as usize % LINES;
        // The distance is odd, so this is another line than the first.
        let second = first ^ (((hash >> 14) as usize % LINES) | 1);
        Position { tag: (hash as u8).max(1), first, second }
    }
}

/// The positions of a tag in a line, as the highest bits of bytes.
#[derive(Clone, Copy)]
struct TagMatches(u64, u32);

impl TagMatches {
    #[inline]
    fn new(tags: &[u8; WAYS], tag: u8) -> TagMatches {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *tags;
        let all = u64::from_le_bytes([tag; 8]);
        let x = u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ all;
        let y = u32::from_le_bytes([i, j, k, l]) ^ all as u32;
        // The highest bit of each byte that is zero, and of no other byte.
        let x = !(((x & LOW) + LOW) | x | LOW);
        let y = !(((y & LOW as u32) + LOW as u32) | y | LOW as u32);
        TagMatches(x, y)
    }
}

impl Iterator for TagMatches {
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
        TagMatches::new(&self.tags, tag).map(|way| self.slots[way]).find(is_it)
    }

    fn insert(&mut self, tag: u8, slot: Slot) -> bool {
        let Some(way) = TagMatches::new(&self.tags, 0).next() else { return false };
        (self.tags[way], self.slots[way]) = (tag, slot);
        true
    }

    fn remove(&mut self, tag: u8, slot: Slot) -> bool {
        let found = TagMatches::new(&self.tags, tag).find(|&way| self.slots[way] == slot);
        found.inspect(|&way| self.tags[way] = 0).is_some()
    }
}

/// The result of looking at the first line of a hash only.
#[derive(Clone, Copy)]
pub(super) enum FirstLine {
    /// The key is probably at this slot, if it exists.
    Candidate(Slot),
    /// The key is in its second line, if it exists.
    Spilled,
    /// The key does not exist.
    None,
}

/// The slots of a table by hash.
#[derive(Default)]
pub(super) struct Index {
    /// The segment for the first `depth` bits of a hash.
    directory: Vec<u32>,
    depth: u32,
    chunks: Vec<Box<[Segment; CHUNK]>>,
    /// For each segment, the number of leading bits that its hashes have in common.
    depths: Vec<u8>,
    /// The largest depth: hashes that all collide get no more memory than this.
    max_depth: u32,
}

impl Index {
    pub(super) fn new(limit: usize) -> Index {
        let mut index = Index::default();
        index.set_limit(limit);
        index
    }

    /// Adds the first segment, before the first slot.
    pub(super) fn allocate(&mut self) {
        if self.directory.is_empty() {
            self.directory.push(0);
            self.add_segment(EMPTY_SEGMENT, 0);
        }
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        // Segments are unevenly full, and a flow may have two keys.
        const SPARE: usize = 16;
        let segments = (limit.saturating_mul(SPARE) / (LINES * WAYS)).max(1);
        let depth = segments.next_power_of_two().ilog2();
        self.max_depth = if self.depths.is_empty() { depth } else { self.max_depth.max(depth) };
    }

    pub(super) fn memory(&self) -> usize {
        let segments = self.chunks.len() * CHUNK * size_of::<Segment>();
        segments + self.directory.capacity() * size_of::<u32>() + self.depths.capacity()
    }

    fn add_segment(&mut self, segment: Segment, depth: u8) {
        let number = self.depths.len();
        if number == self.chunks.len() * CHUNK {
            self.chunks.push(Box::new([EMPTY_SEGMENT; CHUNK]));
        }
        self.chunks[number / CHUNK][number % CHUNK] = segment;
        self.depths.push(depth);
    }

    /// The first `bits` bits of a hash.
    #[inline]
    fn prefix(hash: u64, bits: u32) -> usize {
        // In two shifts, because `bits` may be 0.
        (hash >> 1 >> (u64::BITS - 1 - bits)) as usize
    }

    #[inline]
    fn number(&self, hash: u64) -> usize {
        self.directory[Index::prefix(hash, self.depth)] as usize
    }

    #[inline]
    fn segment(&self, hash: u64) -> &Segment {
        let number = self.number(hash);
        &self.chunks[number / CHUNK][number % CHUNK]
    }

    fn segment_mut(&mut self, hash: u64) -> &mut Segment {
        let number = self.number(hash);
        &mut self.chunks[number / CHUNK][number % CHUNK]
    }

    /// The slot of a hash for which `is_it` is true.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(Slot) -> bool) -> Option<Slot> {
        let (segment, position) = (self.segment(hash), Position::new(hash));
        let first = &segment[position.first];
        let found = first.find(position.tag, |&slot| is_it(slot));
        if found.is_some() || first.spilled == 0 {
            return found;
        }
        segment[position.second].find(position.tag, |&slot| is_it(slot))
    }

    /// The first slot with a matching tag, without looking at the second line.
    #[inline]
    pub(super) fn first_line(&self, hash: u64) -> FirstLine {
        let position = Position::new(hash);
        let line = &self.segment(hash)[position.first];
        match TagMatches::new(&line.tags, position.tag).next() {
            Some(way) => FirstLine::Candidate(line.slots[way]),
            None if line.spilled == 0 => FirstLine::None,
            None => FirstLine::Spilled,
        }
    }

    /// Adds a slot; whether there was room. `rehash` returns the hash of an existing slot.
    pub(super) fn insert(&mut self, hash: u64, slot: Slot, rehash: impl Fn(Slot) -> u64) -> bool {
        let position = Position::new(hash);
        loop {
            let segment = self.segment_mut(hash);
            if segment[position.first].insert(position.tag, slot) {
                return true;
            }
            if segment[position.second].insert(position.tag, slot) {
                segment[position.first].spilled += 1;
                return true;
            }
            if !self.split(hash, &rehash) {
                return false;
            }
        }
    }

    pub(super) fn remove(&mut self, hash: u64, slot: Slot) {
        let (segment, position) = (self.segment_mut(hash), Position::new(hash));
        if !segment[position.first].remove(position.tag, slot)
            && segment[position.second].remove(position.tag, slot)
        {
            segment[position.first].spilled -= 1;
        }
    }

    /// Splits the segment of a hash in two; false if the largest depth is reached.
    fn split(&mut self, hash: u64, rehash: impl Fn(Slot) -> u64) -> bool {
        let number = self.number(hash);
        let depth = u32::from(self.depths[number]);
        if depth >= self.max_depth {
            return false;
        }
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|&it| [it, it]).collect();
            self.depth += 1;
        }
        let old = &mut self.chunks[number / CHUNK][number % CHUNK];
        let mut new = *old;
        distribute(old, &mut new, rehash, |hash| hash << depth >> (u64::BITS - 1) != 0);
        let sibling = self.depths.len() as u32;
        self.depths[number] += 1;
        self.add_segment(new, self.depths[number]);
        // The upper half of the directory entries with the common bits leads to the new segment.
        let common = Index::prefix(hash, depth);
        let width = 1 << (self.depth - depth);
        let upper = common * width + width / 2;
        self.directory[upper..common * width + width].fill(sibling);
        true
    }
}

/// Distributes the slots of two equal segments: those whose hash `is_for` the new one stay in
/// `new`, the others in `old`. Each keeps its line, which has the same number in both.
fn distribute(
    old: &mut Segment,
    new: &mut Segment,
    rehash: impl Fn(Slot) -> u64,
    is_for: impl Fn(u64) -> bool,
) {
    // All hashes first, so that their cache misses overlap.
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
            let first = Position::new(hash).first;
            if first != line {
                left[first].spilled -= 1;
            }
        }
    }
}
