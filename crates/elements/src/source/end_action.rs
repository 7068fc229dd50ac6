//! End of a packet source: its limit, and the action after the last packet.

use castanet_element::prelude::*;

/// Number of packets that remain of `limit` after `count`; no limit if it is negative.
pub(super) fn packets_left(limit: i64, count: u64) -> usize {
    match u64::try_from(limit) {
        Ok(limit) => usize::try_from(limit.saturating_sub(count)).unwrap_or(usize::MAX),
        Err(_) => usize::MAX,
    }
}

/// The handler that END_CALL names, as the engine checks it.
pub(super) fn end_call_handlers(
    end_call: Option<String>,
) -> Option<Vec<(Option<&'static str>, String)>> {
    let call = end_call?;
    let handler = call.split_whitespace().next().unwrap_or_default().to_owned();
    Some(vec![(Some("END_CALL"), handler)])
}

/// Remembers whether a source has performed the action after its last packet.
#[derive(Default)]
pub(super) struct EndAction {
    done: bool,
}

impl EndAction {
    /// Allows the action again: there are further packets to make.
    pub(super) fn rearm(&mut self) {
        self.done = false;
    }

    /// Performs the action after the last packet, once: stops the router if `stop` is set, and
    /// calls the handler `end_call`.
    pub(super) fn run(&mut self, stop: bool, end_call: Option<&String>, cx: &mut Cx) -> NextRun {
        if !std::mem::replace(&mut self.done, true) {
            if stop {
                cx.stop();
            }
            if let Some(call) = end_call {
                let (handler, value) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
                cx.call(handler, value.trim_start());
            }
        }
        NextRun::Done
    }
}
