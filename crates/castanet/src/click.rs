//! The command line of `click`, so that programs that call it find it here.

use crate::cli::as_setting;
use crate::console::Terminal;
use crate::library::library;
use crate::load::{Named, Origin, load};
use castanet_engine::router::{Options, Router, Wording};
use clap::{ArgAction, Parser};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::sync::Arc;
use std::time::Instant;

/// Runs a Click router configuration at user level.
#[derive(Parser)]
#[command(name = "click", disable_help_flag = true, disable_version_flag = true)]
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
    /// Call a read handler after the run and print the result
    #[arg(short = 'h', long = "handler", value_name = "ELEMENT.H")]
    handlers: Vec<String>,
    /// Do not run the router
    #[arg(short, long)]
    quit: bool,
    /// Print how long the run took
    #[arg(short, long)]
    time: bool,
    /// Use N workers
    #[arg(short = 'j', long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Run in simulated time
    #[arg(long)]
    simtime: bool,
    /// Print the version and exit
    #[arg(short = 'V', short_alias = 'v', long, action = ArgAction::SetTrue)]
    version: bool,
    /// Print this help and exit
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// Runs `click`; gives its exit status, which is 1 for everything wrong.
pub(crate) fn main() -> i32 {
    let click = match Click::try_parse() {
        Ok(click) => click,
        Err(e) => {
            _ = e.print();
            return i32::from(e.use_stderr());
        }
    };
    if click.version {
        println!("click (Click) 2.1 compatible, Castanet {}", env!("CARGO_PKG_VERSION"));
        return 0;
    }
    match click.sort() {
        Ok((origin, vars)) => click.run(&origin, &vars),
        Err(message) => {
            eprintln!("click: {message}\nTry 'click --help' for more information.");
            1
        }
    }
}

impl Click {
    fn sort(&self) -> Result<Named, &'static str> {
        let vars = self.words.iter().filter_map(|word| as_setting(word)).collect();
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
        let mut loaded = load(origin, vars, &library);
        if loaded.found.has_errors() {
            loaded.report(Wording::Click);
            return 1;
        }
        let mut options = Options::new(Arc::new(Terminal));
        options.workers = self.threads.clamp(1, 256);
        options.pin = self.threads > 1;
        options.simulated = self.simtime;
        options.wording = Wording::Click;
        options.interfaces = Some(castanet_io::elements::address_of);
        let built = Router::build(&loaded.flat, &library, &options, &mut loaded.found);
        loaded.report(Wording::Click);
        let Some(mut router) = built else {
            eprintln!("Router could not be initialized!");
            return 1;
        };
        if let Err(e) = crate::signals::forward(router.line()) {
            eprintln!("click: cannot listen for signals: {e}");
            return 1;
        }
        self.drive(&mut router)
    }

    fn drive(&self, router: &mut Router) -> i32 {
        let (before, started) = (getrusage(UsageWho::RUSAGE_SELF), Instant::now());
        let mut status = 0;
        if !self.quit && !router.graph().elements.is_empty() {
            status = router.run(None).status;
        }
        if let (true, Ok(before), Ok(after)) = (self.time, before, getrusage(UsageWho::RUSAGE_SELF))
        {
            print_time(&before, &after, started);
        }
        for handler in &self.handlers {
            status = self.print_handler(router, handler).unwrap_or(1).max(status);
        }
        status
    }

    /// One handler prints its bare value; several print their names too.
    fn print_handler(&self, router: &mut Router, handler: &str) -> Option<i32> {
        match router.read(handler) {
            Ok(text) if self.handlers.len() == 1 => {
                print!("{text}");
                if !text.ends_with('\n') {
                    println!();
                }
            }
            Ok(text) => println!("{handler}:\n{text}\n"),
            Err(e) => {
                eprintln!("{}", e.in_click_words().unwrap_or_else(|| e.to_string()));
                return None;
            }
        }
        Some(0)
    }
}

/// `0.012u 0.003s 0:01.00`, as Click prints it.
fn print_time(before: &Usage, after: &Usage, started: Instant) {
    let spent = |of: fn(&Usage) -> nix::sys::time::TimeVal| {
        let milliseconds = (of(after) - of(before)).num_microseconds() / 1000;
        format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
    };
    let wall = started.elapsed().as_millis() / 10;
    println!(
        "{}u {}s {}:{:02}.{:02}",
        spent(Usage::user_time),
        spent(Usage::system_time),
        wall / 6000,
        wall / 100 % 60,
        wall % 100
    );
}
