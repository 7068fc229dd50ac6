//! A client of the control socket of a running router.

use crate::load::io_error_text;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time after which a router is taken to be stuck: a command may wait as long as the router waits for
/// a worker.
const PATIENCE: Duration = Duration::from_secs(15);

/// Bytes beyond which an answer is not read.
const MOST_DATA: u64 = 1 << 30;

/// A connection to the control socket of a running router.
pub(super) struct ControlClient {
    stream: BufReader<UnixStream>,
    socket: PathBuf,
    /// The router's name in messages, such as `the middlebox`.
    peer: &'static str,
    /// Whether the router has closed the connection.
    gone: bool,
}

/// Result of a command: the text, or the error message.
pub(super) type Answer = Result<String, String>;

impl ControlClient {
    /// Connects to a socket, and hears what it says first.
    pub(super) fn connect(socket: &Path, peer: &'static str) -> Result<ControlClient, String> {
        let place = socket.display();
        let failed = |error: std::io::Error| format!("{place}: {}", io_error_text(&error));
        let stream = UnixStream::connect(socket).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let stream = BufReader::new(stream);
        let mut client = ControlClient { stream, socket: socket.to_owned(), peer, gone: false };
        let greeting = client.line()?;
        match greeting.starts_with("Click::ControlSocket/") {
            true => Ok(client),
            false => Err(format!("{place}: nobody there speaks the protocol of control sockets")),
        }
    }

    /// The path of the socket.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether the router has closed the connection.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Result of reading or writing; an error means that the connection is closed.
    fn came<T>(&mut self, done: std::io::Result<T>) -> Result<T, String> {
        use std::io::ErrorKind::{
            BrokenPipe, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock,
        };
        done.map_err(|error| {
            self.gone = true;
            match error.kind() {
                WouldBlock | TimedOut => {
                    format!("{} has not answered for {} s", self.peer, PATIENCE.as_secs())
                }
                BrokenPipe | ConnectionReset | UnexpectedEof => format!("{} has gone", self.peer),
                _ => io_error_text(&error),
            }
        })
    }

    fn line(&mut self) -> Answer {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line);
        match self.came(read)? {
            0 => self.came(Err(std::io::ErrorKind::UnexpectedEof.into())),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// Sends a line and hears the answer: its last line, or all lines of an error.
    fn ask(&mut self, line: &str) -> Answer {
        self.ask_with(line, b"")
    }

    /// The same with bytes behind the line.
    fn ask_with(&mut self, line: &str, data: &[u8]) -> Answer {
        let line = format!("{}\r\n", line.replace(['\r', '\n'], " "));
        let sent = self.stream.get_mut().write_all(&[line.as_bytes(), data].concat());
        self.came(sent)?;
        let (mut said, mut code);
        let mut all = Vec::new();
        loop {
            let line = self.line()?;
            (code, said) = (line.get(..3).unwrap_or_default().to_owned(), line);
            all.push(said.get(4..).unwrap_or_default().to_owned());
            if said.as_bytes().get(3) != Some(&b'-') {
                break;
            }
        }
        match code.starts_with('2') {
            true => Ok(all.pop().unwrap_or_default()),
            false => Err(told(&all)),
        }
    }

    /// Reads a handler, by its full name.
    pub(super) fn read(&mut self, handler: &str) -> Answer {
        self.ask(&format!("READ {handler}"))?;
        let head = self.line()?;
        let length = head.strip_prefix("DATA ").and_then(|n| n.parse().ok());
        let length: u64 = length.ok_or("the answer has no data")?;
        if length > MOST_DATA {
            self.gone = true;
            return Err(format!("{} answers with {length} bytes, which is too much", self.peer));
        }
        // Memory grows with the bytes that come, not with those that are promised.
        let mut data = Vec::new();
        let read = self.stream.by_ref().take(length).read_to_end(&mut data);
        if (self.came(read)? as u64) < length {
            self.came(Err(std::io::ErrorKind::UnexpectedEof.into()))?;
        }
        Ok(String::from_utf8_lossy(&data).into_owned())
    }

    /// Writes a handler, by its full name.
    pub(super) fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.ask(format!("WRITE {handler} {value}").trim_end()).map(|_| ())
    }

    /// Writes a handler, by its full name, with any value.
    pub(super) fn write_data(&mut self, handler: &str, value: &str) -> Result<(), String> {
        let line = format!("WRITEDATA {handler} {}", value.len());
        self.ask_with(&line, value.as_bytes()).map(|_| ())
    }

    /// Whether there is a handler of this name to read.
    pub(super) fn has(&mut self, handler: &str) -> Result<bool, String> {
        match self.ask(&format!("CHECKREAD {handler}")) {
            Err(message) if self.gone => Err(message),
            answer => Ok(answer.is_ok()),
        }
    }
}

/// Text of an error response, without the protocol's words around it.
fn told(lines: &[String]) -> String {
    let is_own =
        |line: &&String| !["Read handler ", "Write handler "].iter().any(|it| line.starts_with(it));
    // Blanks before a line are part of it: they align the marks below a configuration's words.
    lines.iter().filter(is_own).map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}
