//! Draws a configuration: `draw FILE [dot|flat|pretty]`, SVG by default.

use castanet_lang::print::{self, ConnectionKind, DrawingInfo};
use castanet_lang::{AnyClass, FlatGraph, SourceMap, expand, parse};

/// Marks connections from a `Queue` as pull and all others as push.
struct QueueInfo<'a>(&'a FlatGraph);

impl DrawingInfo for QueueInfo<'_> {
    fn connection(&self, at: usize) -> ConnectionKind {
        let from = self.0.connections[at].from.element;
        if self.0.elements[from].class == "Queue" {
            ConnectionKind::Pull
        } else {
            ConnectionKind::Push
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mut sources = SourceMap::new();
    let file = match sources.load(args.next().unwrap_or_default()) {
        Ok(file) => file,
        Err(error) => {
            eprintln!("{}", error.message);
            std::process::exit(1);
        }
    };
    let (tree, mut diagnostics) = parse(&mut sources, file);
    let (flat, more) = expand(&tree, &AnyClass, &[]);
    diagnostics.append(more);
    eprint!("{}", diagnostics.render_rich(&sources, false));
    let text = match args.next().as_deref() {
        Some("dot") => print::dot(&flat, &QueueInfo(&flat)),
        Some("flat") => print::flat(&flat),
        Some("pretty") => print::pretty(&tree),
        _ => print::svg(&flat, &QueueInfo(&flat)),
    };
    print!("{text}");
}
