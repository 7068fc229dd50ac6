//! What several fuzz targets need: the classes, a console that says nothing, text within bounds.

use castanet_engine::class::Library;
use castanet_engine::example::{survive, with_fragments, with_swaps};
use castanet_engine::router::Options;
use castanet_engine::worker::Console;
use castanet_lang::{Diagnostics, Flat, SourceMap, expand, parse};
use std::cell::LazyCell;
use std::sync::Arc;

thread_local! {
    /// Every class but those of devices, sockets and files of packets.
    pub static ELEMENTS: LazyCell<Library> = LazyCell::new(|| {
        let mut library = castanet_elements::library();
        castanet_middlebox::CLASSES.iter().for_each(|class| library.add(class));
        library
    });
    /// Every class.
    pub static CLASSES: LazyCell<Library> = LazyCell::new(|| {
        let mut library = castanet_elements::library();
        castanet_io::elements::CLASSES.iter().for_each(|class| library.add(class));
        castanet_middlebox::CLASSES.iter().for_each(|class| library.add(class));
        library
    });
}

/// Long enough for every element, too short for what is only large.
const LONGEST: usize = 4000;

/// The text that an input begins with.
pub fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(&data[..data.len().min(LONGEST)]).into_owned()
}

/// Builds the configuration of an example and does what its script says, in simulated time and
/// without devices. An example may have several parts, each the configuration that replaces the
/// one before it; one that has none is replaced by others like it, one of which is refused.
/// Every other one is fed fragments of its packets as well.
///
/// # Panics
/// If an element panics, or its packets do not balance.
pub fn live_through(example: &str) {
    // An hour of traffic is no defect, only an hour.
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

/// A configuration of these classes, flat, and what is wrong with it.
pub fn flat(text: &str, library: &Library) -> (Flat, Diagnostics, SourceMap) {
    let mut sources = SourceMap::new();
    let file = sources.add("fuzz", text);
    let (tree, mut found) = parse(&mut sources, file);
    let (flat, errors) = expand(&tree, &|class: &str| library.get(class).is_some(), &[]);
    found.append(errors);
    (flat, found, sources)
}

/// One worker, few frames, and nobody hears what elements say.
pub fn options(simulated: bool) -> Options {
    let mut options = Options::new(Arc::new(Silence));
    (options.simulated, options.frames) = (simulated, Some(256));
    options
}

struct Silence;

impl Console for Silence {
    fn chatter(&self, _: &str) {}
    fn print(&self, _: &str) {}
}
