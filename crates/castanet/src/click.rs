//! The command line of `click`, so that programs that call it find it here.

mod handlers;
mod options;

use crate::console::Terminal;
use crate::instance::InstanceService;
use crate::library::library;
use crate::links::LinkService;
use crate::load::{LoadedConfiguration, Origin, load};
use crate::replace::{Reloader, ReplacementReader};
use crate::terminal::{complain, say};
use castanet_element::files::HandlerFiles;
use castanet_element::time::Time;
use castanet_lang::args::quote_if_needed;
use castanet_runtime::router::{ErrorStyle, Options, PacketOrder, Router, RunOutcome, Service};
use clap::CommandFactory;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use options::{Click, refuse};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Instant;

/// Click's last line about a configuration that was understood, and cannot be run.
pub(crate) const NOT_INITIALIZED: &str = "Router could not be initialized!";

/// A control socket that the command line asks for.
struct Socket {
    name: String,
    config: String,
    /// Words of the option on the command line.
    words: String,
}

impl Socket {
    fn add(&self, loaded: &mut LoadedConfiguration) {
        loaded.add(&self.name, "ControlSocket", &self.config, &self.words);
    }
}

/// The command line of `click`, for its man page.
pub(crate) fn command() -> clap::Command {
    Click::command()
}

/// Runs `click`; gives its exit status, which is 1 for everything wrong.
pub(crate) fn main() -> i32 {
    let (words, dpdk) = without_dpdk(std::env::args_os());
    let click = match Click::read(words) {
        Ok(click) => click,
        Err(status) => return status,
    };
    if click.version {
        let ours = crate::program::version();
        return say_or_fail(&format!("click (Click) 2.1 compatible, Castanet {ours}\n"));
    }
    let (origin, vars) = match click.sort() {
        Ok(sorted) => sorted,
        Err(message) => return refuse(message),
    };
    if let Some(options) = dpdk {
        complain("Initializing DPDK");
        if let Err(error) = castanet_io::dpdk::start(&options) {
            complain(format_args!("click: {error}"));
            return 1;
        }
        click.warn_of_cores();
    }
    click.run(&origin, &vars)
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
    /// DPDK has its own options for what these say.
    fn warn_of_cores(&self) {
        let several = self.threads.is_some_and(|n| n > 1);
        for (said, what) in
            [(several, "set the number of cores"), (self.affinity.is_some(), "set core affinity")]
        {
            if said && !self.no_warnings {
                complain(format_args!("warning: In DPDK mode, {what} with DPDK EAL arguments"));
            }
        }
    }

    /// Options to build and run a configuration of this text.
    fn options(&self, text: Option<String>) -> Options {
        let mut options = Options::new(Arc::new(Terminal));
        let wanted = self.threads.map(|n| usize::try_from(n).unwrap_or(1));
        options.workers = wanted.unwrap_or(castanet_io::dpdk::cores()).clamp(1, 256);
        options.pin = !self.no_affinity && (options.workers > 1 || self.affinity.is_some());
        let cores = self.affinity.map(|first| (first..first + options.workers).collect());
        options.cores = cores.unwrap_or_default();
        options.simulated = self.simtime.is_some();
        options.order = match options.simulated {
            true => PacketOrder::Packets,
            false => PacketOrder::Turns,
        };
        if let Some(seconds) = self.simtime {
            options.simulated_from = Time((seconds * 1e9) as i64);
            options.simulated_tick = i64::from(self.simtick.unwrap_or(1));
        }
        options.can_warp = true;
        self.frames.set(&mut options);
        options.error_style = ErrorStyle::Click;
        options.interfaces = Some(castanet_io::elements::address_of);
        let silent = self.no_warnings;
        options.handler_files = HandlerFiles::any(Box::new(move |text| {
            if !silent {
                complain(format_args!("warning: {text}"));
            }
        }));
        options.text = text;
        options.packages = crate::load::PACKAGES;
        options
    }

    fn run(&self, origin: &Origin, vars: &[(String, String)]) -> i32 {
        let library = library();
        let mut loaded = load(origin, vars, &library, self.clickpath.as_deref());
        loaded.check_settings(vars, ErrorStyle::Click);
        if loaded.found.has_errors() {
            self.report(&mut loaded);
            return 1;
        }
        let sockets = self.sockets();
        sockets.iter().for_each(|socket| socket.add(&mut loaded));
        let options = self.options(loaded.text.take());
        let built = Router::build(&loaded.flat, &library, &options, &mut loaded.found);
        self.report(&mut loaded);
        let Some(mut router) = built else {
            complain(NOT_INITIALIZED);
            return 1;
        };
        let reader = Arc::new(ReplacementReader {
            vars: vars.to_vec(),
            clickpath: self.clickpath.clone(),
            warnings: !self.no_warnings,
            add: Box::new(move |loaded| sockets.iter().for_each(|socket| socket.add(loaded))),
            library,
            wording: ErrorStyle::Click,
        });
        match self.allow_reconfigure {
            true => router.allow_replacements(reader.source(&options)),
            false => router.set_hot_swap_source(reader.source(&options)),
        }
        if let Err(e) = crate::signals::forward(&mut router, None) {
            complain(format_args!("click: cannot listen for signals: {e}"));
            return 1;
        }
        let written = self.write_flat(&mut router);
        let mut instance = self.simtime.is_none().then(|| {
            InstanceService::without_options(&router, Reloader { origin: origin.clone(), reader })
        });
        let status = self.drive(&mut router, origin, instance.as_mut()).max(written);
        drop(instance);
        crate::commands::run::finish(router, RunOutcome { status, interrupted: false })
    }

    /// `-p`, `-u` and `--socket`: control sockets under the names that Click gives them.
    fn sockets(&self) -> Vec<Socket> {
        let ports = self.port.iter().map(|port| ("TCP", "--port", port.clone()));
        let files = self.unix_socket.iter().map(|file| ("UNIX", "--unix-socket", file.clone()));
        let sockets = self.socket.iter().map(|fd| ("SOCKET", "--socket", fd.to_string()));
        let socket = |(n, (kind, option, place)): (usize, (&str, &str, String))| Socket {
            name: match n {
                0 => "click_driver@@ControlSocket".to_owned(),
                n => format!("click_driver@@ControlSocket@{n}"),
            },
            config: format!("{kind}, {}", quote_if_needed(&place)),
            words: format!("{option} {place}"),
        };
        ports.chain(files).chain(sockets).enumerate().map(socket).collect()
    }

    fn report(&self, loaded: &mut LoadedConfiguration) {
        if self.no_warnings {
            loaded.found.remove_warnings();
        }
        loaded.report(ErrorStyle::Click);
    }

    /// `-o`: writes the flat configuration before the run.
    fn write_flat(&self, router: &mut Router) -> i32 {
        let Some(file) = self.output() else { return 0 };
        let text = router.read("flatconfig").unwrap_or_default();
        if file == "-" {
            return say_or_fail(&text);
        }
        match std::fs::write(file, text) {
            Ok(()) => 0,
            Err(e) => {
                complain(format_args!("{file}: {}", crate::load::io_error_text(&e)));
                1
            }
        }
    }

    fn drive(
        &self,
        router: &mut Router,
        origin: &Origin,
        instance: Option<&mut InstanceService>,
    ) -> i32 {
        let (before, started) = (getrusage(UsageWho::RUSAGE_SELF), Instant::now());
        let mut status = 0;
        if !self.quit && !router.graph().elements.is_empty() {
            let mut links = LinkService::new(router);
            let mut services: Vec<&mut dyn Service> = vec![&mut links];
            services.extend(instance.map(|it| it as &mut dyn Service));
            status = router.run_with(&mut services).status;
        } else if !self.quit && !self.no_warnings {
            let name = origin.name();
            complain(format_args!("warning: {name}: configuration has no elements, exiting"));
        }
        if let (true, Ok(before), Ok(after)) = (self.time, before, getrusage(UsageWho::RUSAGE_SELF))
        {
            status = status.max(say_or_fail(&time_text(&before, &after, started)));
        }
        status = status.max(handlers::print(router, &self.handlers));
        match self.exit_handler() {
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
