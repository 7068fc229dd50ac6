//! Which bytes of a datagram are there, fragment by fragment.

/// The most fragments of a datagram; one of 65 535 bytes has 122 where links carry 576.
const MOST: usize = 256;

/// The fragments of a datagram: where each begins and ends, in order and apart from each other.
#[derive(Clone, Default, Debug)]
pub(super) struct Pieces {
    all: Vec<(u32, u32)>,
    /// How many bytes they have.
    bytes: u32,
    /// Where the datagram ends, if its last fragment is here.
    end: Option<u32>,
}

/// How a fragment fits with the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fit {
    /// It has other bytes than they.
    Apart,
    /// It is one of them once more.
    Again,
    /// It overlaps some of them, or ends where the datagram cannot.
    Across,
    /// There are too many of them.
    Crowded,
}

impl Pieces {
    /// Puts a fragment in its place.
    pub(super) fn place(&mut self, start: usize, length: usize, more: bool) -> Fit {
        let (from, to) = (start as u32, (start + length) as u32);
        let last = self.all.last().map_or(0, |&(_, to)| to);
        let is_end = match (self.end, more) {
            (Some(end), true) => to < end,
            (Some(end), false) => to == end,
            (None, true) => true,
            // What has others behind it does not end the datagram.
            (None, false) => last < to,
        };
        let at = self.all.partition_point(|&(other, _)| other < from);
        if is_end && self.all.get(at) == Some(&(from, to)) {
            return Fit::Again;
        }
        let before = at.checked_sub(1).and_then(|at| self.all.get(at));
        let meets_before = before.is_some_and(|&(_, end)| end > from);
        let meets_behind = self.all.get(at).is_some_and(|&(start, _)| start < to);
        if !is_end || meets_before || meets_behind {
            return Fit::Across;
        }
        if self.all.len() >= MOST {
            return Fit::Crowded;
        }
        self.all.insert(at, (from, to));
        self.bytes += to - from;
        self.end = self.end.or((!more).then_some(to));
        Fit::Apart
    }

    /// Whether the whole datagram is here.
    pub(super) fn are_all(&self) -> bool {
        self.end == Some(self.bytes)
    }

    /// Where the first fragment ends, if it is here.
    pub(super) fn first_end(&self) -> Option<usize> {
        self.all.first().filter(|(from, _)| *from == 0).map(|&(_, to)| to as usize)
    }
}
