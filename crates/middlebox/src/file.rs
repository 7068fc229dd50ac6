//! Files of rules: read whole and checked, or refused.

use crate::analysis::{Remark, warnings_of_all};
use crate::language::{Command, commands};
use crate::rule::Rule;
use crate::rules::Other;
use castanet_engine::args::ArgError;
use castanet_engine::files::HandlerFiles;
use std::fs::File;
use std::io::Read;

/// How long a file may be: several million rules.
const LONGEST: usize = 256 << 20;
/// How many rules it may have. With its place in the tables a rule takes up to a kilobyte.
const MOST_RULES: usize = 1 << 22;
/// How many errors and how many warnings are said.
pub(crate) const MOST_SAID: usize = 20;

/// The rules of a file, what it says of packets that are no IP packets, and what is doubtful about
/// the rules, with lines.
#[derive(Default)]
pub(crate) struct Loaded {
    pub(crate) rules: Vec<Rule>,
    pub(crate) other: Option<Other>,
    pub(crate) warnings: Vec<String>,
}

/// Reads a file that the configuration names. `misplaced` says why a rule can do nothing where it
/// is to be.
pub(crate) fn load(
    path: &str,
    misplaced: impl Fn(&Rule) -> Option<Remark>,
) -> Result<Loaded, ArgError> {
    let text = read(path, LONGEST)?;
    rules_of(&text, misplaced).map_err(|error| error.at(path))
}

/// The same of a file that a command names.
pub(crate) fn load_named(
    files: &HandlerFiles,
    path: &str,
    misplaced: impl Fn(&Rule) -> Option<Remark>,
) -> Result<Loaded, ArgError> {
    let text = text_of(path, files.read("load", path, LONGEST)?)?;
    rules_of(&text, misplaced).map_err(|error| error.at(path))
}

/// The text of a file that is no longer than that; an endless one is not read to its end.
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
    text_of(path, bytes)
}

fn text_of(path: &str, bytes: Vec<u8>) -> Result<String, ArgError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() + 1;
        ArgError::new(format!("this is no text of rules: byte {at} is not UTF-8")).at(path)
    })
}

/// The rules of a text of commands that do nothing but add some.
fn rules_of(text: &str, misplaced: impl Fn(&Rule) -> Option<Remark>) -> Result<Loaded, ArgError> {
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    let lines = text.lines().filter(|line| !line.trim_start().is_empty()).count();
    if lines > MOST_RULES {
        let what = format!("{lines} lines of rules; there can be {MOST_RULES}");
        return Err(ArgError::new(what));
    }
    let commands = commands(text).map_err(|faults| {
        let said = faults.iter().take(MOST_SAID).map(|fault| {
            let help = fault.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
            format!("line {}: {}{help}", line(fault.range.start), fault.message)
        });
        all_wrong(said.collect(), faults.len())
    })?;
    let (mut rules, mut starts) = (Vec::with_capacity(commands.len()), Vec::new());
    let (mut other, mut wrong) = (None, Vec::new());
    for (at, command) in commands {
        match command {
            Command::Add(rule) => {
                match misplaced(&rule).filter(|_| wrong.len() <= MOST_SAID) {
                    Some(remark) => {
                        wrong.push(format!("line {}: {}", line(at), remark.line(&rule)))
                    }
                    None => rules.push(rule),
                }
                starts.push(at);
            }
            Command::SetOther(it) => other = Some(it),
            _ => wrong.push(format!("line {}: a file of rules only adds rules", line(at))),
        }
        if wrong.len() > MOST_SAID {
            break;
        }
    }
    if !wrong.is_empty() {
        let count = wrong.len();
        wrong.truncate(MOST_SAID);
        return Err(all_wrong(wrong, count));
    }
    let warnings = warnings_of_all(rules.iter(), MOST_SAID).into_iter();
    let warnings = warnings
        .map(|(at, remark)| format!("line {}: {}", line(starts[at]), remark.line(&rules[at])))
        .collect();
    Ok(Loaded { rules, other, warnings })
}

/// All that is wrong with a file, a line each.
fn all_wrong(mut said: Vec<String>, count: usize) -> ArgError {
    if count > said.len() {
        said.push("and more".into());
    }
    ArgError::new(said.join("\n"))
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
    fn what_is_endless_or_no_text_is_refused_before_it_takes_memory() {
        let said = |path: &str, longest| read(path, longest).expect_err(path).message();
        let zeros = said("/dev/zero", LONGEST);
        assert_eq!(zeros, "/dev/zero: this is no text of rules: it has a byte that is zero");
        let odd = file("odd", b"all drop\n\xff");
        assert!(said(&odd, 100).ends_with("this is no text of rules: byte 10 is not UTF-8"));
        let long = file("long", "all drop\n".repeat(1 << 18).as_bytes());
        let words = "a file of rules may be 2 MiB long, and this one is longer";
        assert!(said(&long, 2 << 20).ends_with(words));
        assert!(read(&long, 3 << 20).is_ok());
        [odd, long].iter().for_each(|path| std::fs::remove_file(path).expect("was there"));
        assert!(said("/", 10).starts_with("/: Is a directory"));
    }

    #[test]
    fn all_that_is_wrong_is_said_with_lines_and_not_without_end() {
        let refused = |text: &str| {
            let loaded = rules_of(text, |rule| {
                let is_long = rule.matches.len() > 2;
                let part = crate::analysis::Part::Match(2);
                is_long.then(|| Remark::new(part, "is long".into(), "be short".to_owned()))
            });
            loaded.err().map(|error| error.message()).unwrap_or_default()
        };
        assert_eq!(refused("all drop\n\n# none\nflush"), "line 4: a file of rules only adds rules");
        assert_eq!(
            refused("tcp-syn tcp-ack tcp-rst drop\nall drop"),
            "line 1: `tcp-rst`: is long; be short"
        );
        let many = refused(&"all dorp\n".repeat(100));
        assert_eq!((many.lines().count(), many.lines().last()), (MOST_SAID + 1, Some("and more")));
        let lines = refused(&"all drop\n".repeat(MOST_RULES + 1));
        assert_eq!(lines, "4194305 lines of rules; there can be 4194304");
    }
}
