//! What sources of equal packets have in common: a pattern, its copies, an end.

use castanet_engine::prelude::*;

/// How many packets of `limit` are left after `count`; no limit if negative.
pub(super) fn left(limit: i64, count: u64) -> usize {
    match u64::try_from(limit) {
        Ok(limit) => usize::try_from(limit.saturating_sub(count)).unwrap_or(usize::MAX),
        Err(_) => usize::MAX,
    }
}

/// A length of packets as older configurations spell it; that of the data if negative.
#[derive(Clone, Copy)]
pub(super) struct Datasize(pub(super) i64);

impl FromArg for Datasize {
    const SYNTAX: &'static str = "an integer up to 1048576";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let most = i64::from(Packet::MAX_ARG_LEN);
        castanet_engine::args::within(text, names, &(..=most), Self::SYNTAX).map(Datasize)
    }
}

/// The bytes of a source's packets, made anew only when they change.
#[derive(Default)]
pub(super) struct Pattern {
    data: Vec<u8>,
    length: i64,
    bytes: Vec<u8>,
}

impl Pattern {
    /// `data`, cut or repeated to `length` if that is not negative.
    pub(super) fn of(&mut self, data: &Data, length: i64) -> &[u8] {
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

/// Emits `n` packets of `bytes`, which the source was granted; how many there were frames for. Each has a
/// frame of its own: a copy of a few cache lines costs less than counting the
/// owners of shared bytes, and whoever writes to a packet need not copy it.
pub(super) fn emit(
    bytes: &[u8],
    headroom: usize,
    stamp: Option<Time>,
    n: usize,
    cx: &mut Cx,
) -> usize {
    let mut batch = Batch::new();
    batch.reserve(n);
    while batch.len() < n {
        let Some(mut packet) = cx.copy_in_after(headroom, bytes) else { break };
        if let Some(now) = stamp {
            packet.set_timestamp(now.0);
        }
        batch.push(packet);
    }
    let made = batch.len();
    cx.emit_batch((), batch);
    made
}

/// The handler of an END_CALL.
pub(super) fn calls(end_call: Option<String>) -> Option<Vec<(Option<&'static str>, String)>> {
    let call = end_call?;
    let handler = call.split_whitespace().next().unwrap_or_default().to_owned();
    Some(vec![(Some("END_CALL"), handler)])
}

/// What happens once when a source has made its last packet.
#[derive(Default)]
pub(super) struct Ending {
    done: bool,
}

impl Ending {
    /// There are packets to come.
    pub(super) fn not_yet(&mut self) {
        self.done = false;
    }

    /// The last packet is made: stops the router, or calls the handler.
    pub(super) fn now(&mut self, stop: bool, end_call: Option<&String>, cx: &mut Cx) -> Asked {
        if !std::mem::replace(&mut self.done, true) {
            if stop {
                cx.stop();
            }
            if let Some(call) = end_call {
                let (handler, value) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
                cx.call(handler, value.trim_start());
            }
        }
        Asked::Done
    }
}
