//! `Clipboard`: copies bytes from one packet to others.

use castanet_element::prelude::*;

/// Copies ranges of bytes from packets of the first input into packets of the second.
///
/// Packets leave by the output of their input's number. The bytes of the last packet
/// of the first input are written; until there is one, and in packets that are too
/// short, nothing changes. Each pair of ports may be push or pull.
///
/// ```click
/// from -> c :: Clipboard(1/2, 4/1) -> a;  to -> [1] c; c[1] -> b
/// > to   hex 11 12 13 14 15
/// < b    hex 11 12 13 14 15
/// > from hex 01 02 03 04 05
/// < a    hex 01 02 03 04 05
/// > to   hex 11 12 13 14 15
/// > to   hex 11 12
/// < b    hex 11 02 03 14 05
/// < b    hex 11 12
/// = c.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "edit", ports = "2/2", processing = "a/a", flow = "#/#")]
pub struct Clipboard {
    /// Ranges of bytes, an offset and a length each, as in `12/4`.
    #[arg(rest)]
    ranges: Vec<ByteRange>,
}

/// A range of bytes in a packet.
#[derive(Clone, Copy)]
pub struct ByteRange {
    offset: usize,
    length: usize,
}

impl FromArg for ByteRange {
    const SYNTAX: &'static str = "an offset and a length, such as 12/4";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let wrong = || ArgError::new(format!("`{text}` is not {}", Self::SYNTAX));
        let (offset, length) = text.split_once('/').ok_or_else(|| wrong().click("syntax error"))?;
        let number = |text: &str| u16::from_arg(text.trim(), names).map(usize::from);
        Ok(ByteRange { offset: number(offset)?, length: number(length)? })
    }
}

/// The copied bytes, one range after the other.
#[derive(Default, Local)]
pub struct ClipboardState {
    bytes: Vec<u8>,
}

impl Clipboard {
    /// Whether the packet has all ranges.
    fn fits(&self, packet: &Packet) -> bool {
        self.ranges.iter().all(|range| range.offset + range.length <= packet.len())
    }
}

impl PerBatch for Clipboard {
    type On = on::Any;
    type Local = ClipboardState;
    type Fate = Port;
    const SHARED: bool = true;

    fn batch(&self, state: &mut ClipboardState, port: usize, mut batch: Batch, cx: &mut Cx) {
        for packet in batch.iter_mut().filter(|packet| self.fits(packet)) {
            if port == 0 {
                let ranges = self.ranges.iter();
                state.bytes.clear();
                let bytes = packet.bytes();
                ranges.for_each(|it| state.bytes.extend(&bytes[it.offset..it.offset + it.length]));
            } else if !state.bytes.is_empty() {
                let mut from = state.bytes.as_slice();
                for it in &self.ranges {
                    let (part, rest) = from.split_at(it.length);
                    packet.bytes_mut()[it.offset..it.offset + it.length].copy_from_slice(part);
                    from = rest;
                }
            }
        }
        cx.emit_batch(Port::nth(port as u8), batch);
    }
}
