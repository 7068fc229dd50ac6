//! The command line of `castanet`.

use crate::commands::{self, CommandError, CommandResult};
use crate::load::{Origin, OriginAndVariables};
use crate::terminal::complain;
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs packet-processing graphs written in the Click language.
#[derive(Parser)]
#[command(
    name = "castanet",
    version = crate::program::version(),
    after_help = "Examples:
  castanet run conf/router.click dev0=eth1 dev1=eth2 dev2=eth3
  castanet run -e 'InfiniteSource(LIMIT 5, STOP true) -> Print -> Discard'
  castanet check conf/router.click
  castanet graph conf/router.click -o router.svg
  castanet element DecIPTTL

Exit status: 0 done, 1 the configuration is wrong or could not be started,
2 the command line is wrong, 70 a bug of Castanet, 130 ended by a second Ctrl-C:
the first one ends a router in good order, with 0.
Called by the name `click`, or by that of one of Click's tools, it takes their
options instead; `castanet install-links DIR` makes these names."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a configuration
    #[command(after_help = "Examples:
  castanet run conf/router.click dev0=eth1 dev1=eth2 dev2=eth3 --watch
  castanet run conf/router.click dev0=eth1 dev1=eth2 dev2=eth3 --web 8080
  castanet run conf/router.click dev0=eth1 dev1=eth2 dev2=eth3 --metrics 127.0.0.1:9273
  castanet run -e 'FromDump(in.pcap, STOP true) -> IPPrint -> Discard'
  castanet run conf/router.click dev0=eth1 dev1=eth2 dev2=eth3 --confine --log json")]
    Run(commands::run::Arguments),
    /// Say whether a configuration is right, and everything that is wrong
    Check(commands::check::Arguments),
    /// Show each step from the text to running workers
    #[command(after_help = "Examples:
  castanet explain conf/router.click dev0=eth1 dev1=eth2 dev2=eth3
  castanet explain --privileges conf/router.click dev0=eth1 dev1=eth2 dev2=eth3")]
    Explain(commands::explain::Arguments),
    /// Compile a configuration into a program of its own
    #[command(after_help = "Examples:
  castanet build conf/router.click dev0=eth1 dev1=eth2 dev2=eth3 -o router
  ./router                    # as `castanet run conf/router.click dev0=eth1 ...`, faster
  ./router -j 4 dev0=eth7     # all options of `castanet run`, and other values
  ./router explain            # all other commands
  castanet build conf/router.click --print

