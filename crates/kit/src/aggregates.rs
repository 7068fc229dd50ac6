//! Counts by aggregate, and the file that they are written to.

use crate::cow_vec::CowVec;
use rapidhash::RapidHashMap;

/// A count for each aggregate that was seen.
#[derive(Clone, Debug, Default)]
pub struct Aggregates {
    /// Where the count of an aggregate is.
    places: RapidHashMap<u32, u32>,
    counts: CowVec<(u32, u64)>,
    total: u64,
}

/// The counts of a moment, to be sorted and written while others are counted.
#[derive(Clone, Debug)]
pub struct Snapshot(CowVec<(u32, u64)>);

/// How many counts are looked at for one piece of a text: some 200 µs.
const PIECE: usize = 4096;

impl Aggregates {
    /// How many aggregates have a count.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// All counts together.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether an aggregate has a count.
    #[inline]
    pub fn knows(&self, aggregate: u32) -> bool {
        self.places.contains_key(&aggregate)
    }

    /// Adds to the count of an aggregate.
    #[inline]
    pub fn add(&mut self, aggregate: u32, amount: u64) {
        if amount > 0 {
            let place = *self.places.entry(aggregate).or_insert(self.counts.len() as u32) as usize;
            match self.counts.get_mut(place) {
                Some((_, count)) => *count += amount,
                None => self.counts.push((aggregate, amount)),
            }
            self.total += amount;
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Aggregates::default();
    }

    /// Makes each count an aggregate, counted as often as it appeared.
    pub fn reaggregate(&mut self) {
        let old = std::mem::take(self);
        // Files have 32 bits for a count, and an aggregate has no more.
        let counts = old.counts.iter_from(0);
        counts.for_each(|&(_, count)| self.add(count.min(u32::MAX.into()) as u32, 1));
    }

    /// The counts of now; none of them is looked at.
    pub fn snapshot(&mut self) -> Snapshot {
        self.counts.share();
        Snapshot(self.counts.clone())
    }

    /// Counts alone, a line each, of as many aggregates as take a moment, from place `from` on, and
    /// where others begin; for [`counts_pdf`].
    pub fn lines(&self, from: usize) -> (String, Option<usize>) {
        let end = from.saturating_add(PIECE).min(self.len());
        let counts = self.counts.iter_from(from).take(PIECE);
        let text = counts.map(|(_, count)| format!("{count}\n")).collect();
        (text, (end < self.len()).then_some(end))
    }
}

impl Snapshot {
    /// Aggregates and counts, the smallest aggregate first.
    pub fn sorted(&self) -> Vec<(u32, u64)> {
        let mut all: Vec<_> = self.0.iter_from(0).copied().collect();
        all.sort_unstable();
        all
    }

    /// A file: the banner, how many aggregates there are, a line for each.
    pub fn text(&self, banner: &str) -> String {
        let head = format!("{banner}$num_nonzero {}\n", self.0.len());
        self.sorted().iter().fold(head, |text, (a, n)| text + &format!("{a} {n}\n"))
    }

    /// The same in binary: aggregate and count of four bytes each.
    pub fn packed(&self, banner: &str) -> Vec<u8> {
        let order = if cfg!(target_endian = "little") { "le" } else { "be" };
        let head = format!("{banner}$num_nonzero {}\n$packed_{order}\n", self.0.len());
        let mut bytes = head.into_bytes();
        for (aggregate, count) in self.sorted() {
            bytes.extend(aggregate.to_ne_bytes());
            bytes.extend((count.min(u32::MAX.into()) as u32).to_ne_bytes());
        }
        bytes
    }
}

/// Which share of the aggregates has which count, of what [`Aggregates::lines`] has said.
pub fn counts_pdf(lines: String) -> String {
    let (mut by_count, mut all) = (Aggregates::default(), 0u32);
    for count in lines.lines().filter_map(|line| line.parse::<u64>().ok()) {
        by_count.add(count.min(u32::MAX.into()) as u32, 1);
        all += 1;
    }
    let line =
        |(count, times): &(u32, u64)| format!("{count} {}\n", *times as f64 / f64::from(all));
    by_count.snapshot().sorted().iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Aggregates {
        let mut it = Aggregates::default();
        [(7, 2), (3, 5), (7, 3), (9, 1), (4, 0)].iter().for_each(|&(a, n)| it.add(a, n));
        it
    }

    #[test]
    fn counts_add_up_and_are_written_in_order() {
        let mut it = some();
        assert_eq!((it.len(), it.total(), it.knows(4)), (3, 11, false));
        assert_eq!(it.snapshot().text("#x\n"), "#x\n$num_nonzero 3\n3 5\n7 5\n9 1\n");
        let packed = it.snapshot().packed("");
        assert!(packed.starts_with(b"$num_nonzero 3\n$packed_"));
        assert_eq!(packed[packed.len() - 24..][..4], 3u32.to_ne_bytes());
        let (lines, next) = it.lines(0);
        assert_eq!(
            (counts_pdf(lines), next),
            (format!("1 {}\n5 {}\n", 1.0 / 3.0, 2.0 / 3.0), None)
        );
    }

    #[test]
    fn long_tables_come_in_pieces() {
        let (mut it, mut text, mut from) = (Aggregates::default(), String::new(), Some(0));
        (0..3 * PIECE as u32 + 1).for_each(|aggregate| it.add(aggregate, 2));
        let mut pieces = 0;
        while let Some(place) = from {
            let piece = it.lines(place);
            assert!(piece.0.lines().count() <= PIECE);
            text += &piece.0;
            from = piece.1;
            pieces += 1;
        }
        assert_eq!((pieces, text.lines().count()), (4, it.len()));
        assert_eq!(counts_pdf(text), "2 1\n");
    }

    #[test]
    fn a_file_of_a_million_is_written_of_counts_that_are_not_copied() {
        let mut it = Aggregates::default();
        (0..1 << 20).rev().for_each(|aggregate| it.add(aggregate, 2));
        let snapshot = it.snapshot();
        assert_eq!((it.counts.own_chunks(), snapshot.0.own_chunks()), (0, 0));
        // What is counted then is not in the file, and copies what lies beside it alone.
        it.add(9, 1);
        it.add(8, 1);
        assert_eq!(it.counts.own_chunks(), 1);
        let text = snapshot.text("");
        let (head, lines) = text.split_once('\n').unwrap();
        assert_eq!(head, "$num_nonzero 1048576");
        assert!(lines.lines().enumerate().all(|(n, line)| line == format!("{n} 2")));
        assert_eq!(it.snapshot().sorted()[7..10], [(7, 2), (8, 3), (9, 3)]);
    }

    #[test]
    fn counts_become_aggregates() {
        let mut it = some();
        it.reaggregate();
        assert_eq!(it.snapshot().sorted(), [(1, 1), (5, 2)]);
        assert_eq!(it.total(), 3);
        it.clear();
        assert!(it.is_empty());
    }
}
