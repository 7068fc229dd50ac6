//! The shell of `castanet middlebox --connect`: lines from the command line, a pipe or a person.

use super::client::{Client, ControlAnswer};
use crate::commands::line_editor::{ShellStep, complete, converse, pause};
use crate::commands::{CommandError, CommandResult};
use crate::terminal::{complain, say};
use castanet_lang::nearest;
use castanet_middlebox::field::{FIELDS, Field};
use castanet_middlebox::language::{COMMANDS, TARGETS};
use castanet_middlebox::value::wants;
use rustyline::completion::Completer;
use rustyline::{Context, Helper, Highlighter, Hinter, Validator};
use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Commands of the shell itself.
const OWN: [(&str, &str); 3] = [
    ("watch [SECONDS]", "Shows the rules once a second, for so long or until Ctrl-C."),
    ("help [fields|COMMAND|TARGET|FIELD]", "Says what there is to say."),
    ("quit", "Leaves the middlebox running."),
];

/// Does one command, or those of standard input.
pub(super) fn main(socket: &Path, words: &str) -> CommandResult {
    let mut client = Client::connect(socket)?;
    // By itself Ctrl-C ends the program.
    let stop = AtomicBool::new(false);
    if !words.is_empty() {
        return show(obey(&mut client, words, &stop));
    }
    if std::io::stdin().is_terminal() {
        return talk(&mut client);
    }
    let mut done = Ok(());
    for line in std::io::stdin().lock().lines() {
        match line.as_deref().map(str::trim) {
            Ok("quit") => break,
            Ok(line) => done = done.and(show(obey(&mut client, line, &stop))),
            Err(error) => return Err(crate::load::io_error_text(error).into()),
        }
        if client.is_gone() {
            break;
        }
    }
    done
}

/// Shows an answer, or the error that it is.
fn show(answer: ControlAnswer) -> CommandResult {
    let written = answer.and_then(|text| match text.trim_end() {
        "" => Ok(()),
        text => say(&format!("{text}\n")),
    });
    written.map_err(|message| {
        complain(message);
        CommandError::REPORTED
    })
}

fn obey(client: &mut Client, line: &str, stop: &AtomicBool) -> ControlAnswer {
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("help"), what) => Ok(help(what)),
        (Some("watch"), seconds) => watch(client, seconds, stop),
        _ => client.obey(line),
    }
}

/// Shows the rules once a second; on a terminal in the same place.
fn watch(client: &mut Client, seconds: Option<&str>, stop: &AtomicBool) -> ControlAnswer {
    let seconds = seconds.map_or(Ok(10), str::parse::<u32>);
    let seconds = seconds.map_err(|_| "`watch` wants a number of seconds".to_owned())?;
    let in_place = std::io::stdout().is_terminal();
    let mut shown = 0;
    for second in 0..seconds {
        if second > 0 && !pause(Duration::from_secs(1), stop) {
            return Ok(String::new());
        }
        let list = client.read("list")?;
        if !in_place {
            say(&format!("{list}\n"))?;
            continue;
        }
        // Up to the first line, and away with what stood there; what is too long for a line is
        // cut off, or there would be more lines.
        let back = if shown > 0 { format!("\x1b[{shown}A\x1b[J") } else { String::new() };
        shown = list.lines().count();
        say(&format!("{back}\x1b[?7l{list}\x1b[?7h"))?;
    }
    Ok(String::new())
}

fn help(what: Option<&str>) -> String {
    let rows = |rows: &mut dyn Iterator<Item = (String, String)>| {
        let rows: Vec<_> = rows.collect();
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let lines = rows.iter().map(|(name, doc)| format!("  {name:<width$}  {doc}\n"));
        lines.collect::<String>()
    };
    let owned = |(name, doc): &(&str, &str)| ((*name).to_owned(), (*doc).to_owned());
    match what {
        Some("fields") => {
            rows(&mut FIELDS.iter().map(|it| (it.name.to_owned(), it.doc.to_owned())))
        }
        Some(name) => help_of(name),
        None => {
            let commands = rows(&mut COMMANDS.iter().chain(&OWN).map(owned));
            let targets = TARGETS
                .iter()
                .map(|(name, form, doc)| (format!("{name} {form}"), (*doc).to_owned()));
            let targets = rows(&mut targets.into_iter());
            format!(
                "Commands:\n{commands}\nTargets:\n{targets}\nA match is [!] FIELD [[CONDITION] VALUE]; `help fields` lists fields.\n"
            )
        }
    }
}

