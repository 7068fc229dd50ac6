//! The file in which `AggregateIPFlows` says what flows there were.

use castanet_engine::output::OutputWriter;
use castanet_engine::prelude::*;
use castanet_engine::wire::Timestamp;
use castanet_kit::ip_flows::EndedFlow;
use std::io::{self, Write};

/// An XML file with an element for each flow; or none.
#[derive(Default)]
pub(super) struct Trace {
    /// What was opened and not begun to be written.
    opened: Option<Output>,
    file: Option<OutputWriter>,
    name: String,
    /// Whether it is to be closed, rather than standard output.
    closes: bool,
}

impl Trace {
    /// Opens a file, `-` for standard output.
    pub(super) fn open(&mut self, name: &str) -> Result<(), ArgError> {
        let failed = |e| ArgError::new(format!("{name}: {e}")).at("TRACEINFO");
        (self.closes, self.name) = (name != "-", name.to_owned());
        self.opened = Some(Output::open(name).map_err(failed)?);
        Ok(())
    }

    /// Begins the file that was opened, about what `source` names.
    pub(super) fn start(&mut self, source: Option<&str>) -> Result<(), ArgError> {
        let failed = |e| ArgError::new(format!("{}: {e}", self.name)).at("TRACEINFO");
        let Some(opened) = self.opened.take() else { return Ok(()) };
        let mut file = opened.begin_lines().map_err(failed)?;
        let about = source.map(|source| format!(" file='{}'", escaped(source)));
        let about = about.unwrap_or_default();
        let head = format!("<?xml version='1.0' standalone='yes'?>\n<trace{about}>\n");
        file.write_all(head.as_bytes()).map_err(failed)?;
        self.file = Some(file);
        Ok(())
    }

    /// Says what flows are over.
    pub(super) fn write(&mut self, over: &[EndedFlow], cx: &mut Cx) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = over.iter().try_for_each(|flow| line(flow, file)) {
            cx.chatter(&format!("{}: {error}", self.name));
            self.file = None;
        }
    }

    /// Ends the file.
    pub(super) fn close(&mut self, cx: &mut Cx) {
        let Some(mut file) = self.file.take() else { return };
        let end: &[u8] = if self.closes { b"</trace>\n" } else { b"" };
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

/// A text as an attribute may have it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('\'', "&apos;")
}
