//! Output of the printing elements: standard error, or the file of an `OUTFILE` argument.

use castanet_element::args::io_error_text;
use castanet_element::output::OutputWriter;
use castanet_element::prelude::*;
use castanet_element::wire::Ethernet;
use std::io::Write;

/// The Ethernet header of a packet, which may have been stripped, if it lies before the network header.
pub(super) fn ether_before_network(packet: &Packet) -> Option<&Ethernet> {
    let (frame, network) = (packet.mac_bytes(), packet.network_bytes());
    let header = frame.get(..frame.len().checked_sub(network.len())?)?;
    Ethernet::from_prefix(header).map(|(header, _)| header)
}

/// The line being written, and the file it goes to.
#[derive(Default, Local)]
pub struct LineWriter {
    line: String,
    /// The output that is open and has not been written to.
    unstarted: Option<Output>,
    file: Option<OutputWriter>,
    /// The file's name, for errors.
    path: String,
    /// Whether a write has failed, so that lines are discarded.
    has_failed: bool,
}

impl LineWriter {
    /// Opens `path`; `-` is standard output, `None` the log, which is standard error.
    pub(crate) fn open(&mut self, path: Option<&str>) -> Result<(), ArgError> {
        let failed = |e| ArgError::of_file(path.unwrap_or_default(), &e).at("OUTFILE");
        self.unstarted = path.map(Output::open).transpose().map_err(failed)?;
        self.path = path.unwrap_or_default().to_owned();
        Ok(())
    }

    /// Truncates the open file.
    pub(crate) fn start(&mut self) -> Result<(), ArgError> {
        let failed = |e| ArgError::of_file(&self.path, &e).at("OUTFILE");
        self.file = self.unstarted.take().map(Output::begin_lines).transpose().map_err(failed)?;
        Ok(())
    }

    /// Writes the line that `describe` appends.
    pub(crate) fn line(&mut self, cx: &mut Cx, describe: impl FnOnce(&mut String)) {
        self.line_on("", cx, describe);
    }

    /// The same, to a channel of the log.
    pub(crate) fn line_on(
        &mut self,
        channel: &str,
        cx: &mut Cx,
        describe: impl FnOnce(&mut String),
    ) {
        if self.has_failed {
            return;
        }
        self.line.clear();
        describe(&mut self.line);
        let Some(file) = &mut self.file else {
            return cx.chatter_on(channel, &self.line);
        };
        let written = writeln!(file, "{}", self.line);
        self.check(written, cx);
    }

    /// Flushes the buffer.
    pub(crate) fn flush(&mut self, cx: &mut Cx) {
        let flushed = self.file.as_mut().map_or(Ok(()), Write::flush);
        self.check(flushed, cx);
    }

    /// Reports an error once, and discards all later lines.
    fn check(&mut self, result: std::io::Result<()>, cx: &mut Cx) {
        if let Err(e) = result {
            cx.chatter(&format!("OUTFILE: {}: {}", self.path, io_error_text(&e)));
            (self.file, self.has_failed) = (None, true);
        }
    }
}
