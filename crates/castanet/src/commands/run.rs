//! `castanet run`.

use super::{CommandError, CommandResult, load_or_report, start_dpdk};
use crate::cli::{Configuration, Frames, Workers};
use crate::confine::ConfinementArguments;
use crate::console::{Terminal, is_unwritten};
use crate::instance::{HttpAccess, InstanceArguments, InstanceService, RuntimeDirectory};
use crate::library::library;
use crate::links::LinkService;
use crate::load::{LoadedConfiguration, Origin};
use crate::log::LogArguments;
use crate::replace::{Reloader, ReplacementReader};
use crate::systemd::ServiceStatus;
use crate::terminal::{complain, inform, say};
use crate::watch::RateDisplay;
use castanet_element::files::HandlerFiles;
use castanet_runtime::router::{
    ErrorStyle, Options, PacketOrder, PeriodicService, Router, RunOutcome, Service,
};
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Arguments of `castanet run`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) configuration: Configuration,
    #[command(flatten)]
    workers: Workers,
    /// Packets that sources are asked for at once
    #[arg(long, default_value_t = castanet_packet::BURST, value_name = "N")]
    burst: usize,
    #[command(flatten)]
    frames: Frames,
    #[command(flatten)]
    pub(crate) instance: InstanceArguments,
    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    confinement: ConfinementArguments,
    /// Keep each worker on a core of its own (the default with several)
    #[arg(long)]
    pin: bool,
    /// Simulated time: jumps from timer to timer, the same every run
    #[arg(long)]
    simtime: bool,
    /// Click's order: each packet goes all the way before the next one starts, and no element of the first worker
    /// runs while a script takes a step; slower
    #[arg(long)]
    exact: bool,
    /// Start DPDK with these options of its environment abstraction layer
    #[arg(long, value_name = "EAL OPTIONS", allow_hyphen_values = true)]
    dpdk: Option<String>,
    /// Let `write hotconfig` replace the configuration while it runs
    #[arg(short = 'R', long)]
    allow_reconfigure: bool,
    /// Let handlers open files below this folder, links not followed (may be repeated); else they
    /// open none but those that the configuration names
    #[arg(long, value_name = "DIR")]
    pub(crate) handler_files: Vec<PathBuf>,
    /// Say neither how packets come and go nor that it runs
    #[arg(short, long)]
    quiet: bool,
    /// Print a handler when the router has stopped (may be repeated)
    #[arg(long = "handler", value_name = "ELEMENT.HANDLER")]
    handlers: Vec<String>,
    /// Show live rates
    #[arg(long)]
    watch: bool,
    /// With --watch, print JSON lines instead of a table
    #[arg(long, requires = "watch")]
    json: bool,
    /// Seconds between two looks of --watch
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    interval: f64,
}

impl Arguments {
    /// The arguments by which another command runs a configuration.
    pub(crate) fn of(configuration: Configuration, workers: Workers, quiet: bool) -> Arguments {
        Arguments {
            configuration,
            workers,
            burst: castanet_packet::BURST,
            frames: Frames::default(),
            instance: InstanceArguments::default(),
            log: LogArguments::default(),
            confinement: ConfinementArguments::default(),
            pin: false,
            simtime: false,
            exact: false,
            dpdk: None,
            allow_reconfigure: false,
            handler_files: Vec::new(),
            quiet,
            handlers: Vec::new(),
            watch: false,
            json: false,
            interval: 1.0,
        }
    }
}

impl Arguments {
    /// Checks that the handlers exist that are to be printed at the end. With `-R` another
    /// configuration may have them.
    fn check_handlers(&self, router: &Router) -> CommandResult {
        if self.allow_reconfigure {
            return Ok(());
        }
        let missing = |handler: &String| router.find_handler(handler, false).err();
        let said = |(handler, error)| format!("--handler {handler}: {error}");
        let all = self.handlers.iter().filter_map(|it| Some((it, missing(it)?)));
        let messages: Vec<String> = all.map(said).collect();
        match messages.is_empty() {
            true => Ok(()),
            false => Err(CommandError::from(messages.join("\ncastanet: "))),
        }
    }
}

