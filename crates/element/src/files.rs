//! Files that handlers name: which of them may be opened, and opening them.
//!
//! A file that the configuration names is the user's choice. One that is named later, by a handler,
//! is the choice of a client of a control socket; such files lie below folders that the command line
//! allows, and are opened without following a link.

use crate::error::ArgError;
use nix::errno::Errno;
pub use nix::fcntl::OFlag;
use nix::fcntl::{OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most bytes of a file that a handler reads.
pub const LONGEST: usize = 256 << 20;

/// Says something to the user.
pub type Warn = Box<dyn Fn(&str) + Send + Sync>;

/// Which files handlers may name; a copy is cheap. By itself none.
#[derive(Clone, Default)]
pub struct HandlerFiles {
    access: Arc<Access>,
    /// The arguments of all elements, one a line.
    configuration: Arc<str>,
}

enum Access {
    /// None: the element is in a sealed compound.
    Sealed,
    /// Those below these folders.
    Below(Vec<PathBuf>),
    /// Any, as in Click; the first use is warned of.
    Any { warn: Warn, warned: AtomicBool },
}

impl Default for Access {
    fn default() -> Self {
        Access::Below(Vec::new())
    }
}

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Replace,
    Append,
}

impl HandlerFiles {
    /// Files below these folders. Relative names start at the current folder.
    pub fn below(folders: impl IntoIterator<Item = PathBuf>) -> HandlerFiles {
        let here = std::env::current_dir().unwrap_or_default();
        let mut all = Vec::new();
        for folder in folders {
            // A client may name it either way.
            let whole = here.join(folder);
            all.extend(whole.canonicalize().ok().filter(|it| *it != whole));
            all.push(whole);
        }
        HandlerFiles { access: Arc::new(Access::Below(all)), ..Self::default() }
    }

    /// No file, for elements in sealed compounds; their configurations name none, either.
    pub fn sealed() -> HandlerFiles {
        HandlerFiles { access: Arc::new(Access::Sealed), ..Self::default() }
    }

    /// Any file, as Click's handlers. `warn` is called once, when the first is opened that the
    /// configuration does not name.
    pub fn any(warn: Warn) -> HandlerFiles {
        let warned = AtomicBool::new(false);
        HandlerFiles { access: Arc::new(Access::Any { warn, warned }), ..Self::default() }
    }

    /// The same for a router with these arguments of elements: files that follow the name of a
    /// handler there, as in `Script(write c.write_file counts.txt)`, may be named to that handler.
    pub fn of<'a>(&self, arguments: impl Iterator<Item = &'a str>) -> HandlerFiles {
        let configuration = arguments.collect::<Vec<_>>().join("\n").into();
        HandlerFiles { access: self.access.clone(), configuration }
    }

    /// Reads a file of at most `most` bytes that `handler` was given the name of.
    pub fn read(&self, handler: &str, file: &str, most: usize) -> Result<Vec<u8>, ArgError> {
        let mut bytes = Vec::new();
        let opened = self.open(handler, file, Use::Read)?;
        opened
            .take(most as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| ArgError::of_file(file, &error))?;
        match bytes.len() > most {
            true => Err(ArgError::new(format!("{file} is longer than {most} bytes"))),
            false => Ok(bytes),
        }
    }

    /// Writes a file that `handler` was given the name of.
    pub fn write(&self, handler: &str, file: &str, bytes: &[u8]) -> Result<(), ArgError> {
        self.put(handler, file, bytes, Use::Replace)
    }

    /// The same, behind what the file has.
    pub fn append(&self, handler: &str, file: &str, bytes: &[u8]) -> Result<(), ArgError> {
        self.put(handler, file, bytes, Use::Append)
    }

    fn put(&self, handler: &str, file: &str, bytes: &[u8], how: Use) -> Result<(), ArgError> {
        let mut opened = self.open(handler, file, how)?;
        opened.write_all(bytes).map_err(|error| ArgError::of_file(file, &error))
    }

    fn open(&self, handler: &str, file: &str, how: Use) -> Result<File, ArgError> {
        let file = file.trim();
        let failed = |error: io::Error| ArgError::of_file(file, &error);
        if is_named(&self.configuration, handler, file) {
            return plainly(Path::new(file), how).map_err(failed);
        }
        match &*self.access {
            Access::Sealed => Err(out_of_sealed(handler, file)),
            Access::Any { warn, warned } => {
                if !warned.swap(true, Ordering::Relaxed) {
                    warn(&format!(
                        "the handler '{handler}' opens {file}, as Click would; under `castanet run` \
                         --handler-files says which folders handlers reach"
                    ));
                }
                plainly(Path::new(file), how).map_err(failed)
            }
            Access::Below(folders) => {
                let here = std::env::current_dir().unwrap_or_default();
                let whole = here.join(file);
                let below = folders.iter().find_map(|it| Some((it, whole.strip_prefix(it).ok()?)));
                let Some((folder, rest)) = below else {
                    return Err(out_of_reach(handler, file, folders));
                };
                beneath(folder, rest, how.flags()).map_err(|error| match error.kind() {
                    ErrorKind::InvalidInput => ArgError::new(format!("{file}: {error}")),
                    _ => failed(error),
                })
            }
        }
    }
}

impl Use {
    fn flags(self) -> OFlag {
        match self {
            Use::Read => OFlag::O_RDONLY,
            Use::Replace => OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC,
            Use::Append => OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_APPEND,
        }
    }
}

