//! Click's options, and what is wrong with a command line in Click's words.

use crate::cli::{Frames, as_setting, told};
use crate::load::{Origin, OriginAndVariables};
use crate::terminal::complain;
use castanet_element::args::{FromArg, ListenPort, Names};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Parser};
use std::ffi::OsString;

/// Runs a Click router configuration at user level.
#[derive(Parser)]
#[command(
    name = "click",
    override_usage = "click [OPTION]... [ROUTERFILE]",
    disable_help_flag = true,
    disable_version_flag = true,
    infer_long_args = true
)]
pub(super) struct Click {
    /// The configuration file, and VAR=value settings
    #[arg(value_name = "ROUTERFILE or VAR=value")]
    words: Vec<String>,
    /// Read the configuration from FILE
    #[arg(short, long, value_name = "FILE")]
    file: Vec<String>,
    /// Use EXPR as configuration
    #[arg(short, long, value_name = "EXPR", allow_hyphen_values = true)]
    expression: Vec<String>,
    /// Start DPDK with the options up to `--`
    #[arg(long, value_name = "EAL OPTIONS --")]
    dpdk: Option<String>,
    /// Use N workers; as many as DPDK has cores unless given
    #[arg(
        short = 'j',
        long,
        value_name = "N",
        allow_negative_numbers = true,
        overrides_with = "threads"
    )]
    pub(super) threads: Option<i32>,
    /// Pin workers to cores, from number N on
    #[arg(short, long, visible_alias = "cpu", value_name = "N", num_args = 0..=1,
        require_equals = true, default_missing_value = "0", overrides_with = "affinity")]
    pub(super) affinity: Option<usize>,
    /// Do not pin workers to cores
    #[arg(long, alias = "no-cpu", overrides_with = "affinity")]
    pub(super) no_affinity: bool,
    /// Call a read handler after the run and print the result
    #[arg(short = 'h', long = "handler", value_name = "ELEMENT.H")]
    pub(super) handlers: Vec<String>,
    /// Use the value of a read handler as exit status
    #[arg(short = 'x', long, value_name = "ELEMENT.H")]
    exit_handler: Vec<String>,
    /// Listen for control commands at TCP port PORT; `PORT+`: or the next free one; `0`: any free one
    #[arg(short, long, value_name = "PORT")]
    pub(super) port: Vec<String>,
    /// Listen for control commands at a Unix socket called FILE
    #[arg(short, long = "unix-socket", value_name = "FILE")]
    pub(super) unix_socket: Vec<String>,
    /// Let `write hotconfig` replace the configuration while it runs
    #[arg(short = 'R', long, overrides_with = "allow_reconfigure")]
    pub(super) allow_reconfigure: bool,
    /// Answer control commands that come by descriptor FD
    #[arg(long, value_name = "FD", allow_negative_numbers = true)]
    pub(super) socket: Vec<i32>,
    /// Write the flat configuration to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Vec<String>,
    /// Do not run the router
    #[arg(short, long, overrides_with = "quit")]
    pub(super) quit: bool,
    /// Print how long the run took
    #[arg(short, long, overrides_with = "time")]
    pub(super) time: bool,
    /// Do not print warnings
    #[arg(short = 'w', long, overrides_with_all = ["warnings", "no_warnings"])]
    pub(super) no_warnings: bool,
    /// Print warnings, as it does by itself
    #[arg(long, overrides_with_all = ["warnings", "no_warnings"])]
    warnings: bool,
    /// Run in simulated time, from second T after 1970 on
    #[arg(long, visible_alias = "simulation-time", value_name = "T", num_args = 0..=1,
        require_equals = true, default_missing_value = "1000000000", overrides_with = "simtime")]
    pub(super) simtime: Option<f64>,
    /// Move simulated time by N nanoseconds whenever somebody looks at it
    #[arg(long, value_name = "N", overrides_with = "simtick")]
    pub(super) simtick: Option<u32>,
    /// Where `require(library FILE)` looks, instead of in $CLICKPATH
    #[arg(short = 'C', long, value_name = "PATH", overrides_with = "clickpath")]
    pub(super) clickpath: Option<String>,
    #[command(flatten)]
    pub(super) frames: Frames,
    /// Print the version and exit
    #[arg(short = 'v', short_alias = 'V', long, action = ArgAction::SetTrue)]
    pub(super) version: bool,
    /// Print this help and exit
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// Usage line of `click`.
pub(super) const USAGE: &str =
    "Usage: click [OPTION]... [ROUTERFILE]\nTry 'click --help' for more information.";

