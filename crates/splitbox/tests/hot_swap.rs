//! Hot swaps of all parties: with other arguments, and with the files of another setup.

mod common;

use castanet_element::class::Library;
use castanet_runtime::console::SilentConsole;
use castanet_runtime::router::{HotSwapSource, Options, Router};
use castanet_splitbox::CLASSES;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn library() -> Library {
    let mut library = castanet_elements::library();
    CLASSES.iter().for_each(|class| library.add(class));
    library
}

/// All parties, with a packet that passes every 10 ms.
const PARTIES: &str = "
a :: SplitBoxEntry(entry.splitbox, KEY_FILE key);
b1 :: SplitBoxProcessor(processor-1.splitbox, KEY_FILE key);
b2 :: SplitBoxProcessor(processor-2.splitbox, KEY_FILE key);
c :: SplitBoxClient(client.splitbox, KEY_FILE key, CLIENT);
source :: TimedSource(10ms, \\<450000280000000040060000010000010200000200050050 00000000 00000000 50020000 00000000>)
    -> MarkIPHeader -> a;
a -> c -> out :: Counter -> Discard;
a[1] -> b1 -> lost :: Switch(0) -> c;  lost[1] -> Discard;
a[2] -> b2 -> c;  c[1] -> [1]a;  c[2] -> b1;  c[3] -> b2;
";

fn parties(client: &str) -> String {
    PARTIES.replace("CLIENT", client)
}

fn router(text: &str, workers: usize) -> Router {
    let mut options = Options::new(Arc::new(SilentConsole));
    (options.workers, options.simulated, options.frames) = (workers, true, Some(8192));
    let mut router = Router::from_text(text, &library(), &options).expect("is right");
    router.allow_replacements(HotSwapSource {
        library: library(),
        options,
        read: Box::new(|text, build| {
            let (flat, mut found, sources) = library().flatten("test", text);
            build(&flat, &mut found);
            if found.has_errors() {
                return Err(found.render_rich(&sources, false));
            }
            Ok(())
        }),
    });
    router
}

fn swap(router: &mut Router, text: &str) {
    router.write("hotconfig", text).expect("is right");
    router.advance(Duration::from_secs(1));
    balance(router);
}

/// Checks that the packets that came into each element or were made there have left it or are held.
fn balance(router: &mut Router) {
    for it in 0..router.graph().elements.len() {
        let (counters, held) = (router.counters(it), router.held(it) as u64);
        let left = counters.output + counters.consumed + counters.lost() + held;
        let name = &router.graph().elements[it].name;
        assert_eq!(counters.input + counters.made, left, "{name}: {counters:?}, {held} kept");
    }
}

fn read(router: &mut Router, handler: &str) -> String {
    router.read(handler).expect("is there")
}

fn number(router: &mut Router, handler: &str) -> u64 {
    read(router, handler).parse().expect("is a number")
}

/// The number of packets that pass in a second.
fn passed(router: &mut Router) -> u64 {
    let before = number(router, "out.count");
    router.advance(Duration::from_secs(1));
    balance(router);
    number(router, "out.count") - before
}

/// Copies the files of all parties from one folder to another.
fn copy_files(from: &str, to: &str) {
    for name in ["entry", "processor-1", "processor-2", "client"] {
        let name = format!("{name}.splitbox");
        std::fs::copy(Path::new(from).join(&name), Path::new(to).join(&name)).expect("is a file");
    }
}

#[test]
fn parties_go_on_with_other_arguments_and_with_other_files() {
    common::enter("splitbox-hot-swap");
    std::fs::create_dir_all("first").expect("a folder");
    copy_files(".", "first");
    for workers in [1, 2] {
        copy_files("first", ".");
        let mut router = router(&parties("ROTATION 60s"), workers);
        router.advance(Duration::from_secs(1));
        assert!(passed(&mut router) >= 99);
        let (session, epoch) = (number(&mut router, "a.session"), number(&mut router, "a.epoch"));

        // State goes over, and arguments apply.
        swap(&mut router, &parties("ROTATION 60s, WINDOW 4096"));
        assert!(passed(&mut router) >= 99);
        assert_eq!(number(&mut router, "a.session"), session);
        assert_eq!(number(&mut router, "a.epoch"), epoch);
        swap(&mut router, &parties("ROTATION 1s"));
        router.advance(Duration::from_secs(61));
        let second = number(&mut router, "a.epoch");
        router.advance(Duration::from_secs(3));
        assert!(number(&mut router, "a.epoch") > second, "ROTATION applies");

        // Another setup begins another session, each time, and packets that wait are not lost.
        let mut sessions = vec![session];
        for folder in ["dummies", "first", "dummies"] {
            router.write("lost.switch", "1").expect("is there");
            router.advance(Duration::from_millis(100));
            assert!(number(&mut router, "c.waiting") > 5);
            copy_files(folder, ".");
            swap(&mut router, &parties("ROTATION 1s"));
            router.write("lost.switch", "0").expect("is there");
            router.advance(Duration::from_secs(1));
            assert!(passed(&mut router) >= 99, "{folder}");
            let session = number(&mut router, "a.session");
            assert!(sessions.iter().all(|&it| it < session), "{session} {sessions:?}");
            sessions.push(session);
        }
        router.advance(Duration::from_secs(60));
        balance(&mut router);
        router.end();
        let report = router.dismantle();
        assert_eq!((report.leaked_frames, report.lost_workers), (0, 0));
    }
}
