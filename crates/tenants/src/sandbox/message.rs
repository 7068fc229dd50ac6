//! Lines by which a tenant's process tells its parent its state.

use super::Protection;

/// A line from a tenant's process. The parent believes none of them: they are for people, and a process
/// that lies is only described wrongly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProcessMessage {
    /// Number of the process, as the parent sees it.
    Pid(u32),
    /// A protection that the kernel does not give, and the reason.
    Lacks(Protection, String),
    /// The router runs, confined; a sentence about it.
    Running(String),
    /// All workers have made a turn since the last line of this kind.
    Alive,
    /// The process must not be started again: it can never run as the system file wants it.
    Refused(String),
    /// How the process has ended.
    Ended(String),
}

impl ProcessMessage {
    /// The line, without its end.
    pub fn line(&self) -> String {
        let text = match self {
            ProcessMessage::Pid(pid) => format!("pid {pid}"),
            ProcessMessage::Lacks(it, why) => format!("lacks {it} {why}"),
            ProcessMessage::Running(sentence) => format!("running {sentence}"),
            ProcessMessage::Alive => "alive".to_owned(),
            ProcessMessage::Refused(why) => format!("refused {why}"),
            ProcessMessage::Ended(how) => format!("ended {how}"),
        };
        text.replace('\n', " ")
    }

    /// The message of a line; `None` if it is none.
    pub fn parse(line: &str) -> Option<ProcessMessage> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let text = || printable(rest);
        Some(match word {
            "pid" => ProcessMessage::Pid(rest.parse().ok()?),
            "lacks" => {
                let (name, why) = rest.split_once(' ')?;
                ProcessMessage::Lacks(name.parse().ok()?, printable(why))
            }
            "running" => ProcessMessage::Running(text()),
            "alive" => ProcessMessage::Alive,
            "refused" => ProcessMessage::Refused(text()),
            "ended" => ProcessMessage::Ended(text()),
            _ => return None,
        })
    }
}

/// Text of a process that is not trusted, for logs and tables: control characters are shown as `?`.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood_and_others_are_not() {
        for message in [
            ProcessMessage::Pid(7),
            ProcessMessage::Lacks(Protection::Landlock, "the kernel has no Landlock".into()),
            ProcessMessage::Running("no files".into()),
            ProcessMessage::Alive,
            ProcessMessage::Refused("it requires landlock".into()),
            ProcessMessage::Ended("exit status 1".into()),
        ] {
            assert_eq!(ProcessMessage::parse(&message.line()), Some(message));
        }
        for line in ["", "pid", "pid -1", "lacks landlock", "lacks walls none", "Alive"] {
            assert_eq!(ProcessMessage::parse(line), None, "{line}");
        }
        let hostile = ProcessMessage::parse("ended \u{1b}[2Jgone");
        assert_eq!(hostile, Some(ProcessMessage::Ended("?[2Jgone".into())));
    }
}
