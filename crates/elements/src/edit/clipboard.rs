//! `Clipboard`: bytes from one packet to others.

use castanet_engine::prelude::*;

/// Copies ranges of bytes from packets of the first input into packets of the second.
///
/// Packets leave by the output of their input's number. What was copied last is
/// written; before that, and where a packet is too short, nothing changes. Either
/// pair of ports may push or be pulled.
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
    /// An offset and a length each, as in `12/4`.
    #[arg(rest)]
    ranges: Vec<Piece>,
}

/// Some bytes of a packet.
#[derive(Clone, Copy)]
pub struct Piece {
    offset: usize,
    length: usize,
}

impl FromArg for Piece {
    const SYNTAX: &'static str = "an offset and a length, such as 12/4";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let wrong = || ArgError::new(format!("`{text}` is not {}", Self::SYNTAX));
        let (offset, length) = text.split_once('/').ok_or_else(|| wrong().click("syntax error"))?;
        let number = |text: &str| u16::from_arg(text.trim(), names).map(usize::from);
        Ok(Piece { offset: number(offset)?, length: number(length)? })
    }
}

/// What was copied, one range after the other.
#[derive(Default, Local)]
pub struct Copied {
    bytes: Vec<u8>,
}

impl Clipboard {
    fn fits(&self, packet: &Packet) -> bool {
        self.ranges.iter().all(|piece| piece.offset + piece.length <= packet.len())
    }
}

impl PerBatch for Clipboard {
    type On = on::Any;
    type Local = Copied;
    type Fate = Port;
    const SHARED: bool = true;

    fn batch(&self, copied: &mut Copied, port: usize, mut batch: Batch, cx: &mut Cx) {
        for packet in batch.iter_mut().filter(|packet| self.fits(packet)) {
            if port == 0 {
                let pieces = self.ranges.iter();
                copied.bytes.clear();
                let bytes = packet.bytes();
                pieces.for_each(|it| copied.bytes.extend(&bytes[it.offset..it.offset + it.length]));
            } else if !copied.bytes.is_empty() {
                let mut from = copied.bytes.as_slice();
                for it in &self.ranges {
                    let (piece, rest) = from.split_at(it.length);
                    packet.bytes_mut()[it.offset..it.offset + it.length].copy_from_slice(piece);
                    from = rest;
                }
            }
        }
        cx.emit_batch(Port::nth(port as u8), batch);
    }
}
