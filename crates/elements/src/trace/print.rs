//! `Print`: prints packets.

use castanet_element::prelude::*;
use castanet_element::wire::print::{Contents, Print as Line};

/// Prints a line about each packet to standard error: its length and its first bytes.
///
/// ```click
/// in -> Print(ok) -> Print(MAXLENGTH 2, TIMESTAMP true) -> out
/// > in  hex 01 02 03 04 05 06
/// < out hex 01 02 03 04 05 06
/// ~ ok:    6 | 01020304 0506
/// ~ 0.000000:    6 | 0102
/// ```
///
/// ```click
/// in -> Print("a b", CONTENTS ascii, ACTIVE true) -> p :: Print(x, CONTENTS NONE, CPU false) -> out
/// > in  hex 47 45 54 20 0a
/// < out hex 47 45 54 20 0a
/// ~ a b:    5 |  GET .
/// ~ x:    5
/// ! p.active false
/// = p.active false
/// ```
#[derive(Clone, Element)]
#[element(room = "trace")]
pub struct Print {
    /// Text at the beginning of each line.
    #[arg(default = String::new())]
    label: String,
    /// The most bytes to print; all if negative.
    #[arg(default = 24)]
    maxlength: i32,
    /// Old name of `MAXLENGTH`.
    #[arg(keyword)]
    length: Option<i32>,
    /// Old name of `MAXLENGTH`.
    #[arg(keyword)]
    nbytes: Option<i32>,
    /// The format of the bytes: `NONE`, `HEX` or `ASCII`.
    #[arg(keyword, default = ContentsFormat(Contents::Hex), shown = "HEX")]
    contents: ContentsFormat,
    /// Whether to print the packet's timestamp.
    #[arg(keyword, default = false)]
    timestamp: bool,
    /// Whether to print the annotations.
    #[arg(keyword, default = false)]
    printanno: bool,
    /// Whether to print the headroom and tailroom.
    #[arg(keyword, default = false)]
    headroom: bool,
    /// Whether to print the number of the worker.
    #[arg(keyword, default = false)]
    cpu: bool,
    /// Whether to print at all.
    #[arg(keyword, live, default = true)]
    active: bool,
}

/// The argument CONTENTS.
#[derive(Clone, Copy)]
pub struct ContentsFormat(Contents);

impl FromArg for ContentsFormat {
    const SYNTAX: &'static str = "NONE, HEX or ASCII";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        Contents::from_word(text).map(ContentsFormat).ok_or_else(|| {
            ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click(format!("bad contents value '{text}'; should be 'NONE', 'HEX', or 'ASCII'"))
        })
    }
}

impl Print {
    fn line(&self, packet: &Packet, worker: usize, out: &mut String) {
        let max = self.nbytes.or(self.length).unwrap_or(self.maxlength);
        let annotations = packet.annotations();
        let line = Line {
            label: &self.label,
            cpu: self.cpu.then_some(worker),
            timestamp: self.timestamp.then(|| Timestamp(packet.timestamp())),
            room: self.headroom.then(|| (packet.headroom(), packet.tailroom())),
            annotations: self.printanno.then_some(&annotations[..]),
            contents: self.contents.0,
            max: usize::try_from(max).ok(),
        };
        line.line(packet.bytes(), out);
    }
}

impl PerBatch for Print {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    const CAN_PASS_BURST: bool = true;

    fn burst_effect(&self, _: &BurstSummary) -> BurstEffect {
        if self.active { BurstEffect::Keeps } else { BurstEffect::Passes }
    }

    fn batch(&self, _: &mut (), _: usize, batch: Batch, cx: &mut Cx) {
        let packets = if self.active { batch.as_slice() } else { &[] };
        let mut line = String::new();
        for packet in packets {
            line.clear();
            self.line(packet, cx.worker(), &mut line);
            cx.chatter(&line);
        }
        cx.emit_batch((), batch);
    }
}
