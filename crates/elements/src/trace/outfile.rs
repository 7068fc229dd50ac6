//! Where printing elements write: standard error, or the file of an `OUTFILE` argument.

use castanet_engine::args::io_error_text;
use castanet_engine::output::OutputWriter;
use castanet_engine::prelude::*;
use std::io::Write;

/// The line being written, and the file it goes to.
#[derive(Default, Local)]
pub struct Writer {
    line: String,
    /// What was opened and not begun to be written.
    opened: Option<Output>,
    file: Option<OutputWriter>,
    /// The file's name, for complaints.
    path: String,
    /// Whether the file took no more, so that lines are lost.
    is_lost: bool,
}

impl Writer {
    /// Opens `path`; `-` is standard output, none is where Click's elements speak.
    pub(crate) fn open(&mut self, path: Option<&str>) -> Result<(), ArgError> {
        let failed = |e| ArgError::of_file(path.unwrap_or_default(), &e).at("OUTFILE");
        self.opened = path.map(Output::open).transpose().map_err(failed)?;
        self.path = path.unwrap_or_default().to_owned();
        Ok(())
    }

    /// Empties the file that was opened.
    pub(crate) fn start(&mut self) -> Result<(), ArgError> {
        let failed = |e| ArgError::of_file(&self.path, &e).at("OUTFILE");
        self.file = self.opened.take().map(Output::begin_lines).transpose().map_err(failed)?;
        Ok(())
    }

    /// Writes the line that `describe` appends.
    pub(crate) fn line(&mut self, cx: &mut Cx, describe: impl FnOnce(&mut String)) {
        if self.is_lost {
            return;
        }
        self.line.clear();
        describe(&mut self.line);
        let Some(file) = &mut self.file else { return cx.chatter(&self.line) };
        let written = writeln!(file, "{}", self.line);
        self.give_up_after(written, cx);
    }

    /// Writes out what is buffered.
    pub(crate) fn flush(&mut self, cx: &mut Cx) {
        let flushed = self.file.as_mut().map_or(Ok(()), Write::flush);
        self.give_up_after(flushed, cx);
    }

    /// Says once that the file takes no more.
    fn give_up_after(&mut self, done: std::io::Result<()>, cx: &mut Cx) {
        if let Err(e) = done {
            cx.chatter(&format!("OUTFILE: {}: {}", self.path, io_error_text(&e)));
            (self.file, self.is_lost) = (None, true);
        }
    }
}
