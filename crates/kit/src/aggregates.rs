//! Counters by aggregate, and the file format that they are written in.

use crate::cow_vec::CowVec;
use rapidhash::RapidHashMap;
use std::net::Ipv4Addr;

/// A counter for each aggregate.
#[derive(Clone, Debug, Default)]
pub struct Aggregates {
    /// The index of each aggregate's counter.
    index: RapidHashMap<u32, u32>,
    counts: CowVec<(u32, u64)>,
    total: u64,
}

/// The counters at one moment, which can be sorted and written while counting goes on.
#[derive(Clone, Debug)]
pub struct Snapshot {
    counts: CowVec<(u32, u64)>,
    total: u64,
}

/// How many counters one part of a text covers: about 200 µs.
const LINES_PER_PART: usize = 4096;

impl Aggregates {
    /// How many aggregates have a counter.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there are no counters.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The sum of all counters.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether an aggregate has a counter.
    #[inline]
    pub fn contains(&self, aggregate: u32) -> bool {
        self.index.contains_key(&aggregate)
    }

    /// Adds to the counter of an aggregate.
    #[inline]
    pub fn add(&mut self, aggregate: u32, amount: u64) {
        if amount > 0 {
            let at = *self.index.entry(aggregate).or_insert(self.counts.len() as u32) as usize;
            match self.counts.get_mut(at) {
                Some((_, count)) => *count += amount,
                None => self.counts.push((aggregate, amount)),
            }
            self.total += amount;
        }
    }

    /// The aggregate and the count of a counter, by its number.
    pub fn at(&self, number: usize) -> Option<(u32, u64)> {
        self.counts.get(number).copied()
    }

    /// Removes all counters.
    pub fn clear(&mut self) {
        *self = Aggregates::default();
    }

    /// Makes each count an aggregate, and counts how often it appears.
    pub fn reaggregate(&mut self) {
        let old = std::mem::take(self);
        // Files have 32-bit counts, and an aggregate has no more bits.
        let counts = old.counts.iter_from(0);
        counts.for_each(|&(_, count)| self.add(count.min(u32::MAX.into()) as u32, 1));
    }

    /// Takes a snapshot, without visiting the counters.
    pub fn snapshot(&mut self) -> Snapshot {
        self.counts.share();
        Snapshot { counts: self.counts.clone(), total: self.total }
    }

    /// One part of the counts, one per line, from counter `from` on, and the start of the next
    /// part. The text is for [`counts_pdf`].
    pub fn lines(&self, from: usize) -> (String, Option<usize>) {
        let end = from.saturating_add(LINES_PER_PART).min(self.len());
        let counts = self.counts.iter_from(from).take(LINES_PER_PART);
        let text = counts.map(|(_, count)| format!("{count}\n")).collect();
        (text, (end < self.len()).then_some(end))
    }
}

impl Snapshot {
    /// Aggregates and counts, sorted by aggregate.
    pub fn sorted(&self) -> Vec<(u32, u64)> {
        let mut all: Vec<_> = self.counts.iter_from(0).copied().collect();
        all.sort_unstable();
        all
    }

    /// The first lines of each file: the format, the banner, and the number of aggregates.
    fn head(&self, banner: &str) -> String {
        let end = if banner.is_empty() || banner.ends_with('\n') { "" } else { "\n" };
        format!("!IPAggregate 1.0\n{banner}{end}!num_nonzero {}\n", self.counts.len())
    }

    /// A text file: `head`, and a line for each aggregate.
    fn lines(&self, head: String, line: impl Fn(u32, u64) -> String) -> Vec<u8> {
        let lines = self.sorted().into_iter().map(|(aggregate, count)| line(aggregate, count));
        lines.fold(head, |text, line| text + &line + "\n").into_bytes()
    }

    /// The text file: a line with aggregate and count for each.
    pub fn text(&self, banner: &str) -> Vec<u8> {
        self.lines(self.head(banner), |aggregate, count| format!("{aggregate} {count}"))
    }

    /// The text file with aggregates as IP addresses.
    pub fn ip_text(&self, banner: &str) -> Vec<u8> {
        self.lines(self.head(banner) + "!ip\n", |aggregate, count| {
            format!("{} {count}", Ipv4Addr::from(aggregate))
        })
    }

    /// The text file with the share of each aggregate in the total instead of its count.
    pub fn shares(&self, banner: &str) -> Vec<u8> {
        let total = self.total.max(1) as f64;
        self.lines(self.head(banner), |aggregate, count| {
            format!("{aggregate} {}", general(count as f64 / total))
        })
    }

