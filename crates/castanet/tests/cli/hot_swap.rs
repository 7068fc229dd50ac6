//! One configuration replaces another while it runs: routers that can be replaced, and their
//! clients.

mod files;
mod packets;
mod programs;
mod state;

use crate::control::{PATIENCE, SocketFile, command, socket};
use crate::program::{RunResult, click, folder};
use castanet_lab::Process;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

/// One connection to a control socket, for as long as the test lasts.
pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    fn new(path: &Path) -> Client {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Client(BufReader::new(stream));
        assert_eq!(client.line(), "Click::ControlSocket/1.3");
        client
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn say(&mut self, words: &str) {
        self.0.get_mut().write_all(words.as_bytes()).unwrap();
    }

    /// The lines of an answer, up to the one that ends it.
    fn answer(&mut self) -> (u32, String) {
        let mut all = String::new();
        loop {
            let line = self.line();
            let (code, last) = (line[..3].parse().unwrap(), line.as_bytes()[3] == b' ');
            all += &line[4..];
            if last {
                return (code, all);
            }
            all += "\n";
        }
    }

    pub(crate) fn read(&mut self, handler: &str) -> String {
        self.say(&format!("READ {handler}\n"));
        let (code, text) = self.answer();
        assert_eq!(code, 200, "{text}");
        let length: usize = self.line().strip_prefix("DATA ").unwrap().parse().unwrap();
        let mut data = vec![0; length];
        self.0.read_exact(&mut data).unwrap();
        String::from_utf8(data).unwrap()
    }

    fn write(&mut self, handler: &str, value: &str) {
        self.say(&format!("WRITE {handler} {value}\n"));
        let (code, text) = self.answer();
        assert_eq!(code, 200, "{text}");
    }

    /// Asks for another configuration; what was said if it was refused.
    fn swap(&mut self, config: &str) -> Result<(), String> {
        self.say(&format!("WRITEDATA hotconfig {}\n{config}", config.len()));
        match self.answer() {
            (200, _) => Ok(()),
            (_, text) => Err(text),
        }
    }

    pub(crate) fn wait_for(&mut self, handler: &str, value: &str) {
        let start = Instant::now();
        while self.read(handler) != value {
            assert!(start.elapsed() < PATIENCE, "{handler} is {}", self.read(handler));
        }
    }
}

/// A router that can be replaced.
pub(crate) struct SwapRouter {
    pub(crate) client: Client,
    /// The element that it listens with.
    socket: String,
    pub(crate) process: Process,
    /// Its path.
    _path: SocketFile,
}

pub(crate) fn run(name: &str, words: &[&str], config: &str) -> SwapRouter {
    let path = socket(name);
    let socket = format!("cs :: ControlSocket(UNIX, {});\n", path.display());
    let mut process =
        command(&format!("{socket}{config}")).args(["-R"]).args(words).spawn().unwrap();
    process.wait_for("castanet: running", PATIENCE).unwrap();
    SwapRouter { client: Client::new(&path), socket, process, _path: path }
}

impl SwapRouter {
    pub(crate) fn swap(&mut self, config: &str) -> Result<(), String> {
        self.client.swap(&format!("{}{config}", self.socket))
    }

    /// Ends it as Ctrl-C does; not a frame may be missing.
    pub(crate) fn end(self) {
        self.process.interrupt();
        let output = self.process.finish(PATIENCE).unwrap();
        assert!(output.success(), "{}", output.printed());
    }
}

/// Runs a configuration that replaces itself by `second`, which it names `SECOND`.
fn replaced(name: &str, words: &[&str], first: &str, second: &str) -> RunResult {
    let file = folder("hot-swap").join(name);
    std::fs::write(&file, second).unwrap();
    let first = first.replace("SECOND", &format!("$(cat {})", file.display()));
    click(&[&["-R"], words, &["-e", &first]].concat(), b"")
}
