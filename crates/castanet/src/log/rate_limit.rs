//! A limit on messages of one cause: beyond it they are counted.

use super::Level;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Time over which messages of a cause are counted.
pub(super) const WINDOW: Duration = Duration::from_secs(5);
/// Messages of one cause that are written in that time.
const MOST: u64 = 20;
/// Causes that are told apart; messages of others have a cause in common.
const MOST_CAUSES: usize = 1000;
/// The cause of messages beyond those.
const OTHERS: &str = "messages of other causes";
/// Characters of a message by which its cause is known.
const LENGTH: usize = 100;

/// Counts of messages by cause.
#[derive(Default)]
pub(super) struct RateLimit {
    causes: HashMap<String, CauseCount>,
}

/// Messages of one cause since the first.
struct CauseCount {
    since: Instant,
    level: Level,
    count: u64,
}

/// The cause of a message: its first line, with numbers left out. Messages about the same thing that
/// differ in counts, times and addresses have one cause.
pub(super) fn cause(text: &str) -> String {
    let mut cause = String::new();
    for c in text.lines().next().unwrap_or_default().chars().take(LENGTH) {
        match c {
            '0'..='9' if cause.ends_with('#') => {}
            '0'..='9' => cause.push('#'),
            c => cause.push(c),
        }
    }
    cause
}

impl RateLimit {
    /// Counts a message; returns whether it is to be written.
    pub(super) fn admits(&mut self, cause: &str, level: Level, now: Instant) -> bool {
        let is_known = self.causes.len() < MOST_CAUSES || self.causes.contains_key(cause);
        let cause = if is_known { cause } else { OTHERS };
        let first = || CauseCount { since: now, level, count: 0 };
        let entry = self.causes.entry(cause.to_owned()).or_insert_with(first);
        entry.count += 1;
        entry.level = entry.level.min(level);
        entry.count <= MOST
    }

    /// Forgets the causes whose time is over; returns those with suppressed messages, and how many.
    pub(super) fn take_over(&mut self, now: Instant) -> Vec<(String, Level, u64)> {
        let mut over = Vec::new();
        self.causes.retain(|cause, it| {
            let goes_on = now.saturating_duration_since(it.since) < WINDOW;
            if !goes_on && it.count > MOST {
                over.push((cause.clone(), it.level, it.count - MOST));
            }
            goes_on
        });
        over.sort();
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_differ_in_numbers_have_one_cause() {
        assert_eq!(cause("lan1: 17 of 2048 packets\nmore"), "lan#: # of # packets");
        assert_ne!(cause("a: refused"), cause("b: refused"));
        assert_eq!(cause(&"\u{e9}".repeat(2 * LENGTH)).chars().count(), LENGTH);
    }

    #[test]
    fn messages_beyond_the_limit_are_counted_by_cause() {
        let (mut limit, start) = (RateLimit::default(), Instant::now());
        let written = (0..100).filter(|_| limit.admits("a", Level::Info, start)).count() as u64;
        assert_eq!(written, MOST);
        assert!(limit.admits("b", Level::Info, start));
        assert!(limit.take_over(start + WINDOW / 2).is_empty());
        let over = limit.take_over(start + WINDOW);
        assert_eq!(over, [("a".to_owned(), Level::Info, 100 - MOST)]);
        assert!(limit.admits("a", Level::Info, start + WINDOW));
    }

    #[test]
    fn causes_without_end_take_bounded_memory_and_are_limited_together() {
        let (mut limit, start) = (RateLimit::default(), Instant::now());
        let name = |n: usize| "x".repeat(n + 1);
        let written = (0..2 * MOST_CAUSES).filter(|&n| limit.admits(&name(n), Level::Info, start));
        assert_eq!(written.count() as u64, MOST_CAUSES as u64 + MOST);
        assert!(limit.causes.len() <= MOST_CAUSES + 1);
    }
}