It needs a Rust toolchain (https://rustup.rs) and the sources of this castanet: --source DIR,
$CASTANET_SOURCE, the checkout that it was compiled in, or ../share/castanet/src beside it, which
`castanet build --export-sources DIR` makes.

Exit status: 0 built, 1 the configuration is wrong or the program cannot be written, 2 the command
line is wrong, 3 no toolchain or no sources, or the compiler failed, 130 ended by Ctrl-C.")]
    Build(commands::build::Arguments),
    /// Draw the graph, as SVG or for Graphviz
    #[command(after_help = "Examples:
  castanet graph conf/router.click -o router.svg
  castanet graph conf/router.click --dot | dot -Tpng > router.png")]
    Graph(commands::graph::Arguments),
    /// Print the graph with all compound elements expanded
    Flatten(commands::text::Arguments),
    /// Print the configuration in one style
    Pretty(commands::text::Arguments),
    /// List every element class by room
    Elements(commands::elements::Arguments),
    /// Show the manual page of an element class
    Element(commands::elements::PageArguments),
    /// Bridge or route two interfaces by one-line rules, or talk to one that does
    #[command(after_help = "Examples:
  castanet middlebox --in eth0 --out eth1 rules.mmb --control /run/rules.sock
  castanet middlebox --in eth0 --in-address 10.0.1.1/24 --out eth1 --out-address 10.0.2.1/24 rules.mmb
  castanet middlebox --connect /run/rules.sock add tcp-syn tcp-opt-mss '>' 1400 mod tcp-opt-mss 1400
  castanet middlebox --connect /run/rules.sock list --json
  castanet middlebox --connect /run/rules.sock
  castanet middlebox check rules.mmb
The rules are in docs/middlebox.md; the shell says `help`.")]
    Middlebox(commands::middlebox::Arguments),
    /// List running instances, or attach to one: commands, or a shell
    #[command(after_help = "Examples:
  castanet ctl                          # the running instances
  castanet ctl router                   # a shell
  castanet ctl router read c.count
  castanet ctl router reload            # the configuration's file again, without losing a packet
  castanet ctl help                     # all commands
NAME is that of the configuration's file, or --name of `castanet run`; it may be left out where one
instance runs.")]
    Ctl(commands::ctl::Arguments),
    /// Show rates, drops and costs of a running instance, live
    #[command(after_help = "Examples:
  castanet top
  castanet top router --sort cost
  castanet top --once --json
Costs and bits/s are estimates: in at most 1/65 of its time, a worker measures bursts element by
element. Packets and drops are exact.
Keys: q ends, arrows and Enter look at an element, s sorts, r reverses, f folds compound elements,
/ filters, a shows idle elements, p pauses.")]
    Top(commands::ctl::TopArguments),
    /// Say why a running instance dropped packets
    #[command(after_help = "Examples:
  castanet drops
  castanet drops router --only expired
  castanet drops --interval 0 --json")]
    Drops(commands::ctl::DropsArguments),
    /// Follow the next packets through a running instance, element by element
    Trace(commands::ctl::TraceArguments),
    /// Capture packets at places of a running instance, or those that are dropped
    Capture(commands::ctl::CaptureArguments),
    /// Divide a policy among clouds that cannot read it, and show what each can know
    #[command(after_help = "Examples:
  castanet splitbox key splitbox.key
  castanet splitbox setup rules.txt --clouds 2 --out parties --key-file splitbox.key
  castanet splitbox inspect parties/processor-1.splitbox --key-file splitbox.key
  castanet splitbox rotate parties/client.splitbox --out parties --force --key-file splitbox.key
Files of the entry, of each processor and of the client are for one party each; docs/splitbox.md says more.")]
    Splitbox(commands::splitbox::Arguments),
    /// Run the graphs of many tenants as one, each with virtual devices of its own
    #[command(after_help = "Examples:
  castanet tenants check system.toml
  castanet tenants explain system.toml
  castanet tenants run system.toml --name box
  castanet ctl box reload               # the system file again; unchanged tenants go on
docs/tenants.md describes the system file.

Exit status: 0 done, 1 the system file or a configuration is wrong, or the instance refuses the command,
2 the command line is wrong, 70 a bug of Castanet, 130 ended by a second Ctrl-C: the first one ends
`castanet tenants run` in good order, with 0.")]
    Tenants(commands::tenants::Arguments),
    /// Measure; each benchmark prints its limit beside it
    Bench(commands::bench::Arguments),
    /// Make links by the names of Click and its tools, such as click-flatten
    #[command(after_help = "Examples:
  castanet install-links /usr/local/bin
  castanet install-links ~/bin && click-flatten conf/router.click")]
    InstallLinks {
        /// The directory, which is made if it is not there
        dir: PathBuf,
    },
    /// Install the unit of systemd that runs /etc/castanet/NAME.click as castanet@NAME
    #[command(after_help = "Examples:
  castanet install-service
  castanet install-service --print
  castanet install-service --root /srv/image --program /usr/bin/castanet
docs/operating.md says what the unit allows, and how to change that for one router.")]
    InstallService(commands::install_service::Arguments),
    /// Write completions for a shell to standard output
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
        /// For castanet by this name: `click`, `click-flatten` and so on
        #[arg(default_value = "castanet")]
        name: String,
    },
    /// Write the man pages into a directory, those of Click's tools too
    Man {
        /// The directory
        dir: PathBuf,
    },
}

/// Number of workers, and their cores.
#[derive(Args, Clone, Debug)]
pub(crate) struct Workers {
    /// How many workers, one a core
    #[arg(short = 'j', long, default_value_t = 1, value_name = "N", value_parser = worker_count)]
    pub(crate) threads: usize,
    /// Keep workers on these cores, such as 0,4-7, in order; else on those that the process may use
    #[arg(long, value_name = "CORES", value_parser = cores)]
    affinity: Option<std::sync::Arc<[usize]>>,
}

impl Workers {
    /// Number of workers.
    pub(crate) fn count(&self) -> usize {
        self.threads
    }

