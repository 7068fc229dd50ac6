//! Files that elements write.

use crate::streams::StandardOutput;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;

/// Bytes gathered before they are written.
const BUFFER: usize = 64 << 10;

/// A file that was opened to be written, and holds what it held until somebody begins to: a
/// configuration may be refused after it has opened its files. One that was made for it
/// is removed if nobody begins.
pub struct Output {
    path: PathBuf,
    /// None for standard output.
    file: Option<File>,
    /// Whether it is to be removed.
    is_new: bool,
}

/// Writes to an [`Output`]: through a buffer, unless it is standard output, to which others write lines,
/// too.
pub type OutputWriter = BufWriter<Box<dyn Write + Send>>;

impl Output {
    /// Opens the file `name`, `-` for standard output.
    pub fn open(name: &str) -> io::Result<Output> {
        let path = PathBuf::from(name);
        if name == "-" {
            return Ok(Output { path, file: None, is_new: false });
        }
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => Ok(Output { path, file: Some(file), is_new: true }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // Also where there is a link to a file that is not there.
                let file =
                    OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
                Ok(Output { path, file: Some(file), is_new: false })
            }
            Err(error) => Err(error),
        }
    }

    /// Empties the file, to be written from its beginning.
    pub fn begin(self) -> io::Result<OutputWriter> {
        self.begin_with(BUFFER)
    }

    /// The same, where each line is to be written at once if it goes to standard output.
    pub fn begin_lines(self) -> io::Result<OutputWriter> {
        let buffer = if self.file.is_some() { BUFFER } else { 0 };
        self.begin_with(buffer)
    }

    fn begin_with(mut self, buffer: usize) -> io::Result<OutputWriter> {
        self.is_new = false;
        let sink: Box<dyn Write + Send> = match self.file.take() {
            None => Box::new(StandardOutput),
            Some(file) => {
                // Pipes and devices have nothing to be taken away.
                if file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                Box::new(file)
            }
        };
        Ok(BufWriter::with_capacity(buffer, sink))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_new {
            // Somebody may have removed it already.
            _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_what_it_has_until_it_is_written() {
        let folder = std::env::temp_dir().join(format!("castanet-output-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("can be made");
        let (old, new) = (folder.join("old"), folder.join("new"));
        let name = |path: &PathBuf| path.display().to_string();
        std::fs::write(&old, "before").expect("can be written");
        drop((Output::open(&name(&old)), Output::open(&name(&new))));
        assert_eq!(std::fs::read(&old).expect("is there"), b"before");
        assert!(!new.exists());
        for path in [&old, &new] {
            let mut file = Output::open(&name(path)).and_then(Output::begin).expect("is opened");
            assert!(std::fs::read(path).expect("is there").is_empty());
            file.write_all(b"after").expect("is taken");
            drop(file);
            assert_eq!(std::fs::read(path).expect("is there"), b"after");
        }
        assert!(Output::open(&name(&folder)).is_err());
        assert!(Output::open(&name(&folder.join("no/such"))).is_err());
        Output::open("/dev/null").and_then(Output::begin).expect("needs no length");
        std::fs::remove_dir_all(&folder).expect("is ours");
    }
}
