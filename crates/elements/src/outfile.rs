//! Where printing elements write: standard error, or the file of an `OUTFILE` argument.

use castanet_engine::prelude::*;
use std::fs::File;
use std::io::{BufWriter, Write};

/// The line being written, and the file it goes to.
#[derive(Default, Local)]
pub struct Writer {
    line: String,
    file: Option<Box<dyn Write + Send>>,
}

impl Writer {
    /// Opens `path`; `-` is standard output, none is where Click's elements speak.
    pub(crate) fn open(&mut self, path: Option<&str>) -> Result<(), ArgError> {
        self.file = match path {
            None => None,
            Some("-") => Some(Box::new(std::io::stdout())),
            Some(path) => {
                let failed = |e| ArgError::new(format!("{path}: {e}")).at("OUTFILE");
                Some(Box::new(BufWriter::new(File::create(path).map_err(failed)?)))
            }
        };
        Ok(())
    }

    /// Writes the line that `describe` appends.
    pub(crate) fn line(&mut self, cx: &mut Cx, describe: impl FnOnce(&mut String)) {
        self.line.clear();
        describe(&mut self.line);
        let Some(file) = &mut self.file else { return cx.chatter(&self.line) };
        if let Err(e) = writeln!(file, "{}", self.line) {
            cx.chatter(&format!("OUTFILE: {e}"));
            self.file = None;
        }
    }

    /// Writes out what is buffered.
    pub(crate) fn flush(&mut self) {
        if let Some(file) = &mut self.file {
            _ = file.flush(); // nobody is left to be told
        }
    }
}