    /// The binary file: aggregate and count, four bytes each.
    pub fn packed(&self, banner: &str) -> Vec<u8> {
        let order = if cfg!(target_endian = "little") { "le" } else { "be" };
        let mut bytes = (self.head(banner) + &format!("!packed_{order}\n")).into_bytes();
        for (aggregate, count) in self.sorted() {
            bytes.extend(aggregate.to_ne_bytes());
            bytes.extend((count.min(u32::MAX.into()) as u32).to_ne_bytes());
        }
        bytes
    }
}

/// A share from 0 to 1 with up to twelve significant digits, as C's `%.12g` prints it.
fn general(share: f64) -> String {
    let scientific = format!("{share:.11e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 {
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        return format!("{digits}e-{:02}", -exponent);
    }
    let decimals = usize::try_from(11 - exponent).unwrap_or(0);
    format!("{share:.decimals$}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The fraction of aggregates by count, from the text of [`Aggregates::lines`].
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

    fn example() -> Aggregates {
        let mut it = Aggregates::default();
        [(7, 2), (3, 5), (7, 3), (9, 1), (4, 0)].iter().for_each(|&(a, n)| it.add(a, n));
        it
    }

    #[test]
    fn counts_add_up_and_are_written_in_order() {
        let mut it = example();
        assert_eq!((it.len(), it.total(), it.contains(4)), (3, 11, false));
        let file = |bytes| String::from_utf8(bytes).unwrap();
        let head = "!IPAggregate 1.0\n#x\n!num_nonzero 3\n";
        assert_eq!(file(it.snapshot().text("#x\n")), format!("{head}3 5\n7 5\n9 1\n"));
        assert_eq!(
            file(it.snapshot().ip_text("#x")),
            format!("{head}!ip\n0.0.0.3 5\n0.0.0.7 5\n0.0.0.9 1\n")
        );
        assert_eq!(
            file(it.snapshot().shares("#x")),
            format!("{head}3 0.454545454545\n7 0.454545454545\n9 0.0909090909091\n")
        );
        let packed = it.snapshot().packed("");
        assert!(packed.starts_with(b"!IPAggregate 1.0\n!num_nonzero 3\n!packed_"));
        assert_eq!(packed[packed.len() - 24..][..4], 3u32.to_ne_bytes());
        let (lines, next) = it.lines(0);
        assert_eq!(
            (counts_pdf(lines), next),
            (format!("1 {}\n5 {}\n", 1.0 / 3.0, 2.0 / 3.0), None)
        );
    }

    #[test]
    fn long_tables_come_in_parts() {
        let (mut it, mut text, mut from) = (Aggregates::default(), String::new(), Some(0));
        (0..3 * LINES_PER_PART as u32 + 1).for_each(|aggregate| it.add(aggregate, 2));
        let mut parts = 0;
        while let Some(at) = from {
            let part = it.lines(at);
            assert!(part.0.lines().count() <= LINES_PER_PART);
            text += &part.0;
            from = part.1;
            parts += 1;
        }
        assert_eq!((parts, text.lines().count()), (4, it.len()));
        assert_eq!(counts_pdf(text), "2 1\n");
    }

    #[test]
    fn a_snapshot_of_a_million_counters_copies_none() {
        let mut it = Aggregates::default();
        (0..1 << 20).rev().for_each(|aggregate| it.add(aggregate, 2));
        let snapshot = it.snapshot();
        assert_eq!((it.counts.unshared_chunks(), snapshot.counts.unshared_chunks()), (0, 0));
        // Later counts are not in the file, and copy only the chunk that they change.
        it.add(9, 1);
        it.add(8, 1);
        assert_eq!(it.counts.unshared_chunks(), 1);
        let text = String::from_utf8(snapshot.text("")).unwrap();
        let (head, lines) = text.split_once("!num_nonzero 1048576\n").unwrap();
        assert_eq!(head, "!IPAggregate 1.0\n");
        assert!(lines.lines().enumerate().all(|(n, line)| line == format!("{n} 2")));
        assert_eq!(it.snapshot().sorted()[7..10], [(7, 2), (8, 3), (9, 3)]);
    }

    #[test]
    fn shares_have_twelve_digits() {
        let shares = [1.0, 0.25, 1.0 / 3.0, 0.0001, 1e-5, 1.0 / 3e7].map(general);
        assert_eq!(shares, ["1", "0.25", "0.333333333333", "0.0001", "1e-05", "3.33333333333e-08"]);
    }

    #[test]
    fn counts_become_aggregates() {
        let mut it = example();
        it.reaggregate();
        assert_eq!(it.snapshot().sorted(), [(1, 1), (5, 2)]);
        assert_eq!(it.total(), 3);
        it.clear();
        assert!(it.is_empty());
    }
}
