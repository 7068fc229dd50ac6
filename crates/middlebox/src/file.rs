//! Loads files of rules: completely, or not at all.

use crate::analysis::{RuleDiagnostic, warnings_of_all};
use crate::chains::Chains;
use crate::language::{Command, Timeout, command, commands};
use crate::named_sets::{NamedSets, SetChange, SetElement};
use crate::rule::{Rule, RuleComment};
use crate::rule_set::{NonIpPolicy, RuleSet};
use castanet_element::error::ArgError;
use castanet_element::files::HandlerFiles;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

/// Maximum size: several million rules.
const LONGEST: usize = 256 << 20;
/// Maximum number of rules. In the tables a rule takes up to a kilobyte.
const MOST_RULES: usize = 1 << 22;
/// Maximum number of errors and of warnings that are reported.
pub(crate) const MAX_REPORTED: usize = 20;

/// The contents of a file: rules whose sets have their values, settings, and warnings with line
/// numbers.
#[derive(Default)]
pub(crate) struct RuleFile {
    pub(crate) rules: Vec<Rule>,
    pub(crate) other: Option<NonIpPolicy>,
    pub(crate) timeouts: Vec<(Timeout, u32)>,
    pub(crate) sets: NamedSets,
    pub(crate) remarks: [Arc<str>; 2],
    pub(crate) warnings: Vec<String>,
}

impl RuleFile {
    /// Puts the contents in place of all rules and sets of a rule set. Settings that the file does not
    /// make stay.
    pub(crate) fn apply_to(self, rules: &mut RuleSet) {
        rules.other = self.other.unwrap_or(rules.other);
        for (kind, seconds) in self.timeouts {
            *rules.timeouts.of_mut(kind) = seconds;
        }
        rules.remarks = self.remarks;
        rules.load(self.rules, self.sets);
    }
}

/// The element that loads a file, and its way to open others.
pub(crate) struct FileContext<'a> {
    /// Tells why a rule has no effect in the element.
    pub(crate) placement_error: &'a dyn Fn(&Rule) -> Option<RuleDiagnostic>,
    /// Reads a file that the rules name; without it there are none.
    pub(crate) read: &'a dyn Fn(&str) -> Result<String, ArgError>,
}

/// Loads a file that the configuration names, in addition to sets that it defines.
pub(crate) fn load(
    path: &str,
    sets: NamedSets,
    context: &FileContext,
) -> Result<RuleFile, ArgError> {
    parse_rules(&read_text(path)?, sets, context).map_err(|error| error.at(path))
}

/// Loads a file that a command names.
pub(crate) fn load_named(path: &str, context: &FileContext) -> Result<RuleFile, ArgError> {
    let text = (context.read)(path)?;
    parse_rules(&text, NamedSets::default(), context).map_err(|error| error.at(path))
}

/// Reads the text of a file that the configuration names.
pub(crate) fn read_text(path: &str) -> Result<String, ArgError> {
    read(path, LONGEST)
}

/// Reads the text of a file that a command names.
pub(crate) fn read_named(files: &HandlerFiles, path: &str) -> Result<String, ArgError> {
    decode(path, files.read("load", path, LONGEST)?)
}

/// The files of sets that lines of a file of rules name, as far as the file can be read.
pub(crate) fn set_files(path: &str) -> Vec<String> {
    let text = read_text(path).unwrap_or_default();
    let lines = text.lines().filter(|line| line.trim_start().starts_with("set"));
    let files = lines.filter_map(|line| match command(line) {
        Ok(Some(Command::LoadSet(_, file))) => Some(file),
        _ => None,
    });
    files.collect()
}

/// The change that puts the values of a file in place of those of a set.
pub(crate) fn set_of_file(
    path: &str,
    read: &dyn Fn(&str) -> Result<String, ArgError>,
) -> Result<SetChange, ArgError> {
    Ok(SetChange::Replace(parse_set(path, &read(path)?)?))
}

/// Parses a file of values of a set, with blanks, commas or line ends between them; a `#` begins a
/// comment.
pub(crate) fn parse_set(path: &str, text: &str) -> Result<Vec<SetElement>, ArgError> {
    let (mut elements, mut wrong) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        for part in line.split([' ', '\t', ',']).filter(|part| !part.trim().is_empty()) {
            match SetElement::parse(part.trim()) {
                Ok(element) => elements.push(element),
                Err(wanted) => {
                    wrong.push(format!("line {}: `{part}` is no value; {wanted}", number + 1));
                }
            }
        }
        if wrong.len() > MAX_REPORTED {
            break;
        }
    }
    if wrong.is_empty() {
        return Ok(elements);
    }
    let count = wrong.len();
    wrong.truncate(MAX_REPORTED);
    Err(combined_error(wrong, count).at(path))
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

/// The error of a command that no file of rules may have.
const NOT_OF_A_FILE: &str = "a file of rules only adds rules, defines sets and makes settings";

/// Executes a line of a file of rules that adds no rule: a setting, or a change of a named set; returns the
/// answer.
///
/// # Errors
/// A file of rules has no such commands, a file of values is wrong, or the set has values of other kinds.
pub fn execute_setting(rules: &mut RuleSet, command: &Command) -> Result<String, String> {
    match command {
        Command::LoadSet(name, path) => {
            let change = set_of_file(path, &read_text).map_err(|error| error.message())?;
            rules.change_set(name, &change)
        }
        Command::SetNonIpPolicy(_) | Command::SetTimeout(..) | Command::ChangeSet(..) => {
            rules.execute(command).unwrap_or_else(|| Ok(String::new()))
        }
        _ => Err(NOT_OF_A_FILE.into()),
    }
}

