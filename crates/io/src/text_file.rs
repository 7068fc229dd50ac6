//! Reading of text files line by line, standard input (`-`) and compressed files among them.

use crate::decompression;
use crate::error::IoError;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

/// A text that is read line by line, and the position of reading.
pub struct LineReader {
    source: Box<dyn BufRead + Send>,
    name: String,
    number: usize,
    /// Number of records read after the lines.
    records: usize,
    position: u64,
    bytes: Vec<u8>,
}

impl LineReader {
    /// Opens a file, which may be compressed; `-` is standard input.
    pub fn open(name: &str) -> Result<LineReader, IoError> {
        let failed = |error| IoError::File { path: name.into(), error };
        Ok(match name {
            "-" => LineReader::decompressed("<stdin>", Box::new(io::stdin())).map_err(failed)?,
            _ => {
                let file = File::open(name).map_err(failed)?;
                if file.metadata().is_ok_and(|it| it.is_dir()) {
                    return Err(failed(io::ErrorKind::IsADirectory.into()));
                }
                LineReader::decompressed(name, Box::new(file)).map_err(failed)?
            }
        })
    }

    /// Reads a text that may be compressed.
    fn decompressed(name: &str, source: decompression::Source) -> io::Result<LineReader> {
        Ok(LineReader::new(name, BufReader::new(decompression::open(source)?)))
    }

    /// Reads a text from memory.
    pub fn of_text(text: Vec<u8>) -> LineReader {
        LineReader::new("<data>", io::Cursor::new(text))
    }

    fn new(name: &str, source: impl BufRead + Send + 'static) -> LineReader {
        let (name, source) = (name.to_owned(), Box::new(source));
        LineReader { source, name, number: 0, records: 0, position: 0, bytes: Vec::new() }
    }

    /// Returns whether the text is at its end; waits for input until that is known.
    pub fn at_end(&mut self) -> io::Result<bool> {
        Ok(self.source.fill_buf()?.is_empty())
    }

    /// Returns whether the buffered text, or the first text that can be read, starts with a line
    /// for which `test` returns `true`. Does not consume the line.
    pub fn peek(&mut self, test: impl FnOnce(&str) -> bool) -> io::Result<bool> {
        let ahead = self.source.fill_buf()?;
        let line = ahead.split(|&b| b == b'\n').next().unwrap_or_default();
        Ok(test(&String::from_utf8_lossy(line)))
    }

    /// Returns the next line, its line end included; `None` at the end.
    pub fn next_line(&mut self) -> io::Result<Option<std::borrow::Cow<'_, str>>> {
        self.bytes.clear();
        let read = self.source.read_until(b'\n', &mut self.bytes)?;
        self.position += read as u64;
        self.number += 1;
        Ok((read > 0).then(|| String::from_utf8_lossy(&self.bytes)))
    }

    /// Returns the next `N` bytes, and after them the number of bytes that `len` computes from
    /// these; `None` at the end. An error if `len` returns `None` or the record is incomplete.
    pub fn next_record<const N: usize>(
        &mut self,
        len: impl FnOnce([u8; N]) -> Option<usize>,
    ) -> io::Result<Option<([u8; N], &[u8])>> {
        self.bytes.clear();
        self.records += 1;
        let mut head = [0; N];
        if self.source.by_ref().take(N as u64).read_to_end(&mut self.bytes)? == 0 {
            return Ok(None);
        }
        let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
        head.copy_from_slice(self.bytes.get(..N).ok_or_else(cut)?);
        let len = len(head).ok_or_else(|| io::Error::other("bad record length"))?;
        self.bytes.clear();
        // Allocates no more memory than there are bytes.
        let there = self.source.by_ref().take(len as u64).read_to_end(&mut self.bytes)?;
        self.position += (N + there) as u64;
        if there < len { Err(cut()) } else { Ok(Some((head, &self.bytes))) }
    }

    /// Returns the number of bytes that have been read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns `FILE:LINE` of the line or record read last, for messages.
    pub fn landmark(&self) -> String {
        match self.records {
            0 => format!("{}:{}", self.name, self.number.max(1)),
            records => format!("{}:record {records}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_bytes_counted() {
        let mut text = LineReader::of_text(b"one\n\ntw\xff".to_vec());
        assert!(text.peek(|line| line == "one").unwrap());
        assert_eq!(text.next_line().unwrap().as_deref(), Some("one\n"));
        assert_eq!((text.position(), text.landmark()), (4, "<data>:1".into()));
        assert_eq!(text.next_line().unwrap().as_deref(), Some("\n"));
        assert!(!text.at_end().unwrap());
        assert_eq!(text.next_line().unwrap().as_deref(), Some("tw\u{fffd}"));
        assert_eq!((text.position(), text.landmark()), (8, "<data>:3".into()));
        assert!(text.at_end().unwrap());
        assert_eq!(text.next_line().unwrap(), None);
    }

    #[test]
    fn records_are_as_long_as_they_say() {
        let mut text = LineReader::of_text(b"!binary\n\x02ab\x00\x05abc".to_vec());
        let len = |[len]: [u8; 1]| Some(usize::from(len));
        assert_eq!(text.next_line().unwrap().as_deref(), Some("!binary\n"));
        assert_eq!(text.next_record(len).unwrap(), Some(([2], &b"ab"[..])));
        assert_eq!(text.next_record(len).unwrap(), Some(([0], &b""[..])));
        assert_eq!((text.position(), text.landmark()), (12, "<data>:record 2".into()));
        assert!(text.next_record(len).is_err(), "cut short");
        assert_eq!(text.next_record(len).unwrap(), None);
        let mut text = LineReader::of_text(b"\x07".to_vec());
        assert!(text.next_record(|_: [u8; 1]| None).is_err(), "no length");
    }
}
