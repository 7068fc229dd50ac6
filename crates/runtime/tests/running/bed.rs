//! The bed that the tests lie in: a router of small elements, and its balance.

use crate::{
    calls, deferred, drops, elements, lent_bytes, moving, probes, queues, replaced, straight,
};
use castanet_element::class::Library;
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{HotSwapSource, Options, Router};
use castanet_runtime::worker::driver::DriverEvent;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) fn library() -> Library {
    Library::new(&[
        calls::CLASSES,
        deferred::CLASSES,
        drops::CLASSES,
        elements::CLASSES,
        lent_bytes::CLASSES,
        moving::CLASSES,
        probes::CLASSES,
        queues::CLASSES,
        replaced::CLASSES,
        straight::CLASSES,
    ])
}

pub(crate) fn build(text: &str, workers: usize, simulated: bool) -> Router {
    build_with(&library(), text, &options(workers, simulated))
}

/// The same on threads, with workers that must answer within `patience`.
pub(crate) fn build_impatient(text: &str, workers: usize, patience: Duration) -> Router {
    build_with(&library(), text, &Options { patience, ..options(workers, false) })
}

/// The same, with elements in a row as one pass where that was compiled.
pub(crate) fn build_fused(text: &str, workers: usize) -> Router {
    let mut library = library();
    library.fuse(elements::FUSIONS);
    build_with(&library, text, &options(workers, true))
}

pub(crate) fn options(workers: usize, simulated: bool) -> Options {
    let mut options = Options::new(Arc::new(SilentConsole));
    // The tests expect counts that hold for bursts of this length.
    options.burst = 32;
    (options.workers, options.simulated, options.frames) = (workers, simulated, Some(8192));
    options
}

/// A router that `write hotconfig` replaces.
pub(crate) fn build_replaceable(text: &str, workers: usize) -> Router {
    replaceable(text, workers, Arc::default())
}

/// The same with one worker, and what is said of configurations that are right.
pub(crate) fn build_warning(text: &str) -> (Router, Arc<Mutex<String>>) {
    let said = Arc::default();
    (replaceable(text, 1, Arc::clone(&said)), said)
}

fn replaceable(text: &str, workers: usize, said: Arc<Mutex<String>>) -> Router {
    let mut router = build(text, workers, false);
    router.allow_replacements(HotSwapSource {
        library: library(),
        options: options(workers, false),
        read: Box::new(move |text, build| {
            let (flat, mut found, sources) = library().flatten("test", text);
            build(&flat, &mut found);
            let rendered = found.render_rich(&sources, false);
            match found.has_errors() {
                true => return Err(rendered),
                false => *said.lock().unwrap() += &rendered,
            }
            Ok(())
        }),
    });
    router
}

pub(crate) fn build_with(library: &Library, text: &str, options: &Options) -> Router {
    Router::from_text(text, library, options).unwrap_or_else(|wrong| panic!("{wrong}"))
}

pub(crate) fn number(router: &mut Router, handler: &str) -> u64 {
    router.read(handler).unwrap().parse().unwrap()
}

/// Checks that the packets that came into each element or were made there have left it or are held.
pub(crate) fn balance(router: &mut Router) {
    for it in 0..router.graph().elements.len() {
        let (counters, held) = (router.counters(it), router.held(it) as u64);
        let left = counters.output + counters.consumed + counters.lost() + held;
        let name = &router.graph().elements[it].name;
        assert_eq!(counters.input + counters.made, left, "{name}: {counters:?}, {held} kept");
    }
}

/// Runs on threads until `done` says so, which must be soon.
pub(crate) fn run_until(router: &mut Router, mut done: impl FnMut(&mut Router) -> bool) {
    let line = router.line();
    let (started, mut told) = (Instant::now(), false);
    let mut look = |router: &mut Router| {
        // Once: a word too many would end the next run before its time.
        if !told && (done(router) || started.elapsed() > Duration::from_secs(20)) {
            told = true;
            line.send(DriverEvent::Interrupted).unwrap();
        }
    };
    router.run(Some((Duration::from_millis(5), &mut look)));
    assert!(started.elapsed() < Duration::from_secs(20), "somebody sleeps for ever");
}

pub(crate) fn clean(router: Router) {
    let report = router.dismantle();
    assert_eq!((report.leaked_frames, report.lost_workers), (0, 0));
}
