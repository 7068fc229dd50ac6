//! A client of a running middlebox's control socket.

use crate::load::io_error_text;
use crate::terminal::complain;
use castanet_lang::{Diagnostics, SourceMap};
use castanet_middlebox::language::{Command, ListFormat, command};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The element of the configuration that `castanet middlebox` runs.
const ELEMENT: &str = "rules";

/// A connection to a middlebox.
pub(super) struct Client {
    stream: BufReader<UnixStream>,
    /// Whether the middlebox has closed the connection.
    gone: bool,
}

/// Error message for a closed connection.
const GONE: &str = "the middlebox has gone";

/// Result of a command: the text, or the error message.
pub(super) type Answer = Result<String, String>;

impl Client {
    /// Connects to a socket, and hears what it says first.
    pub(super) fn connect(socket: &Path) -> Result<Client, String> {
        let place = socket.display();
        let failed = |error: std::io::Error| format!("{place}: {}", io_error_text(&error));
        let stream = BufReader::new(UnixStream::connect(socket).map_err(failed)?);
        let mut client = Client { stream, gone: false };
        let greeting = client.line()?;
        match greeting.starts_with("Click::ControlSocket/") {
            true => Ok(client),
            false => Err(format!("{place}: nobody there speaks the protocol of control sockets")),
        }
    }

    /// Whether the middlebox has closed the connection.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Result of reading or writing; an error means that the connection is closed.
    fn came<T>(&mut self, done: std::io::Result<T>) -> Result<T, String> {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        done.map_err(|error| {
            self.gone = true;
            match error.kind() {
                BrokenPipe | ConnectionReset | UnexpectedEof => GONE.into(),
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

    /// Reads a handler.
    pub(super) fn read(&mut self, handler: &str) -> Answer {
        self.ask(&format!("READ {ELEMENT}.{handler}"))?;
        let head = self.line()?;
        let length = head.strip_prefix("DATA ").and_then(|n| n.parse().ok());
        let mut data = vec![0; length.ok_or("the answer has no data")?];
        let read = self.stream.read_exact(&mut data);
        self.came(read)?;
        Ok(String::from_utf8_lossy(&data).into_owned())
    }

    /// Writes a handler.
    fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.ask(&format!("WRITE {ELEMENT}.{handler} {value}")).map(|_| ())
    }

    /// Executes a line of the language. An error in the line itself is
    /// shown with the word in question.
    pub(super) fn obey(&mut self, line: &str) -> Answer {
        let command = command(line).map_err(|fault| {
            let mut sources = SourceMap::new();
            let file = sources.add("command", line);
            let found: Diagnostics = [fault.diagnostic(file)].into_iter().collect();
            found.render_rich(&sources, false).trim_end().to_owned()
        })?;
        match command {
            None => Ok(String::new()),
            Some(Command::List(ListFormat::Text)) => self.read("list"),
            Some(Command::List(ListFormat::Json)) => self.read("list_json"),
            Some(Command::ShowTables { verbose: false }) => self.read("tables"),
            Some(Command::ShowTables { verbose: true }) => self.read("tables_verbose"),
            Some(Command::ShowConnections { verbose: false }) => self.read("connections"),
            Some(Command::ShowConnections { verbose: true }) => self.read("connections_verbose"),
            Some(_) => {
                self.write("command", line.trim())?;
                self.read("said").map(without_warnings)
            }
        }
    }
}

/// Text of an error response, without the protocol's words around it.
fn told(lines: &[String]) -> String {
    let own = lines.iter().filter(|line| !line.starts_with("Write handler "));
    own.map(|line| line.trim()).collect::<Vec<_>>().join("\n")
}

/// An answer without its warnings, which are for a person and not for a program.
fn without_warnings(said: String) -> String {
    let is_warning = |line: &&str| line.starts_with("warning: ");
    let (warnings, answer): (Vec<&str>, Vec<&str>) = said.lines().partition(is_warning);
    warnings.into_iter().for_each(complain);
    answer.join("\n")
}