    /// Checks that the process may use the cores that the user names.
    pub(crate) fn check(&self) -> CommandResult {
        let text = |cores: &[usize]| castanet_kit::text::ranges(cores);
        let (online, allowed) =
            (castanet_runtime::cores::online(), castanet_runtime::cores::allowed());
        let absent =
            self.wanted().iter().find(|core| !online.contains(core) && !allowed.contains(core));
        if let Some(core) = absent {
            let message =
                format!("--affinity: there is no core {core}; this machine has {}", text(&online));
            return Err(CommandError::usage(message));
        }
        if let Some(core) = self.wanted().iter().find(|core| !allowed.contains(core)) {
            let may = text(&allowed);
            let message =
                format!("--affinity: this process may not use core {core}, but only {may}");
            return Err(CommandError::usage(message));
        }
        Ok(())
    }

    /// The cores that the user names.
    pub(crate) fn wanted(&self) -> &[usize] {
        self.affinity.as_deref().unwrap_or_default()
    }
}

/// Most workers of a router.
const MOST_WORKERS: usize = 256;

fn worker_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=MOST_WORKERS).contains(&count) => Ok(count),
        _ => Err(format!("this is no number of workers from 1 to {MOST_WORKERS}")),
    }
}

fn cores(text: &str) -> Result<std::sync::Arc<[usize]>, String> {
    match castanet_runtime::cores::listed(text) {
        Some(cores) if !cores.is_empty() => Ok(cores.into()),
        _ => Err("this is no list of cores such as 0,4-7".into()),
    }
}

/// Limits of the memory for packets.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Frames {
    /// Frames for devices and packets on their way; 16384, or more where the devices that are found
    /// have many queues
    #[arg(long, value_name = "N")]
    frames: Option<usize>,
    /// Memory for packets that elements keep, once devices need those frames: bytes, such as 512M,
    /// or a share of what there is, such as 25%, which is the default
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
}

impl Frames {
    /// Fewest frames that anything can be done with.
    const FEWEST: usize = 64;

    /// Sets the limits in the options of a router.
    pub(crate) fn set(&self, options: &mut castanet_runtime::router::Options) {
        (options.frames, options.memory) = (self.frames(), self.memory);
    }

    /// The pools of a router of this configuration, or why there cannot be such.
    pub(crate) fn sizes(
        &self,
        planned: &castanet_runtime::router::ConfigPlan,
    ) -> Result<castanet_element::frames::PoolSizes, String> {
        planned.sizes(self.frames(), self.memory)
    }

    fn frames(&self) -> Option<usize> {
        self.frames.map(|frames| frames.max(Frames::FEWEST))
    }
}

/// Bytes: a number, with K, M, G or T behind it for powers of 1024, or a share of the memory.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || "this is no size such as 512M or 25%".to_owned();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let limit = castanet_element::memory::limit();
    let bytes = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "%" if number <= 100 => Some(limit / 100 * number),
        "" | "B" => Some(number),
        "K" => number.checked_mul(1 << 10),
        "M" => number.checked_mul(1 << 20),
        "G" => number.checked_mul(1 << 30),
        "T" => number.checked_mul(1 << 40),
        _ => None,
    };
    bytes.ok_or_else(wrong)
}

/// Words of a command line that name a configuration.
#[derive(Args, Clone, Debug)]
pub(crate) struct Configuration {
    /// The configuration file (`-` is standard input), and VAR=value settings
    #[arg(value_name = "FILE or VAR=value")]
    words: Vec<String>,
    /// A configuration as text
    #[arg(short, long, value_name = "TEXT")]
    expression: Option<String>,
    /// Whether the file is a system file of tenants.
    #[arg(skip)]
    is_system: bool,
}

impl Configuration {
    /// The same words, as the name of a system file.
    pub(crate) fn of_system(self) -> Result<Configuration, String> {
        match (&self.expression, &self.words[..]) {
            (None, [word]) if as_setting(word).is_none() => {
                Ok(Configuration { is_system: true, ..self })
            }
            _ => {
                Err("name one system file, such as system.toml; it names the files of tenants and \
                      their variables"
                    .to_owned())
            }
        }
    }

    /// A configuration as text.
    pub(crate) fn of(text: String) -> Configuration {
        Configuration { words: Vec::new(), expression: Some(text), is_system: false }
    }

