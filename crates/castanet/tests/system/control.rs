//! Handlers of a router that runs, by its control socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A client of a `ControlSocket`.
pub(crate) struct Control(BufReader<UnixStream>);

impl Control {
    /// Connects to a socket in the file system, which knows no namespaces.
    pub(crate) fn connect(path: &Path) -> Control {
        let mut control = Control(BufReader::new(UnixStream::connect(path).unwrap()));
        assert!(control.line().starts_with("Click::ControlSocket/"));
        control
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "the router has gone");
        line.trim_end().to_owned()
    }

    /// Value of a read handler.
    pub(crate) fn read(&mut self, handler: &str) -> String {
        self.value(handler).unwrap_or_else(|error| panic!("{handler}: {error}"))
    }

    /// Value of a read handler, or the last line of the error.
    pub(crate) fn value(&mut self, handler: &str) -> Result<String, String> {
        self.0.get_mut().write_all(format!("READ {handler}\r\n").as_bytes()).unwrap();
        let mut output = self.line();
        // All lines of an error but the last have a hyphen.
        while output.as_bytes().get(3) == Some(&b'-') {
            output = self.line();
        }
        if !output.starts_with("200") {
            return Err(output);
        }
        let length = self.line().strip_prefix("DATA ").unwrap().parse().unwrap();
        let mut data = vec![0; length];
        self.0.read_exact(&mut data).unwrap();
        Ok(String::from_utf8(data).unwrap())
    }

    /// The names of all handlers of elements that can be read.
    pub(crate) fn handlers(&mut self) -> Vec<String> {
        let list = self.read("list");
        let mut all = Vec::new();
        // The first line is the number of elements.
        for element in list.lines().skip(1) {
            let told = self.read(&format!("{element}.handlers"));
            let readable = told.lines().filter_map(|line| {
                let (name, rights) = line.split_once('\t')?;
                rights.contains('r').then(|| format!("{element}.{name}"))
            });
            all.extend(readable);
        }
        all
    }

    /// The sum of the handlers' numbers.
    pub(crate) fn sum(&mut self, handlers: &[&str]) -> u64 {
        let number =
            |text: String| text.trim().parse::<u64>().unwrap_or_else(|e| panic!("{e}: {text}"));
        handlers.iter().map(|handler| number(self.read(handler))).sum()
    }

    /// The number before a word in a handler's value.
    pub(crate) fn of(&mut self, handler: &str, word: &str) -> u64 {
        let output = self.read(handler);
        let row = |line: &str| line.strip_suffix(word)?.trim().parse().ok();
        output.lines().find_map(row).unwrap_or_else(|| panic!("{handler} says no {word}: {output}"))
    }

    /// Packets that an element dropped for a reason.
    pub(crate) fn dropped_by(&mut self, element: &str, reason: &str) -> u64 {
        self.sum(&[&format!("{element}.drops.{reason}")])
    }

    /// All packets that elements dropped.
    pub(crate) fn dropped(&mut self, elements: &[&str]) -> u64 {
        let drops = |element: &&str| {
            let output = self.read(&format!("{element}.drops"));
            let number = |line: &str| line.split_whitespace().last()?.parse::<u64>().ok();
            output.lines().filter_map(number).sum::<u64>()
        };
        elements.iter().map(drops).sum()
    }
}
