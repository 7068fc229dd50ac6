//! Fuzzes the commands of a client of `ControlSocket`. The router has elements of
//! many kinds and can be replaced. The session runs in memory, and for some
//! inputs over a socket with a `ChatterSocket`. The target checks that answers
//! are well formed and the session ends.
#![no_main]

use castanet_element::class::{Class, control};
use castanet_element::control::ProgramWait;
use castanet_element::prelude::*;
use castanet_runtime::router::{HotSwapSource, Options, Router};
use castanet_runtime::worker::driver::DriverEvent;
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

/// Number of scheduling rounds of a session's router.
const ROUNDS: usize = 200;

thread_local! {
    /// Bytes that the client sends, and those that it receives.
    static SESSION: RefCell<(Vec<u8>, Option<Vec<u8>>)> = const { RefCell::new((Vec::new(), None)) };
}

/// Answers the client of this thread.
#[derive(Element)]
struct Session {
    /// Whether handlers can only be read.
    #[arg(default = false)]
    readonly: bool,
    /// Element that answers for all elements.
    #[arg(keyword)]
    proxy: Option<String>,
}

static SESSION_CLASS: Class = control::<Session>();

impl Control for Session {
    type Local = ();

    fn step(&self, (): &mut (), desk: &mut dyn ControlContext) -> ProgramWait {
        let sent = SESSION.with_borrow_mut(|(sent, _)| std::mem::take(sent));
        let received = converse(&sent, self.readonly, self.proxy.as_deref(), desk);
        SESSION.with_borrow_mut(|(_, all)| _ = all.get_or_insert(received));
        ProgramWait::Ended
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&kind, sent)) = data.split_first() else { return };
    let arguments = ["", "true", "PROXY all"][usize::from(kind) % 3];
    run_in_memory(sent, arguments);
    if kind % 64 == 63 {
        run_over_socket(sent);
    }
});

/// Runs a session in memory; `arguments` are those of [`Session`].
fn run_in_memory(sent: &[u8], arguments: &str) {
    SESSION.set((sent.to_vec(), None));
    let mut router = router(&format!("{CONFIG} session :: Session({arguments})"), options(true));
    router.settle(ROUNDS);
    let received = SESSION.with_borrow_mut(|(_, received)| received.take()).expect("a session");
    check_answers(&received);
    let report = router.dismantle();
    assert_eq!((report.panics, report.leaked_frames), (0, 0));
}

/// Runs a session over a socket, with threads and in real time.
fn run_over_socket(sent: &[u8]) {
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
    let received = exchange(near, sent);
    drop(far);
    check_answers(&received);
    // A command may have stopped the router, which removes its socket.
    if let Ok(socket) = UnixStream::connect(&chatter) {
        // A client that only receives stays connected until the router ends.
        _ = (&socket).write_all(sent);
        _ = line.send(DriverEvent::Interrupted);
        _ = socket.shutdown(std::net::Shutdown::Write);
    }
    _ = line.send(DriverEvent::Interrupted);
    let report = running.join().expect("no panic");
    assert_eq!((report.panics, report.lost_workers, report.leaked_frames), (0, 0, 0));
    assert!(!chatter.exists(), "the socket goes with its router");
}

/// Sends bytes and returns all bytes received until the other side closes the socket.
fn exchange(mut stream: UnixStream, sent: &[u8]) -> Vec<u8> {
    let mut writer = stream.try_clone().expect("a socket");
    let sent = sent.to_vec();
    let writer = std::thread::spawn(move || {
        _ = writer.write_all(&sent);
        _ = writer.shutdown(std::net::Shutdown::Write);
    });
    let mut received = Vec::new();
    _ = stream.read_to_end(&mut received);
    writer.join().expect("no panic");
    received
}

/// Builds a router that can be replaced.
fn router(config: &str, options: Options) -> Router {
    let mut library = CLASSES.with(|all| (**all).clone());
    library.add(&SESSION_CLASS);
    let (graph, mut found, sources) = flat(config, &library);
    let router = Router::build(&graph, &library, &options, &mut found);
    let mut router = router.unwrap_or_else(|| panic!("{}", found.render_click(&sources)));
    let ours = ELEMENTS.with(|ours| (**ours).clone());
    router.allow_replacements(HotSwapSource {
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

/// Checks that the answers are well formed: a greeting, then answers of one or
/// more lines with one code, which a blank follows in the last line, some
/// followed by data. Nothing follows a farewell.
fn check_answers(received: &[u8]) {
    let shown = || String::from_utf8_lossy(received).into_owned();
    let mut rest = received
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
