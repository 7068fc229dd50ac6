//! Source texts, and the mapping from a byte of a text to `FILE:LINE:COLUMN`.

use std::path::Path;
use std::sync::Arc;

use crate::archive::{self, Member};
use crate::args;
use crate::diagnostic::Diagnostic;
use crate::nearest::nearest;

/// Identifies a text in a [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub(crate) u32);

/// A range of bytes of one source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The text.
    pub file: FileId,
    /// Its first byte.
    pub start: u32,
    /// One past its last byte.
    pub end: u32,
}

impl Span {
    /// Returns the span from the start of `self` to the end of `other`; `self` if they are in
    /// different texts.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { end: self.end.max(other.end), start: self.start.min(other.start), ..self }
    }

    /// Returns the empty span at the start of this one.
    pub fn head(self) -> Span {
        Span { end: self.start, ..self }
    }

    /// The bytes as a range.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The start of a span as a person counts: lines and columns from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// Name of the text: that of the last `# line` directive, or its own.
    pub name: &'a str,
    /// Line, as `# line` directives count it.
    pub line: u32,
    /// Column in characters.
    pub column: u32,
}

/// A `# line` directive: from offset `at` on, lines count from `line` and the text is called
/// `name`.
#[derive(Clone, Debug)]
pub(crate) struct LineDirective {
    pub(crate) at: u32,
    pub(crate) line: u32,
    /// `None` keeps the name in force; an empty one returns to the text's own.
    pub(crate) name: Option<String>,
}

/// A source text with its line index, directives and archive members.
#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: Arc<str>,
    line_starts: Vec<u32>,
    directives: Vec<LineDirective>,
    members: Vec<Member>,
    fault: Option<String>,
    not_utf8: Vec<u32>,
}

/// All source texts of a configuration: the file itself and the libraries that it includes.
///
/// Bytes that are not UTF-8 become U+FFFD. Of an `ar` archive, the member `config` becomes the
/// text.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<Source>,
}

impl SourceMap {
    /// An empty map.
    pub fn new() -> Self {
        SourceMap::default()
    }

    /// Adds a text under the name that errors print: a path, `config` for a text from the command
    /// line, `<stdin>` for a pipe.
    pub fn add(&mut self, name: impl Into<String>, bytes: impl AsRef<[u8]>) -> FileId {
        let bytes = bytes.as_ref();
        let (bytes, members, mut fault) = match archive::read(bytes) {
            None => (bytes, Vec::new(), None),
            Some(Ok(mut members)) => match members.iter().position(|m| m.name == "config") {
                Some(at) => return self.add_archive(name.into(), members.remove(at), members),
                None => (&b""[..], members, Some("archive has no 'config' section".to_string())),
            },
            Some(Err(why)) => (&b""[..], Vec::new(), Some(why)),
        };
        let bytes = if bytes.len() < u32::MAX as usize {
            bytes
        } else {
            fault = Some("configuration is larger than 4 GiB".to_string());
            &b""[..]
        };
        self.insert(name.into(), bytes, members, fault)
    }

    fn add_archive(&mut self, name: String, config: Member, rest: Vec<Member>) -> FileId {
        self.insert(name, &config.data, rest, None)
    }

    fn insert(
        &mut self,
        name: String,
        bytes: &[u8],
        members: Vec<Member>,
        fault: Option<String>,
    ) -> FileId {
        let mut not_utf8 = Vec::new();
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                not_utf8.push(text.len() as u32);
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        let line_starts = line_starts(text.as_bytes());
        let source = Source {
            name,
            text: text.into(),
            line_starts,
            directives: Vec::new(),
            members,
            fault,
            not_utf8,
        };
        self.files.push(source);
        FileId(self.files.len() as u32 - 1)
    }

    /// Puts another text in the place of one to which no span refers any more.
    pub fn replace(&mut self, file: FileId, name: impl Into<String>, bytes: impl AsRef<[u8]>) {
        self.add(name, bytes);
        if let (Some(source), true) = (self.files.pop(), (file.0 as usize) < self.files.len()) {
            self.files[file.0 as usize] = source;
        }
    }

