//! `castanet top`: rates, drops and costs of elements, live.

mod rows;
mod screen;
mod text;

use super::commands::interval;
use super::instances::Attachment;
use crate::commands::CommandResult;
use crate::commands::line_editor::pause;
use crate::observe::rates::Rates;
use crate::observe::snapshot::Snapshot;
use crate::terminal::say_on;
use clap::Args;
use rows::{SortKey, View};
use serde::Serialize;
use std::io::IsTerminal;
use std::sync::atomic::AtomicBool;

/// Arguments of `castanet top`.
#[derive(Args, Clone)]
pub(crate) struct TopArguments {
    /// The instance, by its name or the path of its control socket, where there are several
    #[arg(value_name = "NAME|PATH")]
    pub(super) instance: Option<String>,
    /// Print one table and end
    #[arg(long)]
    once: bool,
    /// Seconds over which rates are measured
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    interval: f64,
    /// Order of elements
    #[arg(long, value_enum, default_value_t = SortKey::Graph, value_name = "KEY")]
    sort: SortKey,
    /// Only elements whose name or class has this in it
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Show each compound element as one
    #[arg(long)]
    fold: bool,
    /// Show elements without packets, too
    #[arg(long)]
    all: bool,
    /// Print JSON, a line for each interval; with --once, one value
    #[arg(long)]
    pub(super) json: bool,
}

/// A record of `--json`.
#[derive(Serialize)]
struct TopRecord<'a> {
    instance: &'a str,
    #[serde(flatten)]
    rates: Rates,
}

/// The shortest interval in seconds.
const LEAST: f64 = 0.05;

/// Reads the totals, and has workers take samples.
fn snapshot(it: &mut Attachment) -> Result<Snapshot, String> {
    it.read_json("snapshot sample")
}

/// Shows an instance until the user or the instance ends it.
pub(super) fn run(
    it: &mut Attachment,
    arguments: &TopArguments,
    json: bool,
    stop: &AtomicBool,
) -> CommandResult {
    let time = interval(arguments.interval, LEAST)?;
    let view = View {
        sort: arguments.sort,
        reverse: false,
        filter: arguments.filter.clone().unwrap_or_default(),
        fold: arguments.fold,
        all: arguments.all,
    };
    let json = json || arguments.json;
    if !json && !arguments.once && std::io::stdout().is_terminal() {
        return screen::run(it, time, view);
    }
    let name = it.instance.as_ref().map(|it| it.name.clone()).unwrap_or_default();
    let mut before = snapshot(it)?;
    loop {
        let goes_on = pause(time, stop);
        let after = snapshot(it)?;
        let rates = Rates::between(&before, &after);
        let text = match (json, arguments.once) {
            (false, _) => text::table(&rates, &view),
            (true, once) => {
                let record = TopRecord { instance: &name, rates };
                let text = if once {
                    serde_json::to_string_pretty(&record)
                } else {
                    serde_json::to_string(&record)
                };
                text.unwrap_or_default() + "\n"
            }
        };
        let is_read = say_on(&text)?;
        if arguments.once || !json || !goes_on || !is_read {
            return Ok(());
        }
        before = after;
    }
}
