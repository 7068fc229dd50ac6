//! The file in which `AggregateIPFlows` says what flows there were.

use castanet_engine::prelude::*;
use castanet_engine::wire::Timestamp;
use castanet_kit::ip_flows::Over;
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// An XML file with an element for each flow; or none.
#[derive(Default)]
pub(super) struct Trace {
    file: Option<Box<dyn Write + Send>>,
    name: String,
    /// Whether it is to be closed, rather than standard output.
    closes: bool,
}

impl Trace {
    /// Begins a file, `-` for standard output, about what `source` names.
    pub(super) fn open(&mut self, name: &str, source: Option<&str>) -> Result<(), ArgError> {
        let failed = |e| ArgError::new(format!("{name}: {e}")).at("TRACEINFO");
        self.closes = name != "-";
        let mut file: Box<dyn Write + Send> = match self.closes {
            false => Box::new(io::stdout()),
            true => Box::new(BufWriter::new(File::create(name).map_err(failed)?)),
        };
        let about = source.map(|source| format!(" file='{}'", escaped(source)));
        let about = about.unwrap_or_default();
        let head = format!("<?xml version='1.0' standalone='yes'?>\n<trace{about}>\n");
        file.write_all(head.as_bytes()).map_err(failed)?;
        (self.file, self.name) = (Some(file), name.to_owned());
        Ok(())
    }

    /// Says what flows are over.
    pub(super) fn write(&mut self, over: &[Over], cx: &mut Cx) {
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

fn line(flow: &Over, file: &mut impl Write) -> io::Result<()> {
    let &Over { number, src, dst, first, last, packets: [there, back] } = flow;
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
