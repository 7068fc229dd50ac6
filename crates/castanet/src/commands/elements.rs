//! `castanet elements` and `castanet element`: the manual.

use super::{CommandResult, write_json, write_out};
use crate::library::{library, manual_page, rooms};
use crate::terminal::{bold, colours_on_stdout};
use castanet_element::manual;
use castanet_lang::nearest;
use clap::Args;
use serde::Serialize;

/// Arguments of `castanet elements`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// List the metrics of instances and of elements instead, as tables in Markdown
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
}

/// Arguments of `castanet element`.
#[derive(Args)]
pub(crate) struct PageArguments {
    /// The class
    name: String,
}

#[derive(Serialize)]
struct Entry {
    room: &'static str,
    class: &'static str,
    aliases: &'static [&'static str],
    summary: String,
}

/// Lists every class by room with its one sentence.
pub(crate) fn list(arguments: &Arguments) -> CommandResult {
    if arguments.metrics {
        return write_out(None, &crate::metrics::tables());
    }
    let mut entries = Vec::new();
    for (room, classes) in rooms() {
        entries.extend(classes.iter().map(|class| Entry {
            room,
            class: class.spec.class,
            aliases: class.spec.aliases,
            summary: manual::summary(class).split_whitespace().collect::<Vec<_>>().join(" "),
        }));
    }
    if arguments.json {
        return write_json(&entries);
    }
    let colours = colours_on_stdout();
    let mut out = String::new();
    let mut room = "";
    for entry in &entries {
        if entry.room != room {
            room = entry.room;
            out += &format!("{}\n", bold(room, colours));
        }
        out += &format!("  {:<20} {}\n", entry.class, entry.summary);
    }
    write_out(None, &out)
}

/// Prints the manual page of a class.
pub(crate) fn page(arguments: &PageArguments) -> CommandResult {
    let library = library();
    let name = &arguments.name;
    let class = library.get(name).ok_or_else(|| {
        let near = nearest(name, library.names());
        let hint = near.map(|n| format!("; did you mean {n}?")).unwrap_or_default();
        format!("no element class {name}{hint}")
    })?;
    write_out(None, &manual_page(class))
}