    /// The `VAR=value` settings.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        self.words.iter().filter_map(|word| as_setting(word)).collect()
    }

    /// The configuration and the variables; or what is wrong with the words.
    pub(crate) fn sort(&self) -> Result<OriginAndVariables, String> {
        let files: Vec<_> =
            self.words.iter().filter(|word| as_setting(word).is_none()).cloned().collect();
        let vars = self.settings();
        let origin = match (&self.expression, files.as_slice()) {
            (Some(text), []) => Origin::Expression(text.clone()),
            (None, [file]) if self.is_system => Origin::System(file.into()),
            (None, [file]) => Origin::File(file.into()),
            (None, []) => Origin::built()
                .ok_or("no configuration: name a file or give one with -e".to_owned())?,
            _ => return Err("more than one configuration".into()),
        };
        let vars = match origin {
            Origin::Built(built) => built.settings_under(vars),
            _ => vars,
        };
        Ok((origin, vars))
    }
}

/// `VAR=value`, if that is what a word is.
pub(crate) fn as_setting(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// Shows help, the version, or what is wrong with the command line; gives an
/// exit status if it could not be written.
pub(crate) fn told(outcome: &clap::Error, name: &str) -> Option<i32> {
    match outcome.print() {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe && !outcome.use_stderr() => {
            let why = crate::load::io_error_text(&e);
            complain(format_args!("{name}: cannot write: {why}"));
            Some(crate::exit::CONFIGURATION)
        }
        _ => None,
    }
}

/// The words of the command line. A built program runs its configuration unless they begin with a
/// command.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let options = ["help", "-h", "--help", "-V", "--version"];
    let first = words.get(1).and_then(|word| word.to_str());
    let is_command =
        |word: &str| options.contains(&word) || Cli::command().find_subcommand(word).is_some();
    if crate::program::configuration().is_some() && !first.is_some_and(is_command) {
        words.insert(words.len().min(1), "run".into());
    }
    words
}

/// Runs `castanet`; gives its exit status.
pub(crate) fn main() -> i32 {
    let cli = match Cli::try_parse_from(words()) {
        Ok(cli) => cli,
        Err(e) => {
            return told(&e, "castanet").unwrap_or(e.exit_code());
        }
    };
    let done = match cli.command {
        Command::Run(arguments) => commands::run::main(&arguments),
        Command::Check(arguments) => commands::check::main(&arguments),
        Command::Explain(arguments) => commands::explain::main(&arguments),
        Command::Build(arguments) => commands::build::main(&arguments),
        Command::Graph(arguments) => commands::graph::main(&arguments),
        Command::Flatten(arguments) => commands::text::flatten(&arguments),
        Command::Pretty(arguments) => commands::text::pretty(&arguments),
        Command::Elements(arguments) => commands::elements::list(&arguments),
        Command::Element(arguments) => commands::elements::page(&arguments),
        Command::Middlebox(arguments) => commands::middlebox::main(&arguments),
        Command::Ctl(arguments) => commands::ctl::main(&arguments),
        Command::Top(arguments) => commands::ctl::top(&arguments),
        Command::Drops(arguments) => commands::ctl::drops(&arguments),
        Command::Trace(arguments) => commands::ctl::trace(&arguments),
        Command::Capture(arguments) => commands::ctl::capture(&arguments),
        Command::Splitbox(arguments) => commands::splitbox::main(&arguments),
        Command::Tenants(arguments) => commands::tenants::main(arguments),
        Command::Bench(arguments) => commands::bench::main(&arguments),
        Command::InstallLinks { dir } => crate::tools::links::install(&dir),
        Command::InstallService(arguments) => commands::install_service::main(&arguments),
        Command::Completions { shell, name } => completions(shell, &name),
        Command::Man { dir } => {
            let clients = commands::ctl::man_page();
            commands::man::main(all().into_iter().chain([clients]).collect(), &dir)
        }
    };
    let Err(CommandError(status, message)) = done else { return 0 };
    message.iter().for_each(|message| complain(format_args!("castanet: {message}")));
    status
}

/// The command lines of every name that the program has.
fn all() -> Vec<clap::Command> {
    let tools = crate::tools::TOOLS.iter().map(|tool| (tool.command)());
    [Cli::command(), crate::click::command()].into_iter().chain(tools).collect()
}

fn completions(shell: clap_complete::Shell, name: &str) -> CommandResult {
    let command = all().into_iter().find(|command| command.get_name() == name);
    let unknown = || CommandError::usage(format!("it has no name '{name}'"));
    let mut command = command.ok_or_else(unknown)?;
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    commands::write_out(None, &String::from_utf8_lossy(&text))
}
