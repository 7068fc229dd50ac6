//! Answers of a router that is not trusted.

use crate::control::protocol::OK;

/// The codes of answers to commands that failed.
const FAILURES: std::ops::RangeInclusive<u16> = 500..=599;

/// The most lines of a reason.
const MOST_LINES: usize = 1000;

/// One whole answer of the control protocol. Its texts are those of a process that is not trusted.
#[derive(PartialEq, Eq, Debug)]
pub enum RemoteReply {
    /// The value of a handler, in which control characters other than line ends and tabulators are `?`.
    Value(String),
    /// The command was executed.
    Success,
    /// The command failed.
    Failure {
        /// The code.
        code: u16,
        /// The lines of the reason.
        lines: Vec<String>,
    },
}

impl RemoteReply {
    /// The answer of these bytes; `None` if they are not exactly one.
    pub fn parse(bytes: &[u8]) -> Option<RemoteReply> {
        let (mut rest, mut lines) = (bytes, Vec::new());
        let code = loop {
            let (line, behind) = line(rest)?;
            rest = behind;
            let (code, text) = (line.get(..3)?, line.get(4..)?);
            let code = code.parse::<u16>().ok().filter(|_| !code.starts_with('+'))?;
            if lines.len() == MOST_LINES {
                return None;
            }
            lines.push(text.to_owned());
            match line.as_bytes()[3] {
                b' ' => break code,
                b'-' => {}
                _ => return None,
            }
        };
        match (code, rest) {
            (OK, b"") => Some(RemoteReply::Success),
            (OK, data) => {
                let (head, value) = line(data)?;
                let length: usize = head.strip_prefix("DATA ")?.parse().ok()?;
                (length == value.len()).then(|| RemoteReply::Value(printable(value)))
            }
            (code, b"") if FAILURES.contains(&code) => Some(RemoteReply::Failure { code, lines }),
            _ => None,
        }
    }
}

/// The first line, and the bytes behind it.
fn line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 2..]))
}

/// Text without characters that could command a terminal.
fn printable(value: &[u8]) -> String {
    let is_safe = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    let text = String::from_utf8_lossy(value);
    text.chars().map(|c| if is_safe(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn failure(code: u16, lines: &[&str]) -> RemoteReply {
        RemoteReply::Failure { code, lines: lines.iter().map(|&it| it.to_owned()).collect() }
    }

    #[test]
    fn whole_answers_are_understood_and_others_are_not() {
        let value = |text: &str| RemoteReply::Value(text.to_owned());
        for (bytes, reply) in [
            ("200 OK\r\nDATA 2\r\n42", value("42")),
            ("200-a\r\n200 OK\r\nDATA 0\r\n", value("")),
            ("200 OK\r\nDATA 6\r\na\x1b[2J\n", value("a?[2J\n")),
            ("200 OK\r\n", RemoteReply::Success),
            ("511 none\r\n", failure(511, &["none"])),
            ("590-a\r\n590 b c\r\n", failure(590, &["a", "b c"])),
        ] {
            assert_eq!(RemoteReply::parse(bytes.as_bytes()), Some(reply), "{bytes:?}");
        }
        for bytes in [
            "",
            "\r\n",
            "200",
            "200\r\n",
            "200 OK",
            "200+OK\r\n",
            "+20 OK\r\n",
            "2\u{e9}0 OK\r\n",
            "200-OK\r\n",
            "200 OK\r\n200 OK\r\n",
            "200 OK\r\nDATA 3\r\n42",
            "200 OK\r\nDATA 1\r\n42",
            "200 OK\r\nDATA 18446744073709551615\r\n42",
            "200 OK\r\nDATA -1\r\n",
            "511 none\r\nDATA 2\r\n42",
            "100 why\r\n",
            "600 why\r\n",
        ] {
            assert_eq!(RemoteReply::parse(bytes.as_bytes()), None, "{bytes:?}");
        }
        assert_eq!(RemoteReply::parse(b"200 \xff\r\n"), None);
        let lines = |count| "500-x\r\n".repeat(count - 1) + "500 x\r\n";
        assert!(RemoteReply::parse(lines(MOST_LINES).as_bytes()).is_some());
        assert!(RemoteReply::parse(lines(MOST_LINES + 1).as_bytes()).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_refused(
            code in 0u16..1000, mark: bool, text: Vec<u8>, length in 0usize..40, data: Vec<u8>,
        ) {
            let mark = if mark { ' ' } else { '-' };
            let head = format!("{code:03}{mark}");
            let line = format!("\r\nDATA {length}\r\n");
            for bytes in [
                text.clone(),
                [head.as_bytes(), &text, b"\r\n", &data].concat(),
                [head.as_bytes(), b"x", line.as_bytes(), &data].concat(),
            ] {
                match RemoteReply::parse(&bytes) {
                    Some(RemoteReply::Value(text)) => {
                        prop_assert!(text.chars().all(|c| !c.is_control() || "\r\n\t".contains(c)));
                    }
                    Some(RemoteReply::Failure { code, lines }) => {
                        prop_assert!(FAILURES.contains(&code) && !lines.is_empty());
                    }
                    Some(RemoteReply::Success) | None => {}
                }
            }
        }
    }
}
