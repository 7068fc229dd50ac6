//! `castanet explain`: every step from the text to running workers.

use super::explanation::explain;
use super::{CommandError, CommandResult, load_or_report, start_dpdk, write_json, write_out};
use crate::cli::{Configuration, Frames, Workers};
use crate::library::library;
use crate::load::LoadedConfiguration;
use crate::privileges::Privileges;
use crate::terminal::{bold, colours_on_stdout};
use castanet_runtime::cores::Cores;
use castanet_runtime::graph::explain;
use castanet_runtime::router::{ConfigPlan, ErrorStyle, PacketOrder, plan};
use clap::Args;

/// Arguments of `castanet explain`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) configuration: Configuration,
    #[command(flatten)]
    workers: Workers,
    #[command(flatten)]
    frames: Frames,
    /// Start DPDK with these options of its environment abstraction layer, to see its ports
    #[arg(long, value_name = "EAL OPTIONS", allow_hyphen_values = true)]
    dpdk: Option<String>,
    /// Explain how it runs with `castanet run --exact`
    #[arg(long)]
    exact: bool,
    /// Print which capabilities, interfaces, sockets and files the configuration needs, and why
    #[arg(long)]
    privileges: bool,
    /// Print devices, queues, workers, pools and what reaches what, or the privileges, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Arguments {
    /// The heading of the elements to which packets come one at a time.
    fn why_single(&self) -> &'static str {
        match self.exact {
            true => "one packet at a time, for Click's order",
            false => "one packet at a time, for handlers called on the way",
        }
    }
}

/// Prints the privileges.
fn privileges(
    arguments: &Arguments,
    loaded: &LoadedConfiguration,
    planned: &ConfigPlan,
) -> CommandResult {
    let (origin, _) = arguments.configuration.sort().map_err(CommandError::usage)?;
    let mut privileges = Privileges::new(&planned.graph, planned.resources(), &loaded.sources);
    if let Some(tenants) = &loaded.tenants {
        privileges = privileges.with_tenants(tenants);
    }
    let privileges = privileges.with_control_socket(&origin);
    match arguments.json {
        true => write_json(&privileges),
        false => write_out(None, &privileges.text()),
    }
}

/// Prints the steps; stops at the first that finds errors.
pub(crate) fn main(arguments: &Arguments) -> CommandResult {
    start_dpdk(arguments.dpdk.as_deref())?;
    let library = library();
    let mut loaded = load_or_report(&arguments.configuration, &library)?;
    let cores = Cores::here(arguments.workers.count(), arguments.workers.wanted());
    let mut planned = plan(&loaded.flat, &library, &cores, ErrorStyle::Castanet, &mut loaded.found);
    if arguments.exact {
        planned.set_order(PacketOrder::Packets);
    }
    crate::lints::silence(&mut loaded.found, &loaded.sources, &[]);
    loaded.report(ErrorStyle::Castanet);
    if loaded.found.has_errors() {
        return Err(CommandError::REPORTED);
    }
    if arguments.privileges {
        return privileges(arguments, &loaded, &planned);
    }
    let sizes = arguments.frames.sizes(&planned);
    let sizes = sizes.map_err(|error| format!("cannot make frames: {error}"))?;
    if arguments.json {
        return write_json(&explain(&planned, sizes));
    }
    let (graph, assigned) = (&planned.graph, &planned.assigned);
    let indented = |text: String| text.lines().fold(String::new(), |s, l| s + "  " + l + "\n");
    let parsed = loaded.tree.as_ref().map(castanet_lang::print::pretty).unwrap_or_default();
    let mut steps = vec![
        ("parsed", indented(parsed)),
        ("compound elements expanded", indented(castanet_lang::print::flat(&loaded.flat))),
        ("ports resolved: push, pull", explain::elements(graph)),
        ("what each edge carries", explain::edges(graph, &planned.carries)),
        (
            "devices, queues and workers assigned",
            explain::devices(graph, assigned) + &explain::workers(graph, assigned, &cores),
        ),
        ("frames for devices, and for packets that are kept", sizes.to_string()),
        ("thread vectors: which workers reach what", explain::vectors(graph, assigned)),
        ("rows of elements that run as one pass", explain::passes(graph, &planned.fused)),
    ];
    let optional = [
        (
            "accounts of processor time and memory, and their tasks",
            explain::accounts(graph, assigned),
        ),
        (arguments.why_single(), explain::order(graph, assigned)),
    ];
    let place = steps.len() - 1;
    steps.splice(place..place, optional.into_iter().filter(|(_, text)| !text.is_empty()));
    let colours = colours_on_stdout();
    let origin = crate::program::origin();
    let mut out = origin.map(|origin| format!("{origin}\n\n")).unwrap_or_default();
    for (n, (title, text)) in steps.iter().enumerate() {
        out += &bold(&format!("{}. {title}", n + 1), colours);
        out += "\n";
        out += text;
        out += "\n";
    }
    write_out(None, &out)
}
