//! What tests of whole configurations have in common.

#![allow(dead_code, clippy::unwrap_used)] // no test has all of it

use castanet_elements::library;
use castanet_engine::router::{Notice, Options, Replacements, Report, Router};
use castanet_engine::worker::Console;
use castanet_lang::{Diagnostics, FlatGraph, SourceMap, expand, parse};
use std::sync::Arc;
use std::time::Duration;

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
pub(crate) fn build_simulated(text: &str, workers: usize) -> Router {
    build_with(text, workers, true)
}

/// The same, with a console that gets what elements print.
pub(crate) fn build_with_console(
    text: &str,
    workers: usize,
    console: Arc<dyn Console + Send + Sync>,
) -> Router {
    let mut options = Options::new(console);
    options.workers = workers;
    build_with_options(text, &options)
}

fn build_with(text: &str, workers: usize, simulated: bool) -> Router {
    build_with_options(text, &options(workers, simulated))
}

fn build_with_options(text: &str, options: &Options) -> Router {
    let mut router = None;
    read(text, &mut |graph, found| {
        router = Router::build(graph, &library(), options, found);
    })
    .unwrap_or_else(|wrong| panic!("{wrong}"));
    router.expect("was built without a fault")
}

fn options(workers: usize, simulated: bool) -> Options {
    let mut options = Options::new(Arc::new(Silent));
    (options.workers, options.simulated) = (workers, simulated);
    options
}

/// Does something with the graph of a text; what is wrong with it, if anything is.
fn read(text: &str, build: &mut dyn FnMut(&FlatGraph, &mut Diagnostics)) -> Result<(), String> {
    let library = library();
    let known = |class: &str| library.get(class).is_some();
    let mut sources = SourceMap::new();
    let file = sources.add("test", text);
    let (tree, mut found) = parse(&mut sources, file);
    let (flat, more) = expand(&tree, &known, &[]);
    found.append(more);
    if !found.has_errors() {
        build(&flat, &mut found);
    }
    match found.has_errors() {
        true => Err(found.render_rich(&sources, false)),
        false => Ok(()),
    }
}

/// A router of two workers whose configuration can be replaced.
pub(crate) fn replaceable(text: &str) -> Router {
    let mut router = build(text, 2);
    router.allow_replacements(Replacements {
        library: library(),
        options: options(2, false),
        read: Box::new(|text, build| read(text, build)),
    });
    router
}

/// What a handler says, which is a number.
pub(crate) fn number(router: &mut Router, handler: &str) -> u64 {
    router.read(handler).unwrap().parse().unwrap()
}

/// Runs on threads until `done`, which must be soon.
pub(crate) fn run_until(router: &mut Router, mut done: impl FnMut(&mut Router) -> bool) {
    const LOOKS: u32 = 4000;
    let (line, mut looks, mut told) = (router.line(), 0, false);
    let mut look = |router: &mut Router| {
        looks += 1;
        // Once: a word too many would end the next run before its time.
        if !told && (done(router) || looks == LOOKS) {
            told = true;
            line.send(Notice::Interrupted).unwrap();
        }
    };
    router.run(Some((Duration::from_millis(5), &mut look)));
    assert!(looks < LOOKS, "it does not come to an end");
}

/// Runs on threads until a handler has reached `count`.
pub(crate) fn run_until_count(router: &mut Router, handler: &str, count: u64) {
    run_until(router, |router| number(router, handler) >= count);
}

/// Takes a router apart; nothing may be left over.
pub(crate) fn clean(router: Router) {
    assert_eq!(router.dismantle(), Report { leaked_frames: 0, panics: 0, lost_workers: 0 });
}
