//! The byte ranges of a datagram's fragments.

/// The largest number of fragments; a datagram of 65 535 bytes has 122 at an MTU of 576.
const MAX_FRAGMENTS: usize = 256;

/// The fragments of a datagram: start and end of each, sorted and disjoint.
#[derive(Clone, Default, Debug)]
pub(super) struct FragmentRanges {
    all: Vec<(u32, u32)>,
    /// The sum of their lengths.
    bytes: u32,
    /// The end of the datagram, if the last fragment was seen.
    end: Option<u32>,
}

/// The result of inserting a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum InsertResult {
    /// The fragment has new bytes.
    New,
    /// The fragment is a duplicate.
    Duplicate,
    /// The fragment overlaps others or contradicts the end of the datagram.
    Conflict,
    /// There are too many fragments.
    Full,
}

impl FragmentRanges {
    /// Inserts a fragment.
    pub(super) fn insert(&mut self, start: usize, length: usize, more: bool) -> InsertResult {
        let (from, to) = (start as u32, (start + length) as u32);
        let last = self.all.last().map_or(0, |&(_, to)| to);
        let is_end = match (self.end, more) {
            (Some(end), true) => to < end,
            (Some(end), false) => to == end,
            (None, true) => true,
            // A fragment before others is not the last one.
            (None, false) => last < to,
        };
        let at = self.all.partition_point(|&(other, _)| other < from);
        if is_end && self.all.get(at) == Some(&(from, to)) {
            return InsertResult::Duplicate;
        }
        let before = at.checked_sub(1).and_then(|at| self.all.get(at));
        let meets_before = before.is_some_and(|&(_, end)| end > from);
        let meets_behind = self.all.get(at).is_some_and(|&(start, _)| start < to);
        if !is_end || meets_before || meets_behind {
            return InsertResult::Conflict;
        }
        if self.all.len() >= MAX_FRAGMENTS {
            return InsertResult::Full;
        }
        self.all.insert(at, (from, to));
        self.bytes += to - from;
        self.end = self.end.or((!more).then_some(to));
        InsertResult::New
    }

    /// Whether the datagram is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.end == Some(self.bytes)
    }

    /// The end of the first fragment, if it was seen.
    pub(super) fn first_end(&self) -> Option<usize> {
        self.all.first().filter(|(from, _)| *from == 0).map(|&(_, to)| to as usize)
    }
}