fn out_of_sealed(handler: &str, file: &str) -> ArgError {
    let why = "handlers of elements in sealed compounds reach no files";
    ArgError::new(format!("'{handler}' may not open {file}: {why}"))
}

fn out_of_reach(handler: &str, file: &str, folders: &[PathBuf]) -> ArgError {
    let list: Vec<String> = folders.iter().map(|it| it.display().to_string()).collect();
    // A client of a control socket sees the message alone.
    let why = match list.is_empty() {
        true => {
            "handlers reach no files; `--handler-files DIR` lets them name those below DIR".into()
        }
        false => format!("handlers reach files below {}", list.join(", ")),
    };
    ArgError::new(format!("'{handler}' may not open {file}: {why}"))
}

/// Whether the configuration gives this file to a handler of that name.
fn is_named(configuration: &str, handler: &str, file: &str) -> bool {
    let is_quote = |c: &char| matches!(c, '"' | '\'');
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ')' | ';');
    // `element.handler` to be written, or a function or command of that name.
    let begins = ['.', '(', ' ', '\t', '\n', '"', '\''];
    !file.is_empty()
        && configuration.match_indices(handler).any(|(at, _)| {
            let (before, behind) = (&configuration[..at], &configuration[at + handler.len()..]);
            let rest = behind.trim_start();
            let quote = rest.chars().next().filter(is_quote);
            let rest = quote.map_or(rest, |quote| &rest[quote.len_utf8()..]);
            (before.is_empty() || before.ends_with(begins))
                && behind.starts_with(char::is_whitespace)
                && rest.strip_prefix(file).is_some_and(|rest| match quote {
                    Some(quote) => rest.starts_with(quote),
                    None => rest.is_empty() || rest.starts_with(ends),
                })
        })
}

fn plainly(file: &Path, how: Use) -> io::Result<File> {
    let mut options = File::options();
    match how {
        Use::Read => options.read(true),
        Use::Replace => options.write(true).create(true).truncate(true),
        Use::Append => options.append(true).create(true),
    };
    options.open(file)
}

/// Opens a regular file below a folder: no link is followed on the way, nor does `..` lead out.
///
/// # Errors
/// `InvalidInput` for what leads elsewhere or is no regular file, else what the system says.
pub fn beneath(folder: &Path, file: &Path, flags: OFlag) -> io::Result<File> {
    let folder = File::options().read(true).custom_flags(OFlag::O_DIRECTORY.bits()).open(folder)?;
    let mode = if flags.contains(OFlag::O_CREAT) {
        Mode::from_bits_truncate(0o644)
    } else {
        Mode::empty()
    };
    let file = if file.as_os_str().is_empty() { Path::new(".") } else { file };
    // Opening must not block, and must not truncate anything but a regular file.
    let careful = (flags - OFlag::O_TRUNC) | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let how = OpenHow::new()
        .flags(careful)
        .mode(mode)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    let opened = File::from(openat2(&folder, file, how).map_err(|errno| match errno {
        Errno::ELOOP | Errno::EXDEV => {
            let words = "a link, or a way out of the folder, is not followed";
            io::Error::new(ErrorKind::InvalidInput, words)
        }
        errno => errno.into(),
    })?);
    if !opened.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "is no regular file"));
    }
    if flags.contains(OFlag::O_TRUNC) {
        opened.set_len(0)?;
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_handlers_name_is_named() {
        let text = "write c.write_file /tmp/a, print $(cat \"b c\")\nwrite m.command save 'x.mmb'";
        for (handler, file, named) in [
            ("write_file", "/tmp/a", true),
            ("cat", "b c", true),
            ("save", "x.mmb", true),
            ("save", "/tmp/a", false),
            ("file", "/tmp/a", false),
            ("write_file", "/tmp", false),
            ("write_file", "/tmp/ab", false),
            ("write_file", "", false),
            ("cat", "b", false),
        ] {
            assert_eq!(is_named(text, handler, file), named, "{handler} {file}");
        }
    }

    #[test]
    fn files_lie_beneath_their_folder() {
        let folder = std::env::temp_dir().join(format!("castanet-files-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("in")).unwrap();
        std::fs::write(folder.join("out"), "secret").unwrap();
        std::os::unix::fs::symlink("../out", folder.join("in/link")).unwrap();
        let files = HandlerFiles::below([folder.join("in")]);
        let name = |name: &str| folder.join(name).display().to_string();
        files.write("save", &name("in/new"), b"longer").unwrap();
        files.write("save", &name("in/new"), b"ab").unwrap();
        files.append("save", &name("in/new"), b"c").unwrap();
        assert_eq!(files.read("load", &name("in/new"), 3).unwrap(), b"abc");
        let said = |name: &str, most| files.read("load", name, most).unwrap_err().to_string();
        assert!(said(&name("in/new"), 2).contains("is longer than 2 bytes"));
        assert!(said(&name("out"), 9).contains("'load' may not open"));
        for name in [name("in/link"), name("in/../out"), name("in")] {
            let said = said(&name, 9);
            assert!(said.contains("is not followed") || said.contains("no regular file"), "{said}");
        }
        let none = HandlerFiles::default().read("load", &name("in/new"), 9).unwrap_err();
        assert!(none.to_string().contains("--handler-files DIR"), "{none}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
