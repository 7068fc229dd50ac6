//! `castanet graph`: the router, drawn.

use super::{CommandError, CommandResult, load_or_report, write_out};
use crate::cli::Configuration;
use crate::library::library;
use castanet_element::flow::Flow;
use castanet_lang::print::{ConnectionKind, DrawingInfo, dot, svg};
use castanet_runtime::cores::Cores;
use castanet_runtime::graph::Graph;
use castanet_runtime::router::{ErrorStyle, plan};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `castanet graph`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    configuration: Configuration,
    /// Write to this file; `.dot` and `.gv` are for Graphviz, all others SVG
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write Graphviz instead of SVG
    #[arg(long)]
    dot: bool,
}

/// Push and pull by connection, room by element.
struct ResolvedGraph<'a>(&'a Graph);

impl DrawingInfo for ResolvedGraph<'_> {
    fn connection(&self, connection: usize) -> ConnectionKind {
        match self.0.edges.get(connection).map(|e| e.flow) {
            Some(Flow::Push) => ConnectionKind::Push,
            Some(Flow::Pull) => ConnectionKind::Pull,
            _ => ConnectionKind::Agnostic,
        }
    }
    fn color(&self, element: usize) -> Option<String> {
        let file = self.0.elements.get(element)?.class.spec.file;
        let room = file.rsplit('/').nth(1).unwrap_or_default();
        let colour = match room {
            "source" | "elements" => "#d9f0d3",
            "queue" => "#fde0c5",
            "ether" | "arp" => "#e7e0f5",
            "ip" | "ip6" => "#d6e6f7",
            "icmp" | "udp" | "tcp" => "#cfeaf0",
            _ => "#f4f4f4",
        };
        Some(colour.to_owned())
    }
}

/// Draws the graph.
pub(crate) fn main(arguments: &Arguments) -> CommandResult {
    let library = library();
    let mut loaded = load_or_report(&arguments.configuration, &library)?;
    let planned =
        plan(&loaded.flat, &library, &Cores::here(1, &[]), ErrorStyle::Castanet, &mut loaded.found);
    loaded.report(ErrorStyle::Castanet);
    if loaded.found.has_errors() {
        return Err(CommandError::REPORTED);
    }
    let output = arguments.output.as_deref();
    let extension = output.and_then(|p| p.extension()).and_then(|e| e.to_str());
    let kinds = ResolvedGraph(&planned.graph);
    let text = match arguments.dot || matches!(extension, Some("dot" | "gv")) {
        true => dot(&loaded.flat, &kinds),
        false => svg(&loaded.flat, &kinds),
    };
    write_out(output, &text)
}
