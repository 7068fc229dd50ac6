//! The command line of `click`, so that programs that call it find it here.

mod handlers;

use crate::cli::{as_setting, told};
use crate::console::Terminal;
use crate::library::library;
use crate::load::{Loaded, Named, Origin, load};
use crate::terminal::{complain, say};
use castanet_engine::router::{Options, Outcome, Router, Wording};
use castanet_lang::args::quote_if_needed;
use clap::{ArgAction, Parser};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Instant;

/// Runs a Click router configuration at user level.
#[derive(Parser)]
#[command(
    name = "click",
    override_usage = "click [OPTION]... [ROUTERFILE]",
    disable_help_flag = true,
    disable_version_flag = true
)]
struct Click {
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
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<usize>,
    /// Pin workers to cores, from number N on
    #[arg(short, long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    affinity: Option<usize>,
    /// Call a read handler after the run and print the result
    #[arg(short = 'h', long = "handler", value_name = "ELEMENT.H")]
    handlers: Vec<String>,
    /// Use the value of a read handler as exit status
    #[arg(short = 'x', long, value_name = "ELEMENT.H")]
    exit_handler: Option<String>,
    /// Listen for control commands at TCP port PORT; `PORT+`: or the next free one
    #[arg(short, long, value_name = "PORT")]
    port: Vec<String>,
    /// Listen for control commands at a Unix socket called FILE
    #[arg(short, long = "unix-socket", value_name = "FILE")]
    unix_socket: Vec<String>,
    /// Write the flat configuration to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// Do not run the router
    #[arg(short, long)]
    quit: bool,
    /// Print how long the run took
    #[arg(short, long)]
    time: bool,
    /// Do not print warnings
    #[arg(short = 'w', long)]
    no_warnings: bool,
    /// Run in simulated time
    #[arg(long, visible_alias = "simulation-time")]
    simtime: bool,
    /// Where `require(library FILE)` looks, instead of in $CLICKPATH
    #[arg(short = 'C', long, value_name = "PATH")]
    clickpath: Option<String>,
    /// Print the version and exit
    #[arg(short = 'v', short_alias = 'V', long, action = ArgAction::SetTrue)]
    version: bool,
    /// Print this help and exit
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// Runs `click`; gives its exit status, which is 1 for everything wrong.
pub(crate) fn main() -> i32 {
    let (words, dpdk) = without_dpdk(std::env::args_os());
    let click = match Click::try_parse_from(words) {
        Ok(click) => click,
        Err(e) => return told(&e, "click").unwrap_or(i32::from(e.use_stderr())),
    };
    if click.version {
        let ours = env!("CARGO_PKG_VERSION");
        return say_or_fail(&format!("click (Click) 2.1 compatible, Castanet {ours}\n"));
    }
    if let Some(options) = dpdk
        && let Err(error) = castanet_io::dpdk::start(&options)
    {
        complain(format_args!("click: {error}"));
        return 1;
    }
    match click.sort() {
        Ok((origin, vars)) => click.run(&origin, &vars),
        Err(message) => {
            complain(message);
            complain("Usage: click [OPTION]... [ROUTERFILE]");
            complain("Try 'click --help' for more information.");
            1
        }
    }
}

/// The words without `--dpdk OPTIONS --`, and the options that were there.
fn without_dpdk(words: impl Iterator<Item = OsString>) -> (Vec<OsString>, Option<Vec<String>>) {
    let mut words: Vec<OsString> = words.collect();
    let Some(start) = words.iter().position(|word| word == "--dpdk") else { return (words, None) };
    let after = words.split_off(start);
    let mut after = after.into_iter().skip(1);
    let options = after.by_ref().take_while(|word| word != "--");
    let options = options.map(|word| word.to_string_lossy().into_owned()).collect();
    words.extend(after);
    (words, Some(options))
}

/// Writes to standard output; gives the exit status.
fn say_or_fail(text: &str) -> i32 {
    match say(text) {
        Ok(()) => 0,
        Err(message) => {
            complain(format_args!("click: {message}"));
            1
        }
    }
}

impl Click {
    fn sort(&self) -> Result<Named, &'static str> {
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
        match (origins.len(), origins.pop()) {
            (1, Some(origin)) => Ok((origin, vars)),
            // Like Click, without a name the configuration comes on standard input.
            (0, _) => Ok((Origin::File("-".into()), vars)),
            _ => Err("router configuration specified twice"),
        }
    }

