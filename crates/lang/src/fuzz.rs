//! Entry points for fuzzers: run all code that reads text from outside, and check its invariants.

mod tools;
mod transforms;

pub use tools::fuzz_tools;

use crate::print::{self, NoDrawingInfo};
use crate::{AnyClass, Diagnostics, FlatGraph, SourceMap, args, expand, parse};

/// Most elements of a graph that is drawn or transformed; larger graphs would only be slow.
const MAX_ELEMENTS: usize = 300;

/// Parses, expands, prints and parses again any bytes.
///
/// # Panics
/// If an invariant does not hold, which is a defect of this crate.
pub fn fuzz_entry(bytes: &[u8]) {
    let mut sources = SourceMap::new();
    let file = sources.add("fuzz", bytes);
    let (tree, mut diagnostics) = parse(&mut sources, file);
    let vars = [("X".to_string(), "$Y (x".to_string()), ("Y".to_string(), "\"".to_string())];
    let (flat, more) = expand(&tree, &AnyClass, &vars);
    diagnostics.append(more);
    diagnostics.render_click(&sources);
    diagnostics.render_rich(&sources, false);
    check_graph(&flat);
    let text = sources.text(file);
    check_args(&text);
    let pretty = print::pretty(&tree);
    if diagnostics.is_empty() {
        check_same(&read(&pretty), &flat, "formatted");
        check_round_trip(&flat);
    }
    transforms::check(&tree, &diagnostics, &flat, &sources);
    if is_small(&flat) {
        assert!(print::svg(&flat, &NoDrawingInfo).ends_with("</svg>\n"));
        assert!(print::dot(&flat, &NoDrawingInfo).ends_with("}\n"));
    }
}

/// Whether a graph is small enough for slow checks.
fn is_small(flat: &FlatGraph) -> bool {
    flat.elements.len() <= MAX_ELEMENTS && flat.connections.len() <= 2 * MAX_ELEMENTS
}

/// Parses and expands a printed configuration.
fn read(text: &str) -> (FlatGraph, Diagnostics) {
    let mut sources = SourceMap::new();
    let file = sources.add("again", text);
    let (tree, mut diagnostics) = parse(&mut sources, file);
    let vars = [("X".to_string(), "$Y (x".to_string()), ("Y".to_string(), "\"".to_string())];
    let (flat, more) = expand(&tree, &AnyClass, &vars);
    diagnostics.append(more);
    (flat, diagnostics)
}

/// Checks that indices are in range, connections sorted and unique, and names complete.
fn check_graph(flat: &FlatGraph) {
    for pair in flat.connections.windows(2) {
        assert!((pair[0].to, pair[0].from) < (pair[1].to, pair[1].from), "sorted, none twice");
    }
    for connection in &flat.connections {
        assert!(connection.from.element < flat.elements.len());
        assert!(connection.to.element < flat.elements.len());
    }
    for element in &flat.elements {
        let span = element.span_of(0..element.config.len());
        assert!(span.start <= span.end);
        assert!(!element.name.contains(';') && !element.class.is_empty());
    }
}

/// Checks that a text read again, `what`, gives the same graph.
fn check_same((again, diagnostics): &(FlatGraph, Diagnostics), flat: &FlatGraph, what: &str) {
    assert!(!diagnostics.has_errors(), "{what} text has errors: {diagnostics:?}");
    assert_eq!(print::flat(again), print::flat(flat), "{what} text means something else");
}

/// Checks that the printed graph reads back the same, unless a substitution has made a graph that
/// no source text describes.
fn check_round_trip(flat: &FlatGraph) {
    if is_printable(flat) {
        check_same(&read(&print::flat(flat)), flat, "flat");
    }
}

/// Whether a source text can describe a flat graph.
fn is_printable(flat: &FlatGraph) -> bool {
    let is_printable = |config: &str| {
        let text = format!("{config})");
        let mut sources = SourceMap::new();
        let file = sources.add("config", format!("a :: A({text}"));
        let (tree, errors) = parse(&mut sources, file);
        let (alone, more) = expand(&tree, &AnyClass, &[]);
        let same = alone.elements.first().is_some_and(|element| element.config == config);
        errors.is_empty() && more.is_empty() && same
    };
    let mut classes = flat.elements.iter().map(|element| &element.class);
    !(classes.any(|class| class.contains(['@', '/']))
        || !flat.elements.iter().all(|e| e.config.is_empty() || is_printable(&e.config))
        || flat.elements.iter().any(|e| e.config.contains('$'))
        || flat.elements.iter().any(|e| crate::ClassInfo::presumes(&AnyClass, &e.name)))
}

/// Checks that splitting keeps the order of the text, and that unquoting reverses quoting.
fn check_args(text: &str) {
    let short = &text[..text.len().min(4096)
        - (0..4)
            .find(|n| text.is_char_boundary(text.len().min(4096).saturating_sub(*n)))
            .unwrap_or(0)];
    let mut last = 0;
    for arg in args::split(short) {
        assert!(arg.offset >= last && arg.offset <= short.len());
        last = arg.offset;
        assert_eq!(args::uncomment(&arg.text), arg.text, "an argument has no comments left");
    }
    for word in args::split_words(short) {
        assert!(!word.is_empty());
    }
    assert_eq!(args::unquote(&args::quote(short)), short);
    assert_eq!(args::unquote_bytes(&args::quote_bytes(short.as_bytes())), short.as_bytes());
}
