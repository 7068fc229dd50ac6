//! From hashes to groups: open addressing that grows a piece with each change.

/// The number of a group.
pub(super) type Number = u32;

/// A group's number in the upper half, one more than it is so that 0 is nothing, and in
/// the lower half the lower half of its hash.
type Cell = u64;

/// Cells of an empty index; a power of two, as all numbers of cells are.
const FIRST: usize = 64;
/// Groups that a change enters into a larger set of cells.
const STEP: usize = 16;

/// The group of a hash by its first cell, if that is not another's.
#[inline]
pub(super) fn guessed(cell: Cell, hash: u64) -> Option<Number> {
    (cell as u32 == hash as u32).then(|| ((cell >> 32) as Number).wrapping_sub(1))
}

/// Groups by hash.
#[derive(Clone)]
pub(super) struct Index {
    cells: Cells,
    len: usize,
    /// A larger set of cells that does not know all groups yet, and the first that it
    /// does not know.
    growing: Option<(Cells, usize)>,
}

/// Cells, each hash's first one by its upper bits.
#[derive(Clone)]
struct Cells {
    cells: Vec<Cell>,
    shift: u32,
}

impl Cells {
    fn new(count: usize) -> Cells {
        Cells { cells: vec![0; count], shift: u64::BITS - count.ilog2() }
    }

    #[inline]
    fn first(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.cells.len() - 1)
    }

    #[inline]
    fn find(&self, hash: u64, mut is_it: impl FnMut(Number) -> bool) -> Option<Number> {
        let mut at = self.first(hash);
        loop {
            let cell = *self.cells.get(at)?;
            let number = (cell >> 32) as Number;
            if number == 0 {
                return None;
            }
            if cell as u32 == hash as u32 && is_it(number - 1) {
                return Some(number - 1);
            }
            at = self.after(at);
        }
    }

    fn insert(&mut self, hash: u64, group: Number) {
        let mut at = self.first(hash);
        while self.cells[at] != 0 {
            at = self.after(at);
        }
        self.cells[at] = u64::from(group + 1) << 32 | u64::from(hash as u32);
    }

    /// Takes a group out, and moves those behind it up to where they would be without it.
    fn remove(&mut self, hash: u64, group: Number, hash_of: impl Fn(Number) -> u64) {
        let mut hole = self.first(hash);
        while (self.cells[hole] >> 32) as Number != group + 1 {
            if self.cells[hole] == 0 {
                return;
            }
            hole = self.after(hole);
        }
        let mut at = self.after(hole);
        while self.cells[at] != 0 {
            let first = self.first(hash_of((self.cells[at] >> 32) as Number - 1));
            // Whether the hole lies between where it belongs and where it is.
            let mask = self.cells.len() - 1;
            if at.wrapping_sub(first) & mask >= at.wrapping_sub(hole) & mask {
                self.cells[hole] = self.cells[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.cells[hole] = 0;
    }
}

impl Default for Index {
    fn default() -> Index {
        Index { cells: Cells::new(FIRST), len: 0, growing: None }
    }
}

impl Index {
    pub(super) fn memory(&self) -> usize {
        let growing = self.growing.as_ref().map_or(0, |(cells, _)| cells.cells.len());
        (self.cells.cells.len() + growing) * size_of::<Cell>()
    }

    /// The first cell of a hash, for [`guessed`]; 0, if there is no group of that hash. A
    /// burst asks this first, so that it waits for all cells at once.
    #[inline]
    pub(super) fn guess(&self, hash: u64) -> u64 {
        self.cells.cells.get(self.cells.first(hash)).copied().unwrap_or_default()
    }

    /// The group of that hash for which `is_it` holds.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl FnMut(Number) -> bool) -> Option<Number> {
        self.cells.find(hash, is_it)
    }

    /// Adds a group; `hash_of` knows the hashes of those up to `all` that are there.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        group: Number,
        all: usize,
        hash_of: impl Fn(Number) -> Option<u64>,
    ) {
        self.cells.insert(hash, group);
        self.len += 1;
        match &mut self.growing {
            Some((cells, next)) if (group as usize) < *next => cells.insert(hash, group),
            Some(_) => {}
            // At most half full when it begins to grow, and little more when it has grown.
            None if self.len * 2 > self.cells.cells.len() => {
                self.growing = Some((Cells::new(self.cells.cells.len() * 4), 0));
            }
            None => {}
        }
        self.grow(all, hash_of);
    }

    fn grow(&mut self, all: usize, hash_of: impl Fn(Number) -> Option<u64>) {
        let Some((mut cells, next)) = self.growing.take() else { return };
        let end = (next + STEP).min(all);
        for group in next as Number..end as Number {
            if let Some(hash) = hash_of(group) {
                cells.insert(hash, group);
            }
        }
        match end == all {
            true => self.cells = cells,
            false => self.growing = Some((cells, end)),
        }
    }

    /// Takes a group out.
    pub(super) fn remove(&mut self, hash: u64, group: Number, hash_of: impl Fn(Number) -> u64) {
        self.cells.remove(hash, group, &hash_of);
        self.len -= 1;
        if let Some((cells, next)) = &mut self.growing
            && (group as usize) < *next
        {
            cells.remove(hash, group, hash_of);
        }
    }
}