/// Builds and runs a router.
pub(crate) fn main(arguments: &Arguments) -> CommandResult {
    arguments.log.apply();
    arguments.workers.check()?;
    let http = arguments.instance.http.listen()?;
    let library = library();
    start_dpdk(arguments.dpdk.as_deref())?;
    let mut loaded = load_or_report(&arguments.configuration, &library)?;
    let mut options = Options::new(Arc::new(Terminal));
    options.workers = arguments.workers.count();
    options.cores = arguments.workers.wanted().to_vec();
    options.burst = arguments.burst.clamp(1, castanet_packet::MAX_BURST);
    arguments.frames.set(&mut options);
    options.pin = arguments.pin || options.workers > 1 || !options.cores.is_empty();
    options.simulated = arguments.simtime;
    if arguments.exact {
        options.order = PacketOrder::Packets;
    }
    options.interfaces = Some(castanet_io::elements::address_of);
    options.handler_files = HandlerFiles::below(arguments.handler_files.iter().cloned());
    options.text = loaded.text.take();
    options.packages = crate::load::PACKAGES;
    let built = Router::build(&loaded.flat, &library, &options, &mut loaded.found);
    crate::lints::silence(&mut loaded.found, &loaded.sources, &[]);
    loaded.report(ErrorStyle::Castanet);
    let mut router = built.ok_or(CommandError::REPORTED)?;
    arguments.check_handlers(&router)?;
    confine(arguments, &router, &loaded)?;
    let (origin, vars) = arguments.configuration.sort().map_err(CommandError::usage)?;
    let reader = Arc::new(ReplacementReader {
        vars,
        clickpath: None,
        warnings: true,
        add: Box::new(|_| ()),
        library,
        wording: ErrorStyle::Castanet,
    });
    match arguments.allow_reconfigure {
        true => router.allow_replacements(reader.source(&options)),
        false => router.set_hot_swap_source(reader.source(&options)),
    }
    let mut instance = instance(&router, arguments, origin, reader, http)?;
    if let Some(instance) = &mut instance {
        instance.serve_tenants(&router, &mut loaded)?;
    }
    let hangup = instance.as_ref().and_then(|it| it.reloads_by_signal(&router));
    crate::signals::forward(&mut router, hangup)
        .map_err(|e| format!("cannot listen for signals: {e}"))?;
    let outcome = run(&mut router, arguments, instance.as_mut());
    // Clients receive the last answers.
    drop(instance);
    match print_handlers(&mut router, &arguments.handlers) | finish(router, outcome) {
        0 => Ok(()),
        status => Err(CommandError(status, None)),
    }
}

/// Confines the process if the arguments say so.
fn confine(
    arguments: &Arguments,
    router: &Router,
    loaded: &LoadedConfiguration,
) -> Result<(), CommandError> {
    if !arguments.confinement.confine {
        return Ok(());
    }
    let starts =
        |class: &str| router.graph().elements.iter().any(|it| it.class.spec.class == class);
    if starts("TenantProcess") {
        let why = "--confine has the process start no program, as tenants with \
                   `isolation = \"process\"` need it; their processes are confined without it";
        return Err(why.to_owned().into());
    }
    if !arguments.instance.no_control {
        // The directory of the control socket is among the files that stay in reach.
        _ = RuntimeDirectory::own().make();
    }
    let folders = &arguments.handler_files;
    let sentences = crate::confine::confine(&arguments.confinement, router, loaded, folders)?;
    if !arguments.quiet {
        inform(format_args!("castanet: confined: {}", sentences.join("; ")));
    }
    Ok(())
}

/// The service for clients of this instance. Time has to be real for them.
fn instance(
    router: &Router,
    arguments: &Arguments,
    origin: Origin,
    reader: Arc<ReplacementReader>,
    http: Vec<HttpAccess>,
) -> Result<Option<InstanceService>, CommandError> {
    if arguments.simtime {
        let InstanceArguments { name, control, .. } = &arguments.instance;
        if let Some(option) = arguments.instance.http.wanted() {
            return Err(CommandError::usage(format!("there is no {option} under --simtime")));
        }
        return match name.is_some() || control.is_some() {
            true => Err(CommandError::usage("there is no control socket under --simtime".into())),
            false => Ok(None),
        };
    }
    let reloader = Reloader { origin, reader };
    let mut instance = InstanceService::new(router, &arguments.instance, reloader)?;
    if !http.is_empty() {
        instance.answer_http(router, http)?;
    }
    Ok(Some(instance))
}

