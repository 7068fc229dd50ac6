//! The index from hashes to groups: open addressing, with incremental growth.

/// The id of a group.
pub(super) type GroupId = u32;

/// The upper half has a group's id plus 1, so that 0 is empty; the lower half has the lower half of
/// its hash.
type Cell = u64;

/// Cells of an empty index; a power of two, as all cell counts are.
const INITIAL_CELLS: usize = 64;
/// Groups that one change enters into a larger cell array.
const GROUPS_PER_CHANGE: usize = 16;

/// The group in the first cell of a hash, if the cell's hash bits match.
#[inline]
pub(super) fn decode_cell(cell: Cell, hash: u64) -> Option<GroupId> {
    (cell as u32 == hash as u32).then(|| ((cell >> 32) as GroupId).wrapping_sub(1))
}

/// Groups by hash.
#[derive(Clone)]
pub(super) struct Index {
    cells: Cells,
    len: usize,
    /// A larger cell array that is being filled, and the first group that has not been entered.
    larger: Option<(Cells, usize)>,
}

/// A cell array; the upper bits of a hash select its first cell.
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
    fn find(&self, hash: u64, mut is_it: impl FnMut(GroupId) -> bool) -> Option<GroupId> {
        let mut at = self.first(hash);
        loop {
            let cell = *self.cells.get(at)?;
            let number = (cell >> 32) as GroupId;
            if number == 0 {
                return None;
            }
            if cell as u32 == hash as u32 && is_it(number - 1) {
                return Some(number - 1);
            }
            at = self.after(at);
        }
    }

    fn insert(&mut self, hash: u64, group: GroupId) {
        let mut at = self.first(hash);
        while self.cells[at] != 0 {
            at = self.after(at);
        }
        self.cells[at] = u64::from(group + 1) << 32 | u64::from(hash as u32);
    }

    /// Removes a group, and moves the following groups back to close the gap.
    fn remove(&mut self, hash: u64, group: GroupId, hash_of: impl Fn(GroupId) -> u64) {
        let mut hole = self.first(hash);
        while (self.cells[hole] >> 32) as GroupId != group + 1 {
            if self.cells[hole] == 0 {
                return;
            }
            hole = self.after(hole);
        }
        let mut at = self.after(hole);
        while self.cells[at] != 0 {
            let first = self.first(hash_of((self.cells[at] >> 32) as GroupId - 1));
            // Whether the hole is between the group's first cell and its current one.
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
        Index { cells: Cells::new(INITIAL_CELLS), len: 0, larger: None }
    }
}

impl Index {
    pub(super) fn memory(&self) -> usize {
        let larger = self.larger.as_ref().map_or(0, |(cells, _)| cells.cells.len());
        (self.cells.cells.len() + larger) * size_of::<Cell>()
    }

    /// The first cell of a hash, for [`decode_cell`]; 0 if no group has that hash. Reading the
    /// first cells of a batch before anything else lets the cache misses overlap.
    #[inline]
    pub(super) fn first_cell(&self, hash: u64) -> u64 {
        self.cells.cells.get(self.cells.first(hash)).copied().unwrap_or_default()
    }

    /// The group with that hash for which `is_it` is true.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl FnMut(GroupId) -> bool) -> Option<GroupId> {
        self.cells.find(hash, is_it)
    }

    /// Adds a group; `hash_of` returns the hashes of the groups below `all` that exist.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        group: GroupId,
        all: usize,
        hash_of: impl Fn(GroupId) -> Option<u64>,
    ) {
        self.cells.insert(hash, group);
        self.len += 1;
        match &mut self.larger {
            Some((cells, next)) if (group as usize) < *next => cells.insert(hash, group),
            Some(_) => {}
            // The array is at most half full when growth starts, and little more when it ends.
            None if self.len * 2 > self.cells.cells.len() => {
                self.larger = Some((Cells::new(self.cells.cells.len() * 4), 0));
            }
            None => {}
        }
        self.grow(all, hash_of);
    }

    fn grow(&mut self, all: usize, hash_of: impl Fn(GroupId) -> Option<u64>) {
        let Some((mut cells, next)) = self.larger.take() else { return };
        let end = (next + GROUPS_PER_CHANGE).min(all);
        for group in next as GroupId..end as GroupId {
            if let Some(hash) = hash_of(group) {
                cells.insert(hash, group);
            }
        }
        match end == all {
            true => self.cells = cells,
            false => self.larger = Some((cells, end)),
        }
    }

    /// Removes a group.
    pub(super) fn remove(&mut self, hash: u64, group: GroupId, hash_of: impl Fn(GroupId) -> u64) {
        self.cells.remove(hash, group, &hash_of);
        self.len -= 1;
        if let Some((cells, next)) = &mut self.larger
            && (group as usize) < *next
        {
            cells.remove(hash, group, hash_of);
        }
    }
}