    /// Reads a file into the map.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<FileId, Diagnostic> {
        let path = path.as_ref();
        let shown = path.display();
        if path.is_dir() {
            let mut error =
                Diagnostic::error(None, format!("{shown}: is a directory, not a configuration"));
            let clicks = click_files(path);
            if let [first, ..] = clicks.as_slice() {
                error = error
                    .with_help(format!("it holds '{}'", Path::new(path).join(first).display()));
            }
            return Err(error);
        }
        match std::fs::read(path) {
            Ok(bytes) => Ok(self.add(shown.to_string(), bytes)),
            Err(error) => {
                let why = io_error_text(&error);
                let mut report = Diagnostic::error(None, format!("{shown}: {why}"));
                if let Some(near) = nearest_file(path) {
                    report = report.with_help(format!("did you mean '{near}'?"));
                }
                Err(report)
            }
        }
    }

    /// Returns the name under which a text was added.
    pub fn name(&self, file: FileId) -> &str {
        self.files.get(file.0 as usize).map_or("", |source| &source.name)
    }

    /// Finds the text added under a name.
    pub fn find(&self, name: &str) -> Option<FileId> {
        self.files.iter().position(|source| source.name == name).map(|at| FileId(at as u32))
    }

    /// Returns a whole text.
    pub fn text(&self, file: FileId) -> Arc<str> {
        self.files.get(file.0 as usize).map_or_else(|| "".into(), |source| source.text.clone())
    }

    /// Iterates over all texts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.named_texts().map(|(_, text)| text)
    }

    /// Iterates over all texts in the order in which they were added, each behind its name.
    pub fn named_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|source| (&*source.name, &*source.text))
    }

    /// Returns the text of a span.
    pub fn slice(&self, span: Span) -> &str {
        let text = self.files.get(span.file.0 as usize).map_or("", |source| &source.text);
        text.get(span.range()).unwrap_or("")
    }

    /// Returns the other members of the archive that held a text.
    pub fn members(&self, file: FileId) -> &[Member] {
        self.files.get(file.0 as usize).map_or(&[], |source| &source.members)
    }

    /// Returns the location of a span's start.
    pub fn location(&self, span: Span) -> Location<'_> {
        let Some(source) = self.files.get(span.file.0 as usize) else {
            return Location { name: "", line: 0, column: 0 };
        };
        let row = source.row(span.start);
        let (name, line) = source.landmark(row);
        let start = source.line_starts[row] as usize;
        let before = source.text.get(start..span.start as usize).unwrap_or("");
        Location { name, line, column: before.chars().count() as u32 + 1 }
    }

    /// Returns `FILE:LINE` of a span as Click prints it. A file name that ends in a colon or a
    /// space gets no second colon.
    pub fn landmark(&self, span: Span) -> String {
        let Location { name, line, .. } = self.location(span);
        match name.chars().last() {
            _ if line == 0 => name.to_string(),
            Some(last) if last == ':' || last.is_whitespace() => format!("{name}{line}"),
            _ => format!("{name}:{line}"),
        }
    }

    /// Returns the whole line in which a span begins, without its line end.
    pub(crate) fn line(&self, span: Span) -> Span {
        let Some(source) = self.files.get(span.file.0 as usize) else { return span };
        let row = source.row(span.start);
        let start = source.line_starts[row];
        let end = source.line_starts.get(row + 1).map_or(source.text.len(), |&end| end as usize);
        let trimmed = source.text[start as usize..end].trim_end_matches(['\n', '\r']);
        Span { file: span.file, start, end: start + trimmed.len() as u32 }
    }

    pub(crate) fn fault(&self, file: FileId) -> Option<&str> {
        self.files.get(file.0 as usize).and_then(|source| source.fault.as_deref())
    }

    /// Returns the offsets of the characters that replace bytes that were not UTF-8.
    pub(crate) fn not_utf8(&self, file: FileId) -> &[u32] {
        self.files.get(file.0 as usize).map_or(&[], |source| &source.not_utf8)
    }

    pub(crate) fn set_directives(&mut self, file: FileId, directives: Vec<LineDirective>) {
        if let Some(source) = self.files.get_mut(file.0 as usize) {
            source.directives = directives;
        }
    }
}

impl Source {
    fn row(&self, offset: u32) -> usize {
        self.line_starts.partition_point(|&start| start <= offset).saturating_sub(1)
    }

    /// Returns name and line number of a row (from zero) by the directives above it.
    fn landmark(&self, row: usize) -> (&str, u32) {
        let start = self.line_starts[row];
        let above = &self.directives[..self.directives.partition_point(|d| d.at <= start)];
        let line = above.last().map_or(row as u32 + 1, |last| {
            let since = row.saturating_sub(self.row(last.at)) as u32;
            last.line.saturating_add(since)
        });
        let name = above.iter().rev().find_map(|d| d.name.as_deref()).unwrap_or("");
        (if name.is_empty() { &self.name } else { name }, line)
    }
}

/// Returns the offsets at which lines begin; `\n`, `\r\n` and a lone `\r` end a line, as in Click.
fn line_starts(text: &[u8]) -> Vec<u32> {
    let mut starts = vec![0];
    for (at, &byte) in text.iter().enumerate() {
        if byte == b'\n' || (byte == b'\r' && text.get(at + 1) != Some(&b'\n')) {
            starts.push(at as u32 + 1);
        }
    }
    starts
}

/// Parses the text after `#` in a line directive: `100 "foo"` or `line 100 "foo"`.
pub(crate) fn line_directive(text: &str) -> Option<(u32, Option<String>)> {
    let text = text.trim_start_matches([' ', '\t']);
    let text = match text.strip_prefix("line") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start_matches([' ', '\t']),
        _ => text,
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let line = text[..digits].parse().unwrap_or(u32::MAX);
    let name = text[digits..].trim_start_matches([' ', '\t']);
    let name = name.starts_with('"').then(|| args::unquote(&name[..args::skip_item(name, 0)]));
    Some((line, name))
}

/// Returns the names of the `.click` files in a folder, sorted.
fn click_files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().take(1000).flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".click"))
        .collect();
    names.sort();
    names
}

/// Returns the file in the folder of a missing one whose name is nearest.
fn nearest_file(path: &Path) -> Option<String> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let wanted = path.file_name()?.to_str()?;
    let entries = std::fs::read_dir(dir.unwrap_or(Path::new("."))).ok()?.take(1000).flatten();
    let names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let near = nearest(wanted, names.iter().map(String::as_str))?;
    Some(dir.map_or_else(|| near.to_string(), |dir| dir.join(near).display().to_string()))
}

/// Returns the operating system's text for an error, without the error number, which a reader does
/// not need.
pub fn io_error_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
