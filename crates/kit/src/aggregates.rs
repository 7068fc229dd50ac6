//! Counts by aggregate, and the file that they are written to.

use rapidhash::RapidHashMap;

/// A count for each aggregate that was seen.
#[derive(Clone, Debug, Default)]
pub struct Aggregates {
    counts: RapidHashMap<u32, u64>,
    total: u64,
}

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
        self.counts.contains_key(&aggregate)
    }

    /// Adds to the count of an aggregate.
    #[inline]
    pub fn add(&mut self, aggregate: u32, amount: u64) {
        if amount > 0 {
            *self.counts.entry(aggregate).or_default() += amount;
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
        old.counts.values().for_each(|&count| self.add(count.min(u32::MAX.into()) as u32, 1));
    }

    /// Aggregates and counts, the smallest aggregate first.
    pub fn sorted(&self) -> Vec<(u32, u64)> {
        let mut all: Vec<_> = self.counts.iter().map(|(&a, &n)| (a, n)).collect();
        all.sort_unstable();
        all
    }

    /// A file: the banner, how many aggregates there are, a line for each.
    pub fn text(&self, banner: &str) -> String {
        let head = format!("{banner}$num_nonzero {}\n", self.len());
        self.sorted().iter().fold(head, |text, (a, n)| text + &format!("{a} {n}\n"))
    }

    /// The same in binary: aggregate and count of four bytes each.
    pub fn packed(&self, banner: &str) -> Vec<u8> {
        let order = if cfg!(target_endian = "little") { "le" } else { "be" };
        let head = format!("{banner}$num_nonzero {}\n$packed_{order}\n", self.len());
        let mut bytes = head.into_bytes();
        for (aggregate, count) in self.sorted() {
            bytes.extend(aggregate.to_ne_bytes());
            bytes.extend((count.min(u32::MAX.into()) as u32).to_ne_bytes());
        }
        bytes
    }

    /// The counts alone, in steps of doubling width: how many aggregates have
    /// which share of the whole.
    pub fn counts_pdf(&self) -> String {
        let mut by_count = Aggregates::default();
        self.counts.values().for_each(|&n| by_count.add(n.min(u32::MAX.into()) as u32, 1));
        let all = self.len().max(1) as f64;
        let line = |(count, times): &(u32, u64)| format!("{count} {}\n", *times as f64 / all);
        by_count.sorted().iter().map(line).collect()
    }
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
        let it = some();
        assert_eq!((it.len(), it.total(), it.knows(4)), (3, 11, false));
        assert_eq!(it.text("#x\n"), "#x\n$num_nonzero 3\n3 5\n7 5\n9 1\n");
        let packed = it.packed("");
        assert!(packed.starts_with(b"$num_nonzero 3\n$packed_"));
        assert_eq!(packed[packed.len() - 24..][..4], 3u32.to_ne_bytes());
        assert_eq!(it.counts_pdf(), format!("1 {}\n5 {}\n", 1.0 / 3.0, 2.0 / 3.0));
    }

    #[test]
    fn counts_become_aggregates() {
        let mut it = some();
        it.reaggregate();
        assert_eq!(it.sorted(), [(1, 1), (5, 2)]);
        assert_eq!(it.total(), 3);
        it.clear();
        assert!(it.is_empty());
    }
}
