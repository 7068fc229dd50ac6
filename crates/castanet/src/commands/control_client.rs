//! A client of the control socket of a running router.

use crate::load::io_error_text;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection to the control socket of a running router.
pub(super) struct ControlClient {
    stream: BufReader<UnixStream>,
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
        let stream = BufReader::new(UnixStream::connect(socket).map_err(failed)?);
        let mut client = ControlClient { stream, peer, gone: false };
        let greeting = client.line()?;
        match greeting.starts_with("Click::ControlSocket/") {
            true => Ok(client),
            false => Err(format!("{place}: nobody there speaks the protocol of control sockets")),
        }
    }

    /// Whether the router has closed the connection.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Result of reading or writing; an error means that the connection is closed.
    fn came<T>(&mut self, done: std::io::Result<T>) -> Result<T, String> {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        done.map_err(|error| {
            self.gone = true;
            match error.kind() {
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
        let line = format!("{}\r\n", line.replace(['\r', '\n'], " "));
        let sent = self.stream.get_mut().write_all(line.as_bytes());
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
        let mut data = vec![0; length.ok_or("the answer has no data")?];
        let read = self.stream.read_exact(&mut data);
        self.came(read)?;
        Ok(String::from_utf8_lossy(&data).into_owned())
    }

    /// Writes a handler, by its full name.
    pub(super) fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.ask(format!("WRITE {handler} {value}").trim_end()).map(|_| ())
    }
}

/// Text of an error response, without the protocol's words around it.
fn told(lines: &[String]) -> String {
    let own = lines.iter().filter(|line| !line.starts_with("Write handler "));
    own.map(|line| line.trim()).collect::<Vec<_>>().join("\n")
}