impl Click {
    /// Reads a command line; the exit status where it is wrong, or asks for
    /// nothing but help.
    pub(super) fn read(words: Vec<OsString>) -> Result<Click, i32> {
        let words: Vec<OsString> = words.into_iter().map(spelled_out).collect();
        let mut click = match Click::try_parse_from(&words) {
            Ok(click) => click,
            Err(e) if !e.use_stderr() => return Err(told(&e, "click").unwrap_or(0)),
            Err(e) => return Err(refuse(&said(&e, &words))),
        };
        for port in &mut click.port {
            let Ok(number) = ListenPort::from_arg(port, &Names::default()) else {
                let option = as_given("--port", &words);
                let message = format!("click: '{option}' expects a TCP port number, not '{port}'");
                return Err(refuse(&message));
            };
            *port = number.to_string();
        }
        Ok(click)
    }

    /// The configuration and the variables; or what was said twice.
    pub(super) fn sort(&self) -> Result<OriginAndVariables, &'static str> {
        let mut vars: Vec<(String, String)> = Vec::new();
        for (name, value) in self.words.iter().filter_map(|word| as_setting(word)) {
            // The first value stays, as in Click.
            match vars.iter().any(|(other, _)| *other == name) {
                true => complain(format_args!("parameter '{name}' multiply defined")),
                false => vars.push((name, value)),
            }
        }
        let plain = self.words.iter().filter(|word| as_setting(word).is_none());
        let mut origins: Vec<Origin> =
            plain.chain(&self.file).map(|file| Origin::File(file.into())).collect();
        origins.extend(self.expression.iter().cloned().map(Origin::Expression));
        if self.output.len() > 1 {
            return Err("output file specified twice");
        }
        if self.exit_handler.len() > 1 {
            return Err("--exit-handler specified twice");
        }
        match (origins.len(), origins.pop()) {
            (1, Some(origin)) => Ok((origin, vars)),
            // Like Click, without a name the configuration comes on standard input, unless it is
            // built in, as in a driver of `click-mkmindriver`.
            (0, _) => Ok(match crate::program::configuration() {
                Some(built) => (Origin::Built(built), built.settings_under(vars)),
                None => (Origin::File("-".into()), vars),
            }),
            _ => Err("router configuration specified twice"),
        }
    }

    /// Where the flat configuration goes.
    pub(super) fn output(&self) -> Option<&str> {
        self.output.first().map(String::as_str)
    }

    /// The handler whose value is the exit status.
    pub(super) fn exit_handler(&self) -> Option<&str> {
        self.exit_handler.first().map(String::as_str)
    }
}

/// Complains, and gives the status of a wrong command line.
pub(super) fn refuse(message: &str) -> i32 {
    complain(message);
    complain(USAGE);
    1
}

/// `-a2`, as Click's users write an optional value, in the form that is read.
fn spelled_out(word: OsString) -> OsString {
    let value = word.to_str().and_then(|text| text.strip_prefix("-a"));
    match value.filter(|value| value.starts_with(|c: char| c.is_ascii_digit())) {
        Some(value) => format!("--affinity={value}").into(),
        None => word,
    }
}

/// An option as the user has written it.
fn as_given(long: &str, words: &[OsString]) -> String {
    let words = words.iter().skip(1).filter_map(|word| word.to_str());
    let mut names = words.filter_map(|word| word.split('=').next());
    match (names.any(|name| name.len() > 2 && long.starts_with(name)), long.chars().nth(2)) {
        (true, _) => long.to_owned(),
        (false, Some('t')) if long == "--threads" => "-j".to_owned(),
        (false, Some(first)) if !matches!(long, "--simtime" | "--simtick" | "--socket") => {
            format!("-{first}")
        }
        _ => long.to_owned(),
    }
}

/// Text of a command-line error, in Click's words.
fn said(error: &clap::Error, words: &[OsString]) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let whole = context(ContextKind::InvalidArg).unwrap_or_default();
    let name = whole.split([' ', '=', '[']).next().unwrap_or_default();
    let option = as_given(name, words);
    let value = context(ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => format!("click: unrecognized option '{name}'"),
        ErrorKind::TooManyValues => format!("click: '{option}' can't take an argument"),
        ErrorKind::InvalidValue | ErrorKind::TooFewValues if value.is_empty() => {
            format!("click: '{option}' requires an argument")
        }
        ErrorKind::ValueValidation if name == "--simtime" => {
            format!("click: '{option}' expects a real number, not '{value}'")
        }
        ErrorKind::ValueValidation if matches!(name, "--simtick" | "--affinity") => {
            format!("click: '{option}' expects an unsigned integer, not '{value}'")
        }
        ErrorKind::ValueValidation => {
            format!("click: '{option}' expects an integer, not '{value}'")
        }
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            format!("click: {}", line.strip_prefix("error: ").unwrap_or(line))
        }
    }
}
