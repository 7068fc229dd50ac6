//! The contents of equal packets, and their emission.

use castanet_element::prelude::*;

/// The argument DATASIZE: the length of the packets in older configurations; the length of the data
/// if negative.
#[derive(Clone, Copy)]
pub(super) struct Datasize(pub(super) i64);

impl FromArg for Datasize {
    const SYNTAX: &'static str = "an integer up to 1048576";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let max = i64::from(Packet::MAX_ARG_LEN);
        castanet_element::args::within(text, names, &(..=max), Self::SYNTAX).map(Datasize)
    }
}

/// The contents of the packets of a source. The state of the source caches them; they are computed
/// again when the arguments have changed.
#[derive(Default)]
pub(super) struct Pattern {
    data: Vec<u8>,
    length: i64,
    bytes: Vec<u8>,
}

impl Pattern {
    /// `data`, cut or repeated to `length`, or as it is if `length` is negative.
    pub(super) fn bytes_of(&mut self, data: &Data, length: i64) -> &[u8] {
        if self.bytes.is_empty() || self.length != length || self.data != data.0 {
            self.data.clone_from(&data.0);
            self.length = length;
            self.bytes = match usize::try_from(length) {
                Ok(length) => data.0.iter().copied().cycle().take(length).collect(),
                Err(_) => data.0.clone(),
            };
        }
        &self.bytes
    }
}

/// Emits up to `n` packets with these bytes and returns their number, which is smaller if the pool
/// has no more frames. The engine has granted the source `n` packets. With `stamp` they carry that
/// timestamp. Each packet has a frame of its own: a copy of a few cache lines costs less than
/// reference counts of shared bytes, and elements that write to the packet need no copy.
pub(super) fn emit(
    bytes: &[u8],
    headroom: usize,
    stamp: Option<Time>,
    n: usize,
    cx: &mut Cx,
) -> usize {
    let mut batch = Batch::new();
    batch.reserve(n);
    cx.copy_in_batch(n, headroom, bytes, &mut batch);
    if let Some(now) = stamp {
        batch.iter_mut().for_each(|packet| packet.set_timestamp(now.0));
    }
    let count = batch.len();
    cx.emit_batch((), batch);
    count
}
