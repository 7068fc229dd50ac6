//! Records of the log, and the forms in which they are written.

use castanet_wire::Timestamp;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Importance of a message, the greatest first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    // Something that was asked for cannot be done.
    Error,
    // The router goes on, but not as one may think.
    Warning,
    // The router's own course, and lines of elements.
    #[default]
    Info,
    // Details for authors of elements.
    Debug,
}

/// Forms of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    // Lines with time and level.
    Text,
    // A JSON object a line.
    Json,
    // Lines with a priority in front, for systemd's journal (`sd-daemon(3)`).
    Journal,
}

impl Level {
    /// The level of a message that says it by itself: `error: ...`, or `... warning: ...`.
    pub(crate) fn of(text: &str) -> Option<Level> {
        let line = text.lines().next().unwrap_or_default();
        let has = |word: &str| {
            line.match_indices(word).any(|(at, _)| at == 0 || line[..at].ends_with(": "))
        };
        match () {
            () if has("error: ") => Some(Level::Error),
            () if has("warning: ") => Some(Level::Warning),
            () if has("note: ") => Some(Level::Info),
            () => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }

    /// The priority of syslog.
    fn priority(self) -> u8 {
        match self {
            Level::Error => 3,
            Level::Warning => 4,
            Level::Info => 6,
            Level::Debug => 7,
        }
    }
}

/// A message on its way to the log.
pub(super) struct Record<'t> {
    pub(super) time: Timestamp,
    pub(super) level: Level,
    /// The message without its numbers.
    pub(super) cause: &'t str,
    pub(super) text: &'t str,
    /// In a summary, the number of messages that were not written.
    pub(super) suppressed: Option<u64>,
}

/// A record as JSON.
#[derive(Serialize)]
struct JsonRecord<'t> {
    time: String,
    level: Level,
    message: &'t str,
    cause: &'t str,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed: Option<u64>,
}

impl Record<'_> {
    /// The lines of the record, each with its end.
    pub(super) fn formatted(&self, format: LogFormat) -> String {
        let lines = |before: &str| {
            let text = self.text.trim_end();
            let lines = if text.is_empty() { vec![""] } else { text.lines().collect() };
            lines.iter().fold(String::new(), |all, line| all + before + line + "\n")
        };
        match format {
            LogFormat::Text => lines(&format!("{} {:<7} ", self.time.rfc3339(), self.level.name())),
            LogFormat::Journal => lines(&format!("<{}>", self.level.priority())),
            LogFormat::Json => {
                let record = JsonRecord {
                    time: self.time.rfc3339(),
                    level: self.level,
                    message: self.text.trim_end(),
                    cause: self.cause,
                    suppressed: self.suppressed,
                };
                serde_json::to_string(&record).unwrap_or_default() + "\n"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_time_or_priority_and_json_is_one_line() {
        let text = "error: no \"x\"\n  --> a.click:1";
        let time = "1000000000.25".parse().unwrap();
        let record = Record { time, level: Level::Error, cause: "c", text, suppressed: None };
        assert_eq!(
            record.formatted(LogFormat::Text),
            "2001-09-09T01:46:40.250Z error   error: no \"x\"\n\
             2001-09-09T01:46:40.250Z error     --> a.click:1\n"
        );
        assert_eq!(
            record.formatted(LogFormat::Journal),
            "<3>error: no \"x\"\n<3>  --> a.click:1\n"
        );
        assert_eq!(
            record.formatted(LogFormat::Json),
            "{\"time\":\"2001-09-09T01:46:40.250Z\",\"level\":\"error\",\
             \"message\":\"error: no \\\"x\\\"\\n  --> a.click:1\",\"cause\":\"c\"}\n"
        );
    }

    #[test]
    fn messages_may_say_their_level() {
        for (text, level) in [
            ("error: it", Some(Level::Error)),
            ("castanet: warning: it", Some(Level::Warning)),
            ("c :: ControlSocket: warning: it", Some(Level::Warning)),
            ("note: it", Some(Level::Info)),
            ("no error: here", None),
            ("it\nerror: it", None),
        ] {
            assert_eq!(Level::of(text), level, "{text}");
        }
    }
}
