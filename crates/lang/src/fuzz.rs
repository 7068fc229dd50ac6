//! One entry for fuzzers: everything that text from outside goes through, with its invariants.

mod tools;
mod transforms;

pub use tools::fuzz_tools;

use crate::print::{self, Plain};
use crate::{AnyClass, Diagnostics, Flat, SourceMap, args, expand, parse};

/// Drawings of larger graphs would only be slow.
const DRAWN: usize = 300;

/// Parses, expands, prints and parses again whatever the bytes are.
///
/// # Panics
/// If an invariant does not hold: that is a defect of this crate.
pub fn fuzz_entry(bytes: &[u8]) {
    let mut sources = SourceMap::new();
    let file = sources.add("fuzz", bytes);
    let (tree, mut diagnostics) = parse(&mut sources, file);
    let vars = [("X".to_string(), "$Y (x".to_string()), ("Y".to_string(), "\"".to_string())];
    let (flat, more) = expand(&tree, &AnyClass, &vars);
    diagnostics.append(more);
    diagnostics.render_click(&sources);
    diagnostics.render_rich(&sources, false);
    check(&flat);
    let text = sources.text(file);
    args_hold(&text);
    let pretty = print::pretty(&tree);
    if diagnostics.is_empty() {
        reprint(&tree_of(&pretty), &flat, "formatted");
        round_trip(&flat);
    }
    transforms::hold(&tree, &diagnostics, &flat, &sources);
    if flat.elements.len() <= DRAWN && flat.connections.len() <= 2 * DRAWN {
        assert!(print::svg(&flat, &Plain).ends_with("</svg>\n"));
        assert!(print::dot(&flat, &Plain).ends_with("}\n"));
    }
}

fn tree_of(text: &str) -> (Flat, Diagnostics) {
    let mut sources = SourceMap::new();
    let file = sources.add("again", text);
    let (tree, mut diagnostics) = parse(&mut sources, file);
    let vars = [("X".to_string(), "$Y (x".to_string()), ("Y".to_string(), "\"".to_string())];
    let (flat, more) = expand(&tree, &AnyClass, &vars);
    diagnostics.append(more);
    (flat, diagnostics)
}

/// Indices are in range, connections sorted, names unique.
fn check(flat: &Flat) {
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

fn reprint((again, diagnostics): &(Flat, Diagnostics), flat: &Flat, what: &str) {
    assert!(!diagnostics.has_errors(), "{what} text has errors: {diagnostics:?}");
    assert_eq!(print::flat(again), print::flat(flat), "{what} text means something else");
}

/// What is printed flat is read back the same, unless a substitution left something that no source
/// text could say.
fn round_trip(flat: &Flat) {
    if sayable(flat) {
        reprint(&tree_of(&print::flat(flat)), flat, "flat");
    }
}

/// Whether a source text can say all that stands in a flat graph.
fn sayable(flat: &Flat) -> bool {
    let sayable = |config: &str| {
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
        || !flat.elements.iter().all(|e| e.config.is_empty() || sayable(&e.config))
        || flat.elements.iter().any(|e| e.config.contains('$'))
        || flat.elements.iter().any(|e| crate::ClassInfo::knows(&AnyClass, &e.name)))
}

/// Splitting covers the text in order; quoting is undone by unquoting.
fn args_hold(text: &str) {
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
