//! The window of counters against replays (RFC 4303, section 3.4.3; RFC 6479).

/// Bits of a block of the window.
const BLOCK_BITS: u64 = u64::BITS as u64;

/// The relation of a counter to those that came before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freshness {
    /// It has not come yet.
    New,
    /// It has come already.
    Replayed,
    /// It is older than the window, which does not tell whether it has come.
    Old,
}

/// The counters of one sender in one epoch that have come: a window behind the greatest of them.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// By counter, modulo their number of bits: whether it has come.
    blocks: Box<[u64]>,
    /// One more than the greatest counter that has come.
    next: u64,
}

impl ReplayWindow {
    /// An empty window over at least `size` counters.
    pub fn new(size: usize) -> ReplayWindow {
        // One block more, as the newest one is partly in the future.
        let blocks = size.div_ceil(BLOCK_BITS as usize).max(1) + 1;
        ReplayWindow { blocks: vec![0; blocks.next_power_of_two()].into(), next: 0 }
    }

    /// One more than the greatest counter that has come; 0 if none has.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    fn place(&self, counter: u64) -> (usize, u64) {
        let mask = self.blocks.len() as u64 - 1;
        (((counter / BLOCK_BITS) & mask) as usize, 1 << (counter % BLOCK_BITS))
    }

    /// The relation of a counter to those that have come. The greatest number counts as old.
    #[inline]
    pub fn check(&self, counter: u64) -> Freshness {
        if counter >= self.next {
            return if counter < u64::MAX { Freshness::New } else { Freshness::Old };
        }
        let newest = (self.next - 1) / BLOCK_BITS;
        if newest - counter / BLOCK_BITS >= self.blocks.len() as u64 {
            return Freshness::Old;
        }
        let (block, bit) = self.place(counter);
        match self.blocks[block] & bit {
            0 => Freshness::New,
            _ => Freshness::Replayed,
        }
    }

    /// Records a counter, after its datagram has proved authentic; returns whether it was new.
    #[inline]
    pub fn accept(&mut self, counter: u64) -> Freshness {
        let freshness = self.check(counter);
        if freshness != Freshness::New {
            return freshness;
        }
        if counter >= self.next {
            self.advance(counter);
        }
        let (block, bit) = self.place(counter);
        self.blocks[block] |= bit;
        freshness
    }

    /// Moves the window up to a counter, and empties the blocks that it enters.
    fn advance(&mut self, counter: u64) {
        let count = self.blocks.len() as u64;
        let first = match self.next.checked_sub(1) {
            None => 0,
            Some(last) => last / BLOCK_BITS + 1,
        };
        let last = counter / BLOCK_BITS;
        // More blocks than there are need not be emptied twice.
        for block in first.max((last + 1).saturating_sub(count))..=last {
            self.blocks[(block & (count - 1)) as usize] = 0;
        }
        self.next = counter + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn the_greatest_number_ends_nothing() {
        let mut window = ReplayWindow::new(1);
        assert_eq!(window.accept(u64::MAX), Freshness::Old);
        assert_eq!(window.accept(u64::MAX - 1), Freshness::New);
        assert_eq!(window.accept(u64::MAX - 1), Freshness::Replayed);
        assert_eq!(window.accept(0), Freshness::Old);
    }

    proptest! {
        #[test]
        fn counters_are_new_once(
            steps in prop::collection::vec((0..4_u8, 0..300_u64), 1..200),
            start in prop::sample::select(vec![0_u64, 5, 1 << 40, u64::MAX - 200_000]),
        ) {
            const SIZE: usize = 200;
            let (mut window, mut come) = (ReplayWindow::new(SIZE), HashSet::new());
            let mut greatest: Option<u64> = None;
            for (kind, step) in steps {
                let before = greatest.unwrap_or(start);
                let counter = match kind {
                    0 => before + step,
                    1 => before + 1,
                    _ => before.saturating_sub(step),
                };
                let freshness = window.accept(counter);
                let is_near = greatest.is_none_or(|it| counter + SIZE as u64 > it);
                match (come.contains(&counter), is_near) {
                    (true, true) => prop_assert_eq!(freshness, Freshness::Replayed),
                    (true, false) => prop_assert_ne!(freshness, Freshness::New),
                    (false, true) => prop_assert_eq!(freshness, Freshness::New),
                    (false, false) => prop_assert_ne!(freshness, Freshness::Replayed),
                }
                if freshness == Freshness::New {
                    come.insert(counter);
                    greatest = Some(greatest.map_or(counter, |it| it.max(counter)));
                }
            }
        }
    }
}