    fn run(&self, origin: &Origin, vars: &[(String, String)]) -> i32 {
        let library = library();
        let mut loaded = load(origin, vars, &library, self.clickpath.as_deref());
        if loaded.found.has_errors() {
            self.report(&mut loaded);
            return 1;
        }
        self.add_sockets(&mut loaded);
        let mut options = Options::new(Arc::new(Terminal));
        options.workers = self.threads.unwrap_or(castanet_io::dpdk::cores()).clamp(1, 256);
        options.pin = options.workers > 1 || self.affinity.is_some();
        let cores = self.affinity.map(|first| (first..first + options.workers).collect());
        options.cores = cores.unwrap_or_default();
        options.simulated = self.simtime;
        options.wording = Wording::Click;
        options.interfaces = Some(castanet_io::elements::address_of);
        let built = Router::build(&loaded.flat, &library, &options, &mut loaded.found);
        self.report(&mut loaded);
        let Some(mut router) = built else {
            complain("Router could not be initialized!");
            return 1;
        };
        if let Err(e) = crate::signals::forward(router.line()) {
            complain(format_args!("click: cannot listen for signals: {e}"));
            return 1;
        }
        let written = self.write_flat(&mut router);
        let status = self.drive(&mut router, origin).max(written);
        crate::commands::run::finish(router, Outcome { status, interrupted: false })
    }

    /// `-p` and `-u`: control sockets under the names that Click gives them.
    fn add_sockets(&self, loaded: &mut Loaded) {
        let ports = self.port.iter().map(|port| ("TCP", "--port", port));
        let sockets = self.unix_socket.iter().map(|file| ("UNIX", "--unix-socket", file));
        for (n, (kind, option, place)) in ports.chain(sockets).enumerate() {
            let name = format!("click_driver@@ControlSocket@{n}");
            let config = format!("{kind}, {}", quote_if_needed(place));
            loaded.add(&name, "ControlSocket", &config, &format!("{option} {place}"));
        }
    }

    fn report(&self, loaded: &mut Loaded) {
        if self.no_warnings {
            loaded.found.forget_warnings();
        }
        loaded.report(Wording::Click);
    }

    /// `-o`: writes the flat configuration before the run.
    fn write_flat(&self, router: &mut Router) -> i32 {
        let Some(file) = &self.output else { return 0 };
        let text = router.read("flatconfig").unwrap_or_default();
        if file == "-" {
            return say_or_fail(&text);
        }
        match std::fs::write(file, text) {
            Ok(()) => 0,
            Err(e) => {
                complain(format_args!("{file}: {}", crate::load::system_words(&e)));
                1
            }
        }
    }

    fn drive(&self, router: &mut Router, origin: &Origin) -> i32 {
        let (before, started) = (getrusage(UsageWho::RUSAGE_SELF), Instant::now());
        let mut status = 0;
        if !self.quit && !router.graph().elements.is_empty() {
            status = router.run(None).status;
        } else if !self.quit && !self.no_warnings {
            let name = origin.name();
            complain(format_args!("warning: {name}: configuration has no elements, exiting"));
        }
        if let (true, Ok(before), Ok(after)) = (self.time, before, getrusage(UsageWho::RUSAGE_SELF))
        {
            status = status.max(say_or_fail(&time_text(&before, &after, started)));
        }
        status = status.max(handlers::print(router, &self.handlers));
        match &self.exit_handler {
            Some(handler) => handlers::exit_status(router, handler),
            None => status,
        }
    }
}

/// `0.012u 0.003s 0:01.00`, as Click prints it.
fn time_text(before: &Usage, after: &Usage, started: Instant) -> String {
    let spent = |of: fn(&Usage) -> nix::sys::time::TimeVal| {
        let milliseconds = ((of(after) - of(before)).num_microseconds() + 500) / 1000;
        format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
    };
    let (user, system) = (spent(Usage::user_time), spent(Usage::system_time));
    let wall = (started.elapsed().as_millis() + 5) / 10;
    format!("{user}u {system}s {}:{:02}.{:02}\n", wall / 6000, wall / 100 % 60, wall % 100)
}
