//! What a client says to a `ControlSocket` whose router has elements of many
//! kinds and can be replaced: in memory, and now and then by a socket. What is
//! answered is well formed, and the session ends. A `ChatterSocket` hears it too.
#![no_main]

use castanet_engine::class::{Class, control};
use castanet_engine::element::Step;
use castanet_engine::prelude::*;
use castanet_engine::router::{Notice, Options, Replacements, Router};
use castanet_fuzz::{CLASSES, ELEMENTS, flat, options};
use castanet_io::control::converse;
use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

const CONFIG: &str = "
    s :: InfiniteSource(LIMIT 5, DATA abc) -> c :: Counter -> w :: Switch(1) -> Discard;
    w[1] -> q :: Queue(7) -> Unqueue -> ip :: IPFilter(allow all) -> Discard;
    RatedSource(RATE 10) -> r :: StaticIPLookup(0/0 0) -> p :: Print(x, ACTIVE false) -> Discard;
    Idle -> rt :: RadixIPLookup(10.0.0.0/8 0) -> Discard;
    arp :: ARPResponder(10.0.0.1 0:0:0:0:0:1); Idle -> arp -> Discard;
    Idle -> agg :: AggregateCounter -> n :: CheckNumberPacket(0, 4) -> Discard;
    Idle -> rw :: UDPRewriter(pattern 1.0.0.1 - - - 0 0) -> m :: Middlebox -> Discard;
    all :: Script(TYPE PROXY, return \"$0 $args $write\");
    x :: Script(TYPE PASSIVE, return $(add $args));
";

/// How many turns a session's router gets.
const TURNS: usize = 200;

thread_local! {
    /// What the client says, and what it hears.
    static SESSION: RefCell<(Vec<u8>, Option<Vec<u8>>)> = const { RefCell::new((Vec::new(), None)) };
}

/// Answers the client of this thread.
#[derive(Element)]
struct Session {
    /// Whether handlers can only be read.
    #[arg(default = false)]
    readonly: bool,
    /// Who answers for all elements.
    #[arg(keyword)]
    proxy: Option<String>,
}

static SESSION_CLASS: Class = control::<Session>();

impl Control for Session {
    type Local = ();

    fn step(&self, (): &mut (), desk: &mut dyn Desk) -> Step {
        let said = SESSION.with_borrow_mut(|(said, _)| std::mem::take(said));
        let heard = converse(&said, self.readonly, self.proxy.as_deref(), desk);
        SESSION.with_borrow_mut(|(_, all)| _ = all.get_or_insert(heard));
        Step::Ended
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&kind, said)) = data.split_first() else { return };
    let manners = ["", "true", "PROXY all"][usize::from(kind) % 3];
    in_memory(said, manners);
    if kind % 64 == 63 {
        by_socket(said);
    }
});

fn in_memory(said: &[u8], manners: &str) {
    SESSION.set((said.to_vec(), None));
    let mut router = router(&format!("{CONFIG} session :: Session({manners})"), options(true));
    router.settle(TURNS);
    let heard = SESSION.with_borrow_mut(|(_, heard)| heard.take()).expect("a session");
    well_formed(&heard);
    let report = router.dismantle();
    assert_eq!((report.panics, report.leaked_frames), (0, 0));
}

/// The same with threads, a socket, and time that passes.
fn by_socket(said: &[u8]) {
    let (near, far) = UnixStream::pair().expect("sockets");
    let chatter = std::env::temp_dir().join(format!("chatter-{}", std::process::id()));
    let sockets = format!(
        "ControlSocket(SOCKET, {}); ChatterSocket(UNIX, {})",
        far.as_raw_fd(),
        chatter.display()
    );
    let (send, line) = std::sync::mpsc::channel();
    let config = format!("{CONFIG} {sockets}");
    let running = std::thread::spawn(move || {
        let mut router = router(&config, options(false));
        _ = send.send(router.line());
        router.run(None);
        router.dismantle()
    });
    let line = line.recv().expect("a router");
    let heard = talk(near, said);
    drop(far);
    well_formed(&heard);
    // The router may have been stopped, and its socket removed.
    if let Ok(socket) = UnixStream::connect(&chatter) {
        // Who only listens hears the router's end.
        _ = (&socket).write_all(said);
        _ = line.send(Notice::Interrupted);
        _ = socket.shutdown(std::net::Shutdown::Write);
    }
    _ = line.send(Notice::Interrupted);
    let report = running.join().expect("no panic");
    assert_eq!((report.panics, report.lost_workers, report.leaked_frames), (0, 0, 0));
    assert!(!chatter.exists(), "the socket goes with its router");
}

/// All that is heard until the other side closes.
fn talk(mut stream: UnixStream, said: &[u8]) -> Vec<u8> {
    let mut speaker = stream.try_clone().expect("a socket");
    let said = said.to_vec();
    let speaker = std::thread::spawn(move || {
        _ = speaker.write_all(&said);
        _ = speaker.shutdown(std::net::Shutdown::Write);
    });
    let mut heard = Vec::new();
    _ = stream.read_to_end(&mut heard);
    speaker.join().expect("no panic");
    heard
}

fn router(config: &str, options: Options) -> Router {
    let mut library = CLASSES.with(|all| (**all).clone());
    library.add(&SESSION_CLASS);
    let (graph, mut found, sources) = flat(config, &library);
    let router = Router::build(&graph, &library, &options, &mut found);
    let mut router = router.unwrap_or_else(|| panic!("{}", found.render_click(&sources)));
    let ours = ELEMENTS.with(|ours| (**ours).clone());
    router.allow_replacements(Replacements {
        library: ours.clone(),
        options,
        read: Box::new(move |text, build| {
            let (graph, mut found, sources) = flat(text, &ours);
            if !found.has_errors() {
                build(&graph, &mut found);
            }
            if found.has_errors() { Err(found.render_click(&sources)) } else { Ok(()) }
        }),
    });
    router
}

/// A greeting; then answers, each of lines with one code, the last with a blank
/// behind it, some followed by data. Nothing comes behind a farewell.
fn well_formed(heard: &[u8]) {
    let shown = || String::from_utf8_lossy(heard).into_owned();
    let mut rest = heard
        .strip_prefix(b"Click::ControlSocket/1.3\r\n")
        .unwrap_or_else(|| panic!("{}", shown()));
    let mut open = None;
    while !rest.is_empty() {
        let end = rest
            .windows(2)
            .position(|pair| pair == b"\r\n")
            .unwrap_or_else(|| panic!("{}", shown()));
        let line = std::str::from_utf8(&rest[..end]).expect("text");
        rest = &rest[end + 2..];
        assert!(!line.contains(char::is_control), "{line:?}");
        if let Some(count) = line.strip_prefix("DATA ") {
            assert!(open.is_none(), "{}", shown());
            let count: usize = count.parse().expect("a number");
            rest = rest.get(count..).unwrap_or_else(|| panic!("{}", shown()));
            continue;
        }
        let (code, text) = line.split_at_checked(3).unwrap_or_else(|| panic!("{}", shown()));
        assert!(CODES.contains(&code), "{line}");
        assert!(open.is_none_or(|open| open == code), "{}", shown());
        open = text.starts_with('-').then_some(code);
        assert!(text.starts_with(['-', ' ']), "{line}");
        let last = line == "200 Goodbye!" || code == "521";
        assert!(!last || rest.is_empty(), "{}", shown());
    }
    assert!(open.is_none(), "{}", shown());
}

const CODES: [&str; 10] = ["200", "500", "501", "510", "511", "520", "521", "522", "530", "590"];
