//! Shared code of the fuzz targets: class libraries, text of limited length, a silent console.

use castanet_element::class::Library;
use castanet_bench::example::{survive, with_fragments, with_swaps};
use castanet_runtime::router::Options;
use castanet_runtime::console::Console;
use castanet_lang::{Diagnostics, FlatGraph, SourceMap, expand, parse};
use std::cell::LazyCell;
use std::sync::Arc;

thread_local! {
    /// All classes except those of devices, sockets and packet files.
    pub static ELEMENTS: LazyCell<Library> = LazyCell::new(|| {
        let mut library = castanet_elements::library();
        castanet_middlebox::CLASSES.iter().for_each(|class| library.add(class));
        library
    });
    /// All classes.
    pub static CLASSES: LazyCell<Library> = LazyCell::new(|| {
        let mut library = castanet_elements::library();
        castanet_io::elements::CLASSES.iter().for_each(|class| library.add(class));
        castanet_middlebox::CLASSES.iter().for_each(|class| library.add(class));
        library
    });
}

/// Most bytes of a text: enough for every element, too few for inputs that are only large.
const MAX_TEXT: usize = 4000;

/// Returns the text at the start of an input.
pub fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(&data[..data.len().min(MAX_TEXT)]).into_owned()
}

/// Builds the configuration of an example and runs its script, in simulated time and without
/// devices. An example may have several configurations, each of which replaces the one before it.
/// An example with a single one is replaced by similar configurations, one of which is refused.
/// Half of the examples, by length, also get their packets in fragments.
///
/// # Panics
/// If an element panics, or its packets do not balance.
pub fn run_example(example: &str) {
    // A script that lets an hour pass would take the fuzzer an hour, without a defect.
    let lines = example.lines().map(|line| if line.starts_with('+') { "+ 100ms" } else { line });
    let mut text = lines.collect::<Vec<_>>().join("\n");
    let (burst, fragments) = ([1, 4, 64][text.len() % 3], text.len().is_multiple_of(2));
    if fragments {
        text = with_fragments(&text);
    }
    if !text.contains("\n%\n") {
        text = with_swaps(&text);
    }
    ELEMENTS.with(|library| survive(&text, library, burst)).expect("packets balance");
}

/// Parses and expands a configuration of a library's classes.
pub fn flat(text: &str, library: &Library) -> (FlatGraph, Diagnostics, SourceMap) {
    let mut sources = SourceMap::new();
    let file = sources.add("fuzz", text);
    let (tree, mut diagnostics) = parse(&mut sources, file);
    let (flat, errors) = expand(&tree, &|class: &str| library.get(class).is_some(), &[]);
    diagnostics.append(errors);
    (flat, diagnostics, sources)
}

/// Returns options for one worker and few frames, without output of elements.
pub fn options(simulated: bool) -> Options {
    let mut options = Options::new(Arc::new(SilentConsole));
    (options.simulated, options.frames) = (simulated, Some(256));
    options
}

/// A console that discards all output.
struct SilentConsole;

impl Console for SilentConsole {
    fn chatter(&self, _: &str) {}
    fn print(&self, _: &str) {}
}
