//! What tests of whole configurations have in common.

use castanet_elements::library;
use castanet_engine::router::{Options, Router};
use castanet_engine::worker::Console;
use castanet_lang::{SourceMap, expand, parse};
use std::sync::Arc;

struct Silent;

impl Console for Silent {
    fn chatter(&self, _: &str) {}
    fn print(&self, _: &str) {}
}

/// A router of that many workers, or a panic with all that is wrong.
pub(crate) fn build(text: &str, workers: usize) -> Router {
    build_with(text, workers, false)
}

/// The same, under simulated time.
#[allow(dead_code)] // not every test has it
pub(crate) fn build_simulated(text: &str, workers: usize) -> Router {
    build_with(text, workers, true)
}

fn build_with(text: &str, workers: usize, simulated: bool) -> Router {
    let library = library();
    let known = |class: &str| library.get(class).is_some();
    let mut sources = SourceMap::new();
    let file = sources.add("test", text);
    let (tree, mut found) = parse(&mut sources, file);
    let (flat, more) = expand(&tree, &known, &[]);
    found.append(more);
    assert!(!found.has_errors(), "{}", found.render_rich(&sources, false));
    let mut options = Options::new(Arc::new(Silent));
    (options.workers, options.simulated) = (workers, simulated);
    let router = Router::build(&flat, &library, &options, &mut found);
    router.unwrap_or_else(|| panic!("{}", found.render_rich(&sources, false)))
}
