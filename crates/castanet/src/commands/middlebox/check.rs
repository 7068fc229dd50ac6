//! `castanet middlebox check`: errors and doubts about files of rules.

use crate::commands::{CommandError, CommandResult};
use crate::terminal::{colours_on_stderr, complain};
use castanet_lang::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use castanet_middlebox::analysis::warnings_of_all;
use castanet_middlebox::language::{self, Command};
use castanet_middlebox::rule::Rule;
use castanet_middlebox::{RuleSet, execute_setting};
use std::ops::Range;
use std::path::Path;

/// Checks files of rules, and prints everything that is wrong or doubtful; an error if anything is wrong.
pub(super) fn main(files: &[String]) -> CommandResult {
    if files.is_empty() {
        return Err(CommandError::usage("a file of rules is missing: `check FILE`".into()));
    }
    match files.iter().filter(|file| !is_right(Path::new(file), true)).count() {
        0 => Ok(()),
        _ => Err(CommandError::REPORTED),
    }
}

/// Whether a file of rules is right; prints everything that is wrong, and, `with_warnings`, that is
/// doubtful.
pub(super) fn is_right(path: &Path, with_warnings: bool) -> bool {
    let mut sources = SourceMap::new();
    let mut found = Diagnostics::new();
    match sources.load(path) {
        Ok(file) => match language::commands(&sources.text(file)) {
            Ok(commands) if with_warnings => {
                let text = sources.text(file);
                FileCheck { text: &text, file, found: &mut found }.run(commands);
            }
            Ok(_) => {}
            Err(faults) => faults.iter().for_each(|fault| found.push(fault.diagnostic(file))),
        },
        Err(error) => found.push(error),
    }
    if !found.is_empty() {
        complain(found.render_rich(&sources, colours_on_stderr()).trim_end());
    }
    !found.has_errors()
}

/// A check of the commands of a file, whose words are right.
struct FileCheck<'a> {
    text: &'a str,
    file: FileId,
    found: &'a mut Diagnostics,
}

impl FileCheck<'_> {
    fn run(&mut self, commands: Vec<(usize, Command)>) {
        /// The most warnings that are printed.
        const MOST: usize = 100;
        let (rules, others): (Vec<_>, Vec<_>) =
            commands.into_iter().partition(|(_, command)| matches!(command, Command::Add(_)));
        // Sets may stand behind the rules that use them.
        let mut set = RuleSet::default();
        for (start, command) in others {
            let done = execute_setting(&mut set, &command);
            self.error(start, done);
        }
        let mut added: Vec<(usize, Rule)> = Vec::with_capacity(rules.len());
        for (start, command) in rules {
            let done = set.execute(&command).unwrap_or_else(|| Ok(String::new()));
            self.error(start, done);
            if let Command::Add(rule) = command {
                added.push((start, rule));
            }
        }
        for (at, remark) in warnings_of_all(added.iter().map(|(_, rule)| rule), MOST) {
            let line = self.line(added[at].0);
            let Range { start, end } = language::place(line, remark.part);
            self.warn(added[at].0, start..end, remark.message, remark.help);
        }
        self.warn_of_repeated(&added);
        self.warn_of_unused(&set);
    }

    /// The line that begins at an offset.
    fn line(&self, start: usize) -> &str {
        self.text[start..].lines().next().unwrap_or_default()
    }

    fn span(&self, start: usize, Range { start: from, end }: Range<usize>) -> Span {
        Span { file: self.file, start: (start + from) as u32, end: (start + end) as u32 }
    }

    /// Adds the error of a line, if it has one.
    fn error(&mut self, start: usize, done: Result<String, String>) {
        if let Err(message) = done {
            let span = self.span(start, 0..self.line(start).len());
            self.found.push(Diagnostic::error(span, message));
        }
    }

    fn warn(&mut self, start: usize, range: Range<usize>, message: String, help: Option<String>) {
        let span = self.span(start, range);
        self.found.push(Diagnostic::warning(span, message).with_maybe_help(help));
    }

    /// Warns of rules that are there already.
    fn warn_of_repeated(&mut self, rules: &[(usize, Rule)]) {
        let mut first = std::collections::HashMap::new();
        for (start, rule) in rules {
            let before = *first.entry(rule).or_insert(*start);
            if before != *start {
                let line = self.text[..before].matches('\n').count() + 1;
                let message = format!("the rule of line {line} is the same");
                let range = 0..self.line(*start).len();
                self.warn(*start, range, message, Some("leave one of them out".into()));
            }
        }
    }

    /// Warns of sets that no rule uses.
    fn warn_of_unused(&mut self, set: &RuleSet) {
        for name in set.unused_sets() {
            let message = format!("no rule uses the set `{name}`");
            self.found.push(Diagnostic::warning(self.span(0, 0..0), message));
        }
    }
}
