//! The log: messages of the program and lines of elements, with levels, times and causes, in the form
//! that the user has chosen. Without a choice they are the plain lines that Click prints.

mod format;
mod rate_limit;

pub(crate) use format::{Level, LogFormat};

use crate::messages;
use castanet_wire::Timestamp;
use clap::Args;
use format::Record;
use rate_limit::RateLimit;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time between two looks for causes whose suppressed messages are to be counted.
pub(crate) const SUMMARY_INTERVAL: Duration = rate_limit::WINDOW;

/// Bytes of a line that has not ended, beyond which it ends.
const LONGEST: usize = 4096;

/// Arguments about the log.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LogArguments {
    /// Write messages with time and level, as text or JSON lines, or with priorities for the journal
    /// [default: plain lines, or `journal` where systemd has connected standard error with it]
    #[arg(long, value_name = "FORMAT", value_enum)]
    log: Option<LogFormat>,
    /// Leave out messages below this level
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    log_level: Level,
}

/// The log of the process.
struct Log {
    /// Plain lines if there is none.
    format: Option<LogFormat>,
    level: Level,
    limit: Option<RateLimit>,
    /// The beginning of a line of an element, and its rest comes later.
    unfinished: String,
}

static LOG: Mutex<Log> =
    Mutex::new(Log { format: None, level: Level::Debug, limit: None, unfinished: String::new() });

fn log() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogArguments {
    /// Has all messages from now on written as the arguments say.
    pub(crate) fn apply(&self) {
        let journal = || is_journal().then_some(LogFormat::Journal);
        let mut log = log();
        log.format = self.log.or_else(journal);
        log.level = self.log_level;
        log.limit = log.format.is_some().then(RateLimit::default);
    }
}

/// Whether standard error is the stream that systemd has connected with its journal.
fn is_journal() -> bool {
    let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let own = std::fs::metadata("/proc/self/fd/2");
    own.is_ok_and(|own| stream == format!("{}:{}", own.dev(), own.ino()))
}

/// Writes a message of the program.
pub(crate) fn message(level: Level, text: &str) {
    log().message(level, text);
}

/// Writes lines of elements, which may go on with the next call.
pub(crate) fn chatter(lines: &str) {
    log().chatter(lines);
}

/// Writes how many messages were suppressed, of causes that are over.
pub(crate) fn summarize() {
    log().summarize(Instant::now());
}

/// Writes what waits for the rest of its line, and how many messages were suppressed.
pub(crate) fn finish() {
    let mut log = log();
    let rest = std::mem::take(&mut log.unfinished);
    if !rest.is_empty() {
        log.put(Level::of(&rest).unwrap_or(Level::Info), &rest);
    }
    let over = Instant::now() + SUMMARY_INTERVAL;
    log.summarize(over);
}

impl Log {
    fn message(&mut self, level: Level, text: &str) {
        match self.format {
            _ if level > self.level => {}
            None => {
                let text = format!("{text}\n");
                crate::observe::log::record(level, &text);
                messages::write(&text);
            }
            Some(_) => self.put(level, text),
        }
    }

    fn chatter(&mut self, lines: &str) {
        if self.format.is_none() {
            if self.level >= Level::Info {
                crate::observe::log::record(Level::Info, lines);
                messages::write(lines);
            }
            return;
        }
        for piece in lines.split_inclusive('\n') {
            self.unfinished.push_str(piece.trim_end_matches('\n'));
            if piece.ends_with('\n') || self.unfinished.len() > LONGEST {
                let line = std::mem::take(&mut self.unfinished);
                self.put(Level::of(&line).unwrap_or(Level::Info), &line);
            }
        }
    }

    /// Writes a message in the chosen form, unless there were too many of its cause.
    fn put(&mut self, level: Level, text: &str) {
        if level > self.level {
            return;
        }
        let now = Instant::now();
        self.summarize(now);
        let cause = rate_limit::cause(text);
        if self.limit.as_mut().is_none_or(|limit| limit.admits(&cause, level, now)) {
            self.write(&Record { time: time(), level, cause: &cause, text, suppressed: None });
        }
    }

    fn summarize(&mut self, now: Instant) {
        let over = self.limit.as_mut().map(|limit| limit.take_over(now)).unwrap_or_default();
        for (cause, level, count) in over {
            let text = format!("castanet: {count} more like this: {cause}");
            let suppressed = Some(count);
            self.write(&Record { time: time(), level, cause: &cause, text: &text, suppressed });
        }
    }

    fn write(&self, record: &Record<'_>) {
        let Some(format) = self.format else { return };
        crate::observe::log::record(record.level, &format!("{}\n", record.text));
        messages::write(&record.formatted(format));
    }
}

fn time() -> Timestamp {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().into()
}
