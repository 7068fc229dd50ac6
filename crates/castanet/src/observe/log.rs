//! The last lines of the log, for clients of the instance.

use crate::log::Level;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of lines that are kept.
const ROOM: usize = 1 << 20;
/// Bytes of a line beyond which it is cut off.
const LONGEST: usize = 4096;

/// A line of the log.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct LogLine {
    /// Its number; lines count from 1.
    pub(crate) number: u64,
    /// Nanoseconds since the epoch.
    pub(crate) time: i64,
    /// Its importance; instances before this field have none.
    #[serde(default)]
    pub(crate) level: Level,
    pub(crate) text: String,
}

/// The last lines, and the beginning of one.
struct Log {
    lines: VecDeque<LogLine>,
    /// Bytes of all lines.
    bytes: usize,
    /// Lines so far.
    count: u64,
    /// A line that has not ended yet.
    unfinished: String,
}

static LOG: Mutex<Log> =
    Mutex::new(Log { lines: VecDeque::new(), bytes: 0, count: 0, unfinished: String::new() });

fn log() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a text of lines.
pub(crate) fn record(level: Level, text: &str) {
    log().record(level, text);
}

/// The lines with a greater number than `after` that are still kept, at most `most`: the last ones.
pub(crate) fn lines(after: u64, most: usize) -> Vec<LogLine> {
    let log = log();
    let newer = log.lines.partition_point(|line| line.number <= after);
    let from = newer.max(log.lines.len().saturating_sub(most));
    log.lines.range(from..).cloned().collect()
}

impl Log {
    fn record(&mut self, level: Level, text: &str) {
        for piece in text.split_inclusive('\n') {
            let room = LONGEST.saturating_sub(self.unfinished.len());
            let ends = piece.ends_with('\n');
            let most = room.min(piece.len());
            let end = (0..=most).rev().find(|&end| piece.is_char_boundary(end));
            self.unfinished.push_str(&piece[..end.unwrap_or(0)]);
            if ends {
                self.finish_line(level);
            }
        }
    }

    fn finish_line(&mut self, level: Level) {
        let text = std::mem::take(&mut self.unfinished).trim_end().to_owned();
        // A line of an element may say its level.
        let level = Level::of(&text).unwrap_or(level);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.count += 1;
        self.bytes += text.len();
        let time = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        self.lines.push_back(LogLine { number: self.count, time, level, text });
        while self.bytes > ROOM || self.lines.len() > ROOM / 64 {
            let Some(line) = self.lines.pop_front() else { break };
            self.bytes -= line.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_and_old_ones_go() {
        let mut log = Log { lines: VecDeque::new(), bytes: 0, count: 0, unfinished: String::new() };
        log.record(Level::Info, "one\ntw");
        log.record(Level::Info, "o\n\nthree");
        let texts: Vec<&str> = log.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["one", "two", ""]);
        log.record(Level::Info, &("\u{e9}".repeat(LONGEST) + "\n"));
        let last = log.lines.back().map(|line| line.text.len()).unwrap_or_default();
        assert!((LONGEST - 8..=LONGEST).contains(&last), "{last}");
        (0..2 * ROOM / 64).for_each(|_| log.record(Level::Info, "some line\n"));
        assert!(log.bytes <= ROOM && log.lines.len() <= ROOM / 64);
        assert_eq!(log.lines.back().map(|line| line.number), Some(log.count));
    }
}
