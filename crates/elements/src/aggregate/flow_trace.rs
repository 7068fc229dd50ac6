//! The XML file in which `AggregateIPFlows` records flows.

use castanet_element::output::OutputWriter;
use castanet_element::prelude::*;
use castanet_element::wire::Timestamp;
use castanet_kit::ip_flows::EndedFlow;
use std::io::{self, Write};

/// The XML file with an element for each flow, if there is one.
#[derive(Default)]
pub(super) struct FlowTrace {
    /// The output that is open and has not been written to.
    unstarted: Option<Output>,
    file: Option<OutputWriter>,
    name: String,
    /// Whether to write the end of the document, which standard output does not get.
    has_end: bool,
}

impl FlowTrace {
    /// Opens a file, `-` for standard output.
    pub(super) fn open(&mut self, name: &str) -> Result<(), ArgError> {
        let failed = |e| ArgError::new(format!("{name}: {e}")).at("TRACEINFO");
        (self.has_end, self.name) = (name != "-", name.to_owned());
        self.unstarted = Some(Output::open(name).map_err(failed)?);
        Ok(())
    }

    /// Writes the beginning of the document; `source` is the name of the traffic's file.
    pub(super) fn start(&mut self, source: Option<&str>) -> Result<(), ArgError> {
        let failed = |e| ArgError::new(format!("{}: {e}", self.name)).at("TRACEINFO");
        let Some(output) = self.unstarted.take() else { return Ok(()) };
        let mut file = output.begin_lines().map_err(failed)?;
        let attribute = source.map(|source| format!(" file='{}'", escaped(source)));
        let attribute = attribute.unwrap_or_default();
        let head = format!("<?xml version='1.0' standalone='yes'?>\n<trace{attribute}>\n");
        file.write_all(head.as_bytes()).map_err(failed)?;
        self.file = Some(file);
        Ok(())
    }

    /// Writes the elements of flows that have ended.
    pub(super) fn write(&mut self, ended: &[EndedFlow], cx: &mut Cx) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = ended.iter().try_for_each(|flow| line(flow, file)) {
            cx.chatter(&format!("{}: {error}", self.name));
            self.file = None;
        }
    }

    /// Writes the end of the document.
    pub(super) fn close(&mut self, cx: &mut Cx) {
        let Some(mut file) = self.file.take() else { return };
        let end: &[u8] = if self.has_end { b"</trace>\n" } else { b"" };
        if let Err(error) = file.write_all(end).and_then(|()| file.flush()) {
            cx.chatter(&format!("{}: {error}", self.name));
        }
    }
}

fn line(flow: &EndedFlow, file: &mut impl Write) -> io::Result<()> {
    let &EndedFlow { number, src, dst, first, last, packets: [there, back] } = flow;
    let time = |nanos| Timestamp(i64::try_from(nanos).unwrap_or(i64::MAX));
    let (begin, duration) = (time(first), time(last.saturating_sub(first)));
    writeln!(
        file,
        "<flow aggregate='{number}' src='{}' sport='{}' dst='{}' dport='{}' begin='{begin}' \
         duration='{duration}'>\n  <stream dir='0' packets='{there}' />\
         <stream dir='1' packets='{back}' />\n</flow>",
        src.0, src.1, dst.0, dst.1
    )
}

/// A text with the characters escaped that an attribute may not have.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}
