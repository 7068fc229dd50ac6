//! Loads files of rules: completely, or not at all.

use crate::analysis::{RuleDiagnostic, warnings_of_all};
use crate::language::{Command, commands};
use crate::rule::Rule;
use crate::rule_set::NonIpPolicy;
use castanet_element::error::ArgError;
use castanet_element::files::HandlerFiles;
use std::fs::File;
use std::io::Read;

/// Maximum size: several million rules.
const LONGEST: usize = 256 << 20;
/// Maximum number of rules. In the tables a rule takes up to a kilobyte.
const MOST_RULES: usize = 1 << 22;
/// Maximum number of errors and of warnings that are reported.
pub(crate) const MAX_REPORTED: usize = 20;

/// The contents of a file: rules, `other` policy, and warnings with line numbers.
#[derive(Default)]
pub(crate) struct RuleFile {
    pub(crate) rules: Vec<Rule>,
    pub(crate) other: Option<NonIpPolicy>,
    pub(crate) warnings: Vec<String>,
}

/// Loads a file that the configuration names. `placement_error` tells why a rule has no effect in
/// this element.
pub(crate) fn load(
    path: &str,
    placement_error: impl Fn(&Rule) -> Option<RuleDiagnostic>,
) -> Result<RuleFile, ArgError> {
    let text = read(path, LONGEST)?;
    parse_rules(&text, placement_error).map_err(|error| error.at(path))
}

/// Loads a file that a command names.
pub(crate) fn load_named(
    files: &HandlerFiles,
    path: &str,
    placement_error: impl Fn(&Rule) -> Option<RuleDiagnostic>,
) -> Result<RuleFile, ArgError> {
    let text = decode(path, files.read("load", path, LONGEST)?)?;
    parse_rules(&text, placement_error).map_err(|error| error.at(path))
}

/// Reads a file of at most that length; an endless one is not read to its end.
fn read(path: &str, longest: usize) -> Result<String, ArgError> {
    const PIECE: usize = 1 << 20;
    let failed = |error: std::io::Error| ArgError::of_file(path, &error);
    let wrong = |what: String| Err(ArgError::new(what).at(path));
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    loop {
        let start = bytes.len();
        let count = (&mut file).take(PIECE as u64).read_to_end(&mut bytes).map_err(failed)?;
        if bytes[start..].contains(&0) {
            return wrong("this is no text of rules: it has a byte that is zero".into());
        }
        if bytes.len() > longest {
            let most = longest >> 20;
            return wrong(format!(
                "a file of rules may be {most} MiB long, and this one is longer"
            ));
        }
        if count == 0 {
            break;
        }
    }
    decode(path, bytes)
}

fn decode(path: &str, bytes: Vec<u8>) -> Result<String, ArgError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() + 1;
        ArgError::new(format!("this is no text of rules: byte {at} is not UTF-8")).at(path)
    })
}

/// Parses a text of commands that only add rules.
pub(crate) fn parse_rules(
    text: &str,
    placement_error: impl Fn(&Rule) -> Option<RuleDiagnostic>,
) -> Result<RuleFile, ArgError> {
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    let lines = text.lines().filter(|line| !line.trim_start().is_empty()).count();
    if lines > MOST_RULES {
        let what = format!("{lines} lines of rules; there can be {MOST_RULES}");
        return Err(ArgError::new(what));
    }
    let commands = commands(text).map_err(|faults| {
        let lines = faults.iter().take(MAX_REPORTED).map(|fault| {
            let help = fault.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
            format!("line {}: {}{help}", line(fault.range.start), fault.message)
        });
        combined_error(lines.collect(), faults.len())
    })?;
    let (mut rules, mut starts) = (Vec::with_capacity(commands.len()), Vec::new());
    let (mut other, mut wrong) = (None, Vec::new());
    for (at, command) in commands {
        match command {
            Command::Add(rule) => {
                match placement_error(&rule).filter(|_| wrong.len() <= MAX_REPORTED) {
                    Some(remark) => {
                        wrong.push(format!("line {}: {}", line(at), remark.line(&rule)))
                    }
                    None => rules.push(rule),
                }
                starts.push(at);
            }
            Command::SetNonIpPolicy(it) => other = Some(it),
            _ => wrong.push(format!("line {}: a file of rules only adds rules", line(at))),
        }
        if wrong.len() > MAX_REPORTED {
            break;
        }
    }
    if !wrong.is_empty() {
        let count = wrong.len();
        wrong.truncate(MAX_REPORTED);
        return Err(combined_error(wrong, count));
    }
    let warnings = warnings_of_all(rules.iter(), MAX_REPORTED).into_iter();
    let warnings = warnings
        .map(|(at, remark)| format!("line {}: {}", line(starts[at]), remark.line(&rules[at])))
        .collect();
    Ok(RuleFile { rules, other, warnings })
}

/// Combines the errors of a file, one a line.
fn combined_error(mut lines: Vec<String>, count: usize) -> ArgError {
    if count > lines.len() {
        lines.push("and more".into());
    }
    ArgError::new(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, bytes: &[u8]) -> String {
        let path = std::env::temp_dir().join(format!("castanet-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("can be written");
        path.display().to_string()
    }

    #[test]
    fn endless_and_binary_files_are_refused_early() {
        let lines = |path: &str, longest| read(path, longest).expect_err(path).message();
        let zeros = lines("/dev/zero", LONGEST);
        assert_eq!(zeros, "/dev/zero: this is no text of rules: it has a byte that is zero");
        let odd = file("odd", b"all drop\n\xff");
        assert!(lines(&odd, 100).ends_with("this is no text of rules: byte 10 is not UTF-8"));
        let long = file("long", "all drop\n".repeat(1 << 18).as_bytes());
        let words = "a file of rules may be 2 MiB long, and this one is longer";
        assert!(lines(&long, 2 << 20).ends_with(words));
        assert!(read(&long, 3 << 20).is_ok());
        [odd, long].iter().for_each(|path| std::fs::remove_file(path).expect("was there"));
        assert!(lines("/", 10).starts_with("/: Is a directory"));
    }

    #[test]
    fn errors_have_line_numbers_and_a_limit() {
        let refused = |text: &str| {
            let loaded = parse_rules(text, |rule| {
                let is_long = rule.matches.len() > 2;
                let part = crate::analysis::RulePart::Match(2);
                is_long.then(|| RuleDiagnostic::new(part, "is long".into(), "be short".to_owned()))
            });
            loaded.err().map(|error| error.message()).unwrap_or_default()
        };
        assert_eq!(refused("all drop\n\n# none\nflush"), "line 4: a file of rules only adds rules");
        assert_eq!(
            refused("tcp-syn tcp-ack tcp-rst drop\nall drop"),
            "line 1: `tcp-rst`: is long; be short"
        );
        let many = refused(&"all dorp\n".repeat(100));
        assert_eq!(
            (many.lines().count(), many.lines().last()),
            (MAX_REPORTED + 1, Some("and more"))
        );
        let lines = refused(&"all drop\n".repeat(MOST_RULES + 1));
        assert_eq!(lines, "4194305 lines of rules; there can be 4194304");
    }
}
