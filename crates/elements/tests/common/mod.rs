//! Helpers for tests of whole configurations.

// Each test uses a part of it; threads call the console.
#![allow(dead_code, clippy::unwrap_used, clippy::disallowed_types)]

use castanet_elements::library;
use castanet_lang::{Diagnostics, FlatGraph};
use castanet_runtime::console::{Console, SilentConsole};
use castanet_runtime::router::{HotSwapSource, Options, Router, TeardownReport};
use castanet_runtime::worker::driver::DriverEvent;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A router with this number of workers. Panics with the diagnostics if the configuration is wrong.
pub(crate) fn build(text: &str, workers: usize) -> Router {
    build_with(text, workers, false)
}

/// Like [`build`], under simulated time.
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
    Router::from_text(text, &library(), options).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn options(workers: usize, simulated: bool) -> Options {
    let mut options = Options::new(Arc::new(SilentConsole));
    (options.workers, options.simulated) = (workers, simulated);
    options
}

/// Calls `build` with the graph of a configuration. Returns the diagnostics if there are errors.
fn read(text: &str, build: &mut dyn FnMut(&FlatGraph, &mut Diagnostics)) -> Result<(), String> {
    let (flat, mut diagnostics, sources) = library().flatten("test", text);
    if !diagnostics.has_errors() {
        build(&flat, &mut diagnostics);
    }
    match diagnostics.has_errors() {
        true => Err(diagnostics.render_rich(&sources, false)),
        false => Ok(()),
    }
}

/// A router with two workers whose configuration can be replaced.
pub(crate) fn replaceable(text: &str) -> Router {
    let mut router = build(text, 2);
    router.allow_replacements(HotSwapSource {
        library: library(),
        options: options(2, false),
        read: Box::new(|text, build| read(text, build)),
    });
    router
}

/// The value of a read handler, which must be a number, or a list of one.
pub(crate) fn number(router: &mut Router, handler: &str) -> u64 {
    let value = router.read(handler).unwrap();
    value.trim_start_matches('[').trim_end_matches(']').parse().unwrap()
}

/// Runs the router on threads until `is_done` returns true. Panics after 20 s.
pub(crate) fn run_until(router: &mut Router, mut is_done: impl FnMut(&mut Router) -> bool) {
    const MAX_CALLS: u32 = 4000;
    let (line, mut calls, mut is_interrupted) = (router.line(), 0, false);
    let mut check = |router: &mut Router| {
        calls += 1;
        // Only once: a second notice would stop the next run.
        if !is_interrupted && (is_done(router) || calls == MAX_CALLS) {
            is_interrupted = true;
            line.send(DriverEvent::Interrupted).unwrap();
        }
    };
    router.run(Some((Duration::from_millis(5), &mut check)));
    assert!(calls < MAX_CALLS, "it does not come to an end");
}

/// Runs the router on threads until the value of a read handler is at least `count`.
pub(crate) fn run_until_count(router: &mut Router, handler: &str, count: u64) {
    run_until(router, |router| number(router, handler) >= count);
}

/// Takes a router apart and asserts that no frame leaked, nothing panicked and no worker was lost.
pub(crate) fn clean(router: Router) {
    assert_eq!(router.dismantle(), TeardownReport { leaked_frames: 0, panics: 0, lost_workers: 0 });
}

/// Keeps the lines that elements print.
#[derive(Default)]
pub(crate) struct Lines(Mutex<Vec<String>>);

impl Lines {
    /// The lines so far.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Console for Lines {
    fn chatter(&self, text: &str) {
        self.0.lock().unwrap().extend(text.lines().map(str::to_owned));
    }
    fn print(&self, text: &str) {
        self.chatter(text);
    }
}
