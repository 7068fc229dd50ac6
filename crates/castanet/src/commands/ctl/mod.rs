//! `castanet ctl`: clients of running instances.

mod capture;
mod commands;
mod completion;
mod drops;
mod format;
mod instances;
mod line;
mod packet_file;
mod top;
mod trace;

pub(crate) use capture::CaptureArguments;
pub(crate) use drops::DropsArguments;
pub(crate) use line::man_page;
pub(crate) use top::TopArguments;
pub(crate) use trace::TraceArguments;

use super::line_editor::{ShellStep, converse};
use super::{CommandError, CommandResult};
use crate::terminal::complain;
use clap::{Args, Parser};
use commands::execute;
use completion::HandlerCompleter;
pub(crate) use format::table;
use instances::list;
pub(crate) use instances::{Attachment, find};
use line::{ClientCommand, ClientLine};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_default};
use std::io::{BufRead, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Arguments of `castanet ctl`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The instance, by its name or the path of its control socket, where there are several; and a
    /// command. Without a command: a shell, or commands of standard input. Without both: the list of
    /// instances
    #[arg(value_name = "NAME|PATH] [COMMAND", allow_hyphen_values = true, trailing_var_arg = true)]
    words: Vec<String>,
}

/// Attaches to an instance.
pub(crate) fn main(arguments: &Arguments) -> CommandResult {
    // `--json` may stand before all.
    let options = arguments.words.iter().take_while(|word| *word == "--json").count();
    let mut words = arguments.words.clone();
    words.rotate_left(options);
    let words = &words[..];
    let is_option = |word: &String| word.starts_with('-');
    let is_known = |word: &&String| ["--json", "-h", "--help"].contains(&word.as_str());
    if let (true, Some(word)) =
        (words.iter().all(is_option), words.iter().find(|word| !is_known(word)))
    {
        let message = format!(
            "`castanet ctl` has no option {word}; `castanet ctl --help` lists its commands"
        );
        return Err(CommandError::usage(message));
    }
    if words.iter().all(is_option) {
        return match ClientLine::parse_from(["list".to_owned()].iter().chain(words)) {
            Ok(line) => list(line.json),
            Err(error) => usage(&error),
        };
    }
    let is_command = line::is_command(&words[0]);
    let (target, words) = match is_command {
        true => (None, words),
        false => (Some(words[0].as_str()), &words[1..]),
    };
    if words.is_empty() {
        return shell(&mut find(target)?);
    }
    // Options alone: the instance describes itself.
    let info = words.iter().all(is_option).then(|| "info".to_owned());
    match ClientLine::parse_from(info.iter().chain(words)) {
        Ok(ClientLine { command: ClientCommand::List, json }) => list(json),
        Ok(line) => once(&mut find(target)?, &line),
        Err(error) => usage(&error),
    }
}

/// `castanet top`.
pub(crate) fn top(arguments: &TopArguments) -> CommandResult {
    let command = ClientCommand::Top(arguments.clone());
    on_one(arguments.instance.as_deref(), command, arguments.json)
}

/// `castanet drops`.
pub(crate) fn drops(arguments: &DropsArguments) -> CommandResult {
    let command = ClientCommand::Drops(arguments.clone());
    on_one(arguments.instance.as_deref(), command, arguments.json)
}

/// `castanet trace`.
pub(crate) fn trace(arguments: &TraceArguments) -> CommandResult {
    let command = ClientCommand::Trace(arguments.clone());
    on_one(arguments.instance.as_deref(), command, arguments.json)
}

/// `castanet capture`.
pub(crate) fn capture(arguments: &CaptureArguments) -> CommandResult {
    let command = ClientCommand::Capture(arguments.clone());
    on_one(arguments.instance.as_deref(), command, arguments.json)
}

fn on_one(target: Option<&str>, command: ClientCommand, json: bool) -> CommandResult {
    once(&mut find(target)?, &ClientLine { command, json })
}

/// Executes the command of a command line. Ctrl-C ends those in good order that go on until then;
/// pressed twice, it ends the process.
fn once(instance: &mut Attachment, line: &ClientLine) -> CommandResult {
    let stop = Arc::new(AtomicBool::new(false));
    if matches!(line.command, ClientCommand::Trace(_) | ClientCommand::Capture(_)) {
        let failed = |error: std::io::Error| crate::load::io_error_text(&error);
        for signal in [SIGINT, SIGTERM] {
            register_conditional_default(signal, stop.clone()).map_err(failed)?;
            register(signal, stop.clone()).map_err(failed)?;
        }
    }
    execute(instance, line, &stop)
}

/// Shows help, or what is wrong with a command.
fn usage(error: &clap::Error) -> CommandResult {
    match (crate::cli::told(error, "castanet ctl"), error.exit_code()) {
        (Some(status), _) => Err(CommandError(status, None)),
        (None, 0) => Ok(()),
        (None, status) => Err(CommandError(status, None)),
    }
}

/// Executes the lines of a person, or of standard input.
fn shell(instance: &mut Attachment) -> CommandResult {
    if !std::io::stdin().is_terminal() {
        let mut done = Ok(());
        for line in std::io::stdin().lock().lines() {
            let line = line.map_err(|error| crate::load::io_error_text(&error))?;
            match obey(instance, &line, &AtomicBool::new(false)) {
                (ShellStep::Next, result) => done = done.and(reported(result)),
                (ShellStep::Quit, _) => break,
                (ShellStep::Gone, result) => return result,
            }
        }
        return done;
    }
    let helper = HandlerCompleter::of(instance);
    converse("castanet", helper, |line, stop, helper| {
        let (step, result) = obey(instance, line, stop);
        if let Err(CommandError(_, Some(message))) = result {
            complain(message);
        }
        helper.refresh(instance);
        step
    })
}

/// Prints the message of an error at once, as the next line may have another one.
fn reported(result: CommandResult) -> CommandResult {
    result.map_err(|CommandError(status, message)| {
        message.iter().for_each(|message| complain(format_args!("castanet: {message}")));
        CommandError(status, None)
    })
}

/// Executes one line of a shell.
fn obey(instance: &mut Attachment, line: &str, stop: &AtomicBool) -> (ShellStep, CommandResult) {
    let words = match line::words(line) {
        Ok(words) if words.is_empty() || words[0].starts_with('#') => {
            return (ShellStep::Next, Ok(()));
        }
        Ok(words) => words,
        Err(message) => return (ShellStep::Next, Err(CommandError::usage(message))),
    };
    if words == ["quit"] || words == ["exit"] {
        return (ShellStep::Quit, Ok(()));
    }
    let result = match ClientLine::parse_from(&words) {
        Ok(ClientLine { command: ClientCommand::List, json }) => list(json),
        Ok(line) => execute(instance, &line, stop),
        Err(error) => usage(&error),
    };
    let step = if instance.client.is_gone() { ShellStep::Gone } else { ShellStep::Next };
    (step, result)
}

impl ClientLine {
    /// The command in these words.
    fn parse_from<'w>(
        words: impl IntoIterator<Item = &'w String>,
    ) -> Result<ClientLine, clap::Error> {
        let words = words.into_iter().map(String::as_str);
        ClientLine::try_parse_from(std::iter::once("castanet ctl").chain(words))
    }
}
