//! A client of the control socket of a running router.

use castanet_element::args::io_error_text;
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
pub struct ControlClient {
    stream: BufReader<UnixStream>,
    socket: PathBuf,
    /// The router's name in messages, such as `the middlebox`.
    peer: &'static str,
    /// Whether the router has closed the connection.
    gone: bool,
}

/// Result of a command: the text, or the error message.
pub type ControlAnswer = Result<String, String>;

impl ControlClient {
    /// Connects to a socket. `peer` is the router's name in messages.
    ///
    /// # Errors
    /// Nobody listens there, or not by this protocol.
    pub fn connect(socket: &Path, peer: &'static str) -> Result<ControlClient, String> {
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
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether the router has closed the connection.
    pub fn is_gone(&self) -> bool {
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

    fn line(&mut self) -> ControlAnswer {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line);
        match self.came(read)? {
            0 => self.came(Err(std::io::ErrorKind::UnexpectedEof.into())),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// Sends a line, with bytes behind it.
    fn send(&mut self, line: &str, data: &[u8]) -> Result<(), String> {
        let line = format!("{}\r\n", line.replace(['\r', '\n'], " "));
        let sent = self.stream.get_mut().write_all(&[line.as_bytes(), data].concat());
        self.came(sent)
    }

    /// Sends a line and receives the answer.
    fn ask(&mut self, line: &str) -> ControlAnswer {
        self.ask_with(line, b"")
    }

    /// The same with bytes behind the line.
    fn ask_with(&mut self, line: &str, data: &[u8]) -> ControlAnswer {
        self.send(line, data)?;
        self.answer()
    }

    /// Receives an answer: its last line, or all lines of an error.
    fn answer(&mut self) -> ControlAnswer {
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
    ///
    /// # Errors
    /// There is no such handler, it has no value, or the router has gone or is stuck.
    pub fn read(&mut self, handler: &str) -> ControlAnswer {
        self.request(handler)?;
        self.value()
    }

    /// Asks for the value of a handler, by its full name, without waiting for it.
    ///
    /// # Errors
    /// The router has gone.
    pub fn request(&mut self, handler: &str) -> Result<(), String> {
        self.send(&format!("READ {handler}"), b"")
    }

    /// The value that was asked for first and has not been taken yet.
    ///
    /// # Errors
    /// As those of [`ControlClient::read`].
    pub fn value(&mut self) -> ControlAnswer {
        self.answer()?;
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
    ///
    /// # Errors
    /// There is no such handler, it refuses the value, or the router has gone or is stuck.
    pub fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.ask(format!("WRITE {handler} {value}").trim_end()).map(|_| ())
    }

    /// Writes a handler, by its full name, with any value.
    ///
    /// # Errors
    /// As those of [`ControlClient::write`].
    pub fn write_data(&mut self, handler: &str, value: &str) -> Result<(), String> {
        let line = format!("WRITEDATA {handler} {}", value.len());
        self.ask_with(&line, value.as_bytes()).map(|_| ())
    }

    /// Whether there is a handler of this name to read.
    ///
    /// # Errors
    /// The router has gone or is stuck.
    pub fn has(&mut self, handler: &str) -> Result<bool, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_to_their_end_with_a_value_or_without() {
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(b"530-no\r\n530 no\r\n200 OK\r\nDATA 2\r\n42510 no\r\nwhat\r\n").unwrap();
        let (stream, socket) = (BufReader::new(here), PathBuf::new());
        let mut client = ControlClient { stream, socket, peer: "the router", gone: false };
        assert_eq!(client.read("c.x").unwrap_err(), "no\nno");
        assert_eq!(client.read("c.x").unwrap(), "42");
        assert_eq!(client.read("c.x").unwrap_err(), "no");
        assert!(!client.is_gone());
        drop(there);
        assert!(client.read("c.x").is_err());
    }
}