fn run(
    router: &mut Router,
    arguments: &Arguments,
    instance: Option<&mut InstanceService>,
) -> RunOutcome {
    if !arguments.quiet {
        interfaces(router).values().for_each(|line| inform(format_args!("castanet: {line}")));
    }
    // Without this line nobody would know a token that was chosen.
    let addresses = instance.iter().flat_map(|it| it.addresses(!arguments.quiet));
    addresses.for_each(|line| inform(format_args!("castanet: {line}")));
    if !arguments.quiet {
        inform("castanet: running");
    }
    let every = Duration::try_from_secs_f64(arguments.interval.max(0.01));
    let every = every.unwrap_or(Duration::from_secs(1));
    let mut watch = arguments.watch.then(|| RateDisplay::new(router, arguments.json, every));
    let mut status = ServiceStatus::from_environment();
    let mut links = LinkService::new(router);
    let mut services: Vec<&mut dyn Service> = vec![&mut status, &mut links];
    services.extend(instance.map(|it| it as &mut dyn Service));
    let mut look = |router: &mut Router| watch.iter_mut().for_each(|watch| watch.look(router));
    let mut display = PeriodicService::new(every, &mut look);
    if arguments.watch {
        services.push(&mut display);
    }
    let mut summarize = |_: &mut Router| crate::log::summarize();
    let mut summary = PeriodicService::new(crate::log::SUMMARY_INTERVAL, &mut summarize);
    services.push(&mut summary);
    let outcome = router.run_with(&mut services);
    crate::systemd::stopping();
    watch.iter_mut().for_each(|watch| watch.look(router));
    outcome
}

/// For each interface, by its name, how its packets come and go, and why so.
fn interfaces(router: &mut Router) -> BTreeMap<String, String> {
    let names = router.graph().elements.iter().map(|it| format!("{}.device", it.name));
    let handlers: Vec<String> = names.filter(|it| router.has_handler(it, false)).collect();
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for line in handlers.iter().filter_map(|handler| router.read(handler).ok()) {
        let Some((name, _)) = line.split_once(':') else { continue };
        let said = found.entry(name.to_owned()).or_default();
        // The line of the element that receives tells also how the same device sends.
        if said.len() < line.len() {
            *said = line;
        }
    }
    found
}

fn print_handlers(router: &mut Router, handlers: &[String]) -> i32 {
    let mut status = 0;
    for handler in handlers {
        let said = match router.read(handler) {
            Ok(text) if handlers.len() == 1 => say(&format!("{}\n", text.trim_end())),
            Ok(text) => say(&format!("{handler}:\n{}\n\n", text.trim_end())),
            Err(e) => Err(e.to_string()),
        };
        if let Err(message) = said {
            complain(format_args!("castanet: {message}"));
            status = crate::exit::CONFIGURATION;
        }
    }
    status
}

/// Takes the router apart and says so if packets or bursts were lost to bugs.
pub(crate) fn finish(router: Router, outcome: RunOutcome) -> i32 {
    let report = router.dismantle();
    if report.leaked_frames > 0 {
        let frames = report.leaked_frames;
        complain(format_args!("castanet: {frames} frames did not come back to the pool"));
    }
    if report.panics > 0 {
        let bursts = report.panics;
        complain(format_args!("castanet: {bursts} bursts were lost to panics in elements"));
    }
    match outcome {
        _ if report.leaked_frames > 0 || report.panics > 0 || report.lost_workers > 0 => {
            crate::exit::BUG
        }
        RunOutcome { status: 0, .. } if is_unwritten() => crate::exit::CONFIGURATION,
        // Ctrl-C is how a router that runs for ever is meant to end.
        RunOutcome { interrupted: true, .. } => 0,
        RunOutcome { status, .. } => status,
    }
}