/// Parses a text of commands that add rules, define sets and make settings, in addition to sets that
/// there are.
pub(crate) fn parse_rules(
    text: &str,
    sets: NamedSets,
    context: &FileContext,
) -> Result<RuleFile, ArgError> {
    let lines = text.lines().filter(|line| !line.trim_start().is_empty()).count();
    if lines > MOST_RULES {
        let what = format!("{lines} lines of rules; there can be {MOST_RULES}");
        return Err(ArgError::new(what));
    }
    let commands = commands(text).map_err(|faults| {
        let lines = faults.iter().take(MAX_REPORTED).map(|fault| {
            let help = fault.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
            format!("line {}: {}{help}", line_of(text, fault.range.start), fault.message)
        });
        combined_error(lines.collect(), faults.len())
    })?;
    let mut reader = FileReader::new(text, sets, context);
    for (at, command) in commands {
        reader.execute(at, command);
        if reader.wrong.len() > MAX_REPORTED {
            break;
        }
    }
    reader.finish()
}

/// The number of the line at an offset.
fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// A file of rules whose commands are executed one after the other.
struct FileReader<'a> {
    text: &'a str,
    context: &'a FileContext<'a>,
    file: RuleFile,
    /// The offset of each rule.
    starts: Vec<usize>,
    /// The offset behind the last command.
    end: usize,
    /// Comments before settings.
    head: String,
    wrong: Vec<String>,
}

impl<'a> FileReader<'a> {
    fn new(text: &'a str, sets: NamedSets, context: &'a FileContext<'a>) -> FileReader<'a> {
        let file = RuleFile { sets, ..RuleFile::default() };
        let (starts, head, wrong) = (Vec::new(), String::new(), Vec::new());
        FileReader { text, context, file, starts, end: 0, head, wrong }
    }

    fn execute(&mut self, at: usize, command: Command) {
        let above = &self.text[self.end..at];
        let length = self.text[at..].find('\n').map_or(self.text.len() - at, |end| end + 1);
        self.end = at + length;
        let Command::Add(mut rule) = command else {
            self.head += above;
            if let Err(message) = self.set(command) {
                self.wrong.push(format!("line {}: {message}", line_of(self.text, at)));
            }
            return;
        };
        if !above.is_empty() {
            rule.comment = RuleComment::new(above, rule.comment.beside());
        }
        if let Some(remark) = (self.context.placement_error)(&rule) {
            self.wrong.push(format!("line {}: {}", line_of(self.text, at), remark.line(&rule)));
        }
        self.file.rules.push(rule);
        self.starts.push(at);
    }

    /// Makes a setting.
    fn set(&mut self, command: Command) -> Result<(), String> {
        match command {
            Command::SetNonIpPolicy(it) => self.file.other = Some(it),
            Command::SetTimeout(kind, seconds) => self.file.timeouts.push((kind, seconds)),
            Command::ChangeSet(name, change) => {
                self.file.sets.change(&name, &change)?;
            }
            Command::LoadSet(name, path) => {
                let change = set_of_file(&path, self.context.read).map_err(|it| it.message())?;
                self.file.sets.change(&name, &change)?;
            }
            _ => return Err(NOT_OF_A_FILE.into()),
        }
        Ok(())
    }

    /// Gives the sets of the rules their values; returns the contents, or all errors.
    fn finish(mut self) -> Result<RuleFile, ArgError> {
        for (rule, at) in self.file.rules.iter_mut().zip(&self.starts) {
            match self.file.sets.resolve(rule) {
                Ok(None) => {}
                Ok(Some(resolved)) => *rule = resolved,
                Err(message) if self.wrong.len() <= MAX_REPORTED => {
                    self.wrong.push(format!("line {}: {message}", line_of(self.text, *at)));
                }
                Err(_) => break,
            }
        }
        self.wrong.extend(Chains::new(self.file.rules.iter()).err());
        if !self.wrong.is_empty() {
            let count = self.wrong.len();
            self.wrong.truncate(MAX_REPORTED);
            return Err(combined_error(self.wrong, count));
        }
        let rules = &self.file.rules;
        let warnings =
            warnings_of_all(rules.iter(), MAX_REPORTED).into_iter().map(|(at, remark)| {
                format!("line {}: {}", line_of(self.text, self.starts[at]), remark.line(&rules[at]))
            });
        let warnings = warnings.collect();
        let remarks = [self.head.as_str(), &self.text[self.end..]].map(whole_lines);
        Ok(RuleFile { warnings, remarks, ..self.file })
    }
}

/// Comments as whole lines.
fn whole_lines(text: &str) -> Arc<str> {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}").into()
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
            let placement_error = |rule: &Rule| {
                let is_long = rule.matches.len() > 2;
                let part = crate::analysis::RulePart::Match(2);
                is_long.then(|| RuleDiagnostic::new(part, "is long".into(), "be short".to_owned()))
            };
            let context = FileContext { placement_error: &placement_error, read: &read_text };
            let loaded = parse_rules(text, NamedSets::default(), &context);
            loaded.err().map(|error| error.message()).unwrap_or_default()
        };
        assert_eq!(
            refused("all drop\n\n# none\nflush"),
            "line 4: a file of rules only adds rules, defines sets and makes settings"
        );
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