/// The help of a command, a target or a field.
fn help_of(name: &str) -> String {
    let is_own = |form: &str| form.split(' ').next().is_some_and(|word| word == name);
    let commands = COMMANDS.iter().chain(&OWN).filter(|(form, _)| is_own(form));
    let targets = TARGETS.iter().filter(|(word, _, _)| *word == name);
    let mut lines: Vec<String> = commands.map(|(form, doc)| format!("{form}\n  {doc}\n")).collect();
    lines.extend(targets.map(|(word, form, doc)| format!("MATCH… {word} {form}\n  {doc}\n")));
    lines.extend(Field::named(name).map(|field| {
        let spec = field.spec();
        let layer = spec.layer.word();
        format!("{name} ({layer}): {}\nA value is {}.\n", spec.doc, wants(field))
    }));
    if lines.is_empty() {
        let words = COMMANDS.iter().chain(&OWN).map(|(form, _)| form.split(' ').next());
        let words = words.flatten().chain(FIELDS.iter().map(|it| it.name));
        let near = nearest(name, words).map(|it| format!("; did you mean {it}?"));
        let near = near.unwrap_or_default();
        return format!("There is no command, target or field {name}{near}\n");
    }
    lines.concat()
}

/// Talks with a person.
fn talk(client: &mut Client) -> CommandResult {
    converse("middlebox", CommandCompleter, |line, stop, _| {
        if line.trim() == "quit" {
            return ShellStep::Quit;
        }
        _ = show(obey(client, line, stop));
        if client.is_gone() { ShellStep::Gone } else { ShellStep::Next }
    })
}

/// Completes words of the language.
#[derive(Helper, Highlighter, Hinter, Validator)]
struct CommandCompleter;

impl Completer for CommandCompleter {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete(line, at, candidates))
    }
}

/// The words that may stand behind `before` and begin with `word`.
fn candidates(before: &str, word: &str) -> Vec<String> {
    let first = |form: &str| form.split(' ').next().unwrap_or_default().to_owned();
    let fields = FIELDS.iter().map(|spec| spec.name.to_owned());
    let mut words: Vec<String> = match before.split_whitespace().next() {
        None => {
            let forms = COMMANDS.iter().chain(&OWN).map(|(form, _)| first(form));
            forms.chain(fields).collect()
        }
        Some("show") => {
            ["tables", "connections", "sets", "timeouts", "verbose"].map(String::from).to_vec()
        }
        Some("set") => ["add", "remove", "replace", "load", "delete"].map(String::from).to_vec(),
        Some("timeout") => ["udp", "tcp-established", "tcp-transient"].map(String::from).to_vec(),
        Some("reset") => vec!["counters".into()],
        // Interfaces and packets are not known here.
        Some("test") if before.split_whitespace().count() == 1 => vec!["in".into()],
        Some("test") => Vec::new(),
        Some("help") => {
            let commands = COMMANDS.iter().map(|(form, _)| first(form));
            fields.chain(["fields".into()]).chain(commands).collect()
        }
        Some(_) => fields.chain(TARGETS.map(|(name, _, _)| name.to_owned())).collect(),
    };
    words.retain(|candidate| candidate.starts_with(word));
    words.sort();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_by_their_context() {
        assert_eq!(candidates("", "fl"), ["flush"]);
        assert_eq!(candidates("add tcp-syn ", "tcp-opt-m"), ["tcp-opt-mptcp", "tcp-opt-mss"]);
        assert_eq!(candidates("add tcp-syn ", "dro"), ["drop"]);
        assert_eq!(candidates("test ", ""), ["in"]);
        assert_eq!(candidates("test in ", ""), [""; 0]);
        assert_eq!(
            candidates("show ", ""),
            ["connections", "sets", "tables", "timeouts", "verbose"]
        );
        assert_eq!(candidates("", "add"), ["add", "add-stateful"]);
        assert!(candidates("help ", "").len() > FIELDS.len());
    }

    #[test]
    fn help_knows_commands_targets_and_fields() {
        let all = help(None);
        assert!(all.contains("add-stateful MATCH") && all.contains("shuffle FIELD"), "{all}");
        assert!(help(Some("tcp-dport")).contains("a number from 0 to 65535"));
        assert!(help(Some("delete")).starts_with("delete N|idN\n"), "{}", help(Some("delete")));
        assert!(help(Some("delete")).contains("\ndelete connection PROTO"));
        assert!(help(Some("shuffle")).contains("MATCH… shuffle FIELD"));
        let none = "There is no command, target or field delte; did you mean delete?\n";
        assert_eq!(help(Some("delte")), none);
        assert_eq!(help(Some("fields")).lines().count(), FIELDS.len());
    }
}
