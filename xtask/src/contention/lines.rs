//! Cache lines of threads that run at the same time, with caches without limit (MESI).

use std::collections::HashMap;

/// Bytes of a cache line.
const LINE: u64 = 64;
/// Longest access of one instruction that is taken to be in order, in lines.
const MOST: u64 = 64;

/// One access of a thread to memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// Instructions that the thread has run since its turn began.
    pub(super) time: u32,
    /// Whether it writes.
    pub(super) writes: bool,
    /// Address of the first byte.
    pub(super) address: u64,
    /// Number of bytes.
    pub(super) length: u64,
    /// Address of the instruction of the program, or of the last one before it called a library.
    pub(super) code: u64,
}

/// A line that moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Transfer {
    /// Address of the instruction.
    pub(super) code: u64,
    /// Address of the line.
    pub(super) line: u64,
}

/// The bytes of a line that a thread has used, a bit each.
struct Use {
    thread: u32,
    touched: u64,
    written: u64,
}

/// The state of a line, since the count began.
#[derive(Default)]
struct Line {
    /// Threads that have a valid copy.
    holders: Vec<u32>,
    /// Whether any thread has written to it.
    is_written: bool,
    uses: Vec<Use>,
}

/// All lines that were used since the count began.
#[derive(Default)]
pub(super) struct Lines {
    lines: HashMap<u64, Line>,
    transfers: HashMap<Transfer, u64>,
}

impl Lines {
    /// Runs the turns of several threads as if at the same time, an instruction of each in turn.
    pub(super) fn run_together(&mut self, turns: &[(u32, Vec<Access>)]) {
        let mut all: Vec<(u32, Access)> = Vec::new();
        for (thread, accesses) in turns {
            all.extend(accesses.iter().map(|access| (*thread, *access)));
        }
        // Stable: accesses of one instruction keep their order.
        all.sort_by_key(|(thread, access)| (access.time, *thread));
        all.iter().for_each(|(thread, access)| self.access(*thread, access));
    }

    /// Runs the turns of several threads one after the other.
    pub(super) fn run_in_turn(&mut self, turns: &[(u32, Vec<Access>)]) {
        for (thread, accesses) in turns {
            accesses.iter().for_each(|access| self.access(*thread, access));
        }
    }

    fn access(&mut self, thread: u32, access: &Access) {
        let end = access.address + access.length.clamp(1, MOST * LINE);
        for line in access.address / LINE..end.div_ceil(LINE) {
            let start = line * LINE;
            let bytes = mask(access.address.max(start) - start, end.min(start + LINE) - start);
            if self.lines.entry(line).or_default().access(thread, access.writes, bytes) {
                let transfer = Transfer { code: access.code, line: start };
                *self.transfers.entry(transfer).or_default() += 1;
            }
        }
    }

    /// All transfers, with the number of times.
    pub(super) fn transfers(&self) -> impl Iterator<Item = (Transfer, u64)> + '_ {
        self.transfers.iter().map(|(transfer, times)| (*transfer, *times))
    }

    /// Number of all transfers.
    pub(super) fn total(&self) -> u64 {
        self.transfers.values().sum()
    }

    /// Whether the threads share a line only because their own bytes lie side by side.
    pub(super) fn is_false_sharing(&self, line: u64) -> bool {
        let Some(line) = self.lines.get(&(line / LINE)) else { return false };
        let meet = |a: &Use, b: &Use| a.thread != b.thread && a.written & b.touched != 0;
        !line.uses.iter().any(|a| line.uses.iter().any(|b| meet(a, b)))
    }
}

impl Line {
    /// Whether the line, or the right to write to it, comes from another thread.
    fn access(&mut self, thread: u32, writes: bool, bytes: u64) -> bool {
        let written = if writes { bytes } else { 0 };
        match self.uses.iter_mut().find(|it| it.thread == thread) {
            Some(it) => (it.touched, it.written) = (it.touched | bytes, it.written | written),
            None => self.uses.push(Use { thread, touched: bytes, written }),
        }
        let holds = self.holders.contains(&thread);
        if writes {
            let moves = self.holders.iter().any(|&it| it != thread);
            self.holders.clear();
            self.holders.push(thread);
            self.is_written = true;
            return moves;
        }
        if holds {
            return false;
        }
        // A line to which nobody writes is fetched once by each thread, and then stays.
        let moves = self.is_written && !self.holders.is_empty();
        self.holders.push(thread);
        moves
    }
}

/// The bits from `start` to before `end`.
fn mask(start: u64, end: u64) -> u64 {
    let below = |bit: u64| if bit >= 64 { u64::MAX } else { (1 << bit) - 1 };
    below(end) & !below(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(time: u32, writes: bool, address: u64) -> Access {
        Access { time, writes, address, length: 8, code: 1 }
    }

    #[test]
    fn lines_that_nobody_writes_stay_with_all() {
        let mut lines = Lines::default();
        let reads = vec![access(0, false, 64), access(1, false, 64)];
        lines.run_together(&[(1, reads.clone()), (2, reads)]);
        assert_eq!(lines.total(), 0);
        // The right to write comes from the other thread, and the line to its next read.
        lines.run_together(&[(1, vec![access(0, true, 64)]), (2, vec![access(9, false, 64)])]);
        assert_eq!(lines.total(), 2);
        lines.run_together(&[(2, vec![access(0, false, 64)])]);
        assert_eq!(lines.total(), 2);
    }

    #[test]
    fn turns_run_together() {
        let mut lines = Lines::default();
        let turn: Vec<Access> = (0..10).map(|time| access(time, true, 128)).collect();
        let turns = [(1, turn.clone()), (2, turn)];
        lines.run_together(&turns);
        assert_eq!(lines.total(), 19, "each write but the first takes the line");
        assert!(!lines.is_false_sharing(128));
        let mut lines = Lines::default();
        lines.run_in_turn(&turns);
        assert_eq!(lines.total(), 1, "one thread is done before the other begins");
    }

    #[test]
    fn bytes_side_by_side_are_false_sharing() {
        let mut lines = Lines::default();
        lines.run_together(&[(1, vec![access(0, true, 0)]), (2, vec![access(1, true, 8)])]);
        assert_eq!(lines.total(), 1);
        assert!(lines.is_false_sharing(0));
    }

    #[test]
    fn long_accesses_touch_several_lines() {
        let mut lines = Lines::default();
        let long = Access { length: 32, ..access(0, true, 48) };
        lines.run_together(&[(1, vec![long]), (2, vec![Access { time: 1, ..long }])]);
        assert_eq!(lines.total(), 2);
        assert_eq!(mask(48, 64), 0xffff << 48);
    }
}
