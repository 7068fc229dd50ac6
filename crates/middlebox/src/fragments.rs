//! Fragments: matched with the headers of the first fragment of their packet.
//!
//! Rules match a later fragment with its own IP header and the headers of the first fragment. A
//! later fragment waits for the first one, and is dropped if that is dropped.

use crate::burst::{ConnectionRef, HookContext, now};
use crate::connections::{LookupKey, Tuple, quotes};
use crate::exit::Exit;
use crate::headers::Headers;
use crate::rule_set::RuleSet;
use crate::state::MiddleboxState;
use castanet_element::prelude::*;
use castanet_kit::fragment_tracker::{
    Admission, DatagramKey, Fragment, FragmentTracker, HeaderChain, Refusal,
};
use castanet_wire::{Ipv4Header, Ipv6Header};

/// A fragment that waits, and its input.
pub(crate) type HeldFragment = (Packet, usize);

/// Number of expired packets to look at per burst.
const EXPIRE_CHUNK: usize = 64;

/// A copy of the bytes that rules match, with the offsets of its headers.
#[derive(Default)]
pub(crate) struct HeaderBuffer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) headers: Option<Headers>,
}

impl HeaderBuffer {
    /// Copies a whole packet or a first fragment.
    pub(crate) fn set_packet(&mut self, packet: &Packet, headers: &Headers) {
        self.bytes.clear();
        self.bytes.extend(packet.bytes());
        self.headers = Some(*headers);
    }

    /// Copies the IP header of a later fragment, and behind it the header chain of the first
    /// fragment.
    pub(crate) fn set_later_fragment(
        &mut self,
        packet: &Packet,
        headers: &Headers,
        head: &HeaderChain,
    ) {
        let own = packet.bytes().get(headers.network..headers.transport).unwrap_or_default();
        self.bytes.clear();
        self.bytes.extend(own);
        self.bytes.extend(&head.bytes[..]);
        self.headers = Some(headers.with_first(own.len(), head.protocol, &self.bytes));
    }
}

/// Returns the key of the packet that a fragment belongs to, and the range that it covers.
pub(crate) fn fragment_key(bytes: &[u8], headers: &Headers) -> Option<(DatagramKey, Fragment)> {
    let bytes = bytes.get(headers.network..headers.end)?;
    if headers.is_ip6 {
        let (ip, behind) = Ipv6Header::from_prefix(bytes)?;
        return Fragment::parse_v6(ip, behind);
    }
    let (ip, _) = Ipv4Header::from_prefix(bytes)?;
    let payload = bytes.get(headers.transport - headers.network..)?;
    Some((DatagramKey::v4(ip), Fragment::parse_v4(ip, payload)?))
}

impl HookContext<'_> {
    /// Evaluates a burst that has fragments or packets with truncated headers.
    #[cold]
    #[inline(never)]
    pub(crate) fn process_with_fragments(
        &self,
        state: &mut MiddleboxState,
        batch: Batch,
        cx: &mut Cx,
    ) {
        let mut whole = Batch::new();
        for packet in batch {
            match Headers::find(&packet) {
                Some(headers) if headers.is_fragment => {
                    self.flush_whole(state, &mut whole, cx);
                    self.fragment(state, packet, &headers, cx);
                }
                Some(headers) if headers.is_cut() => cx.emit(Exit::Malformed, packet),
                _ => whole.push(packet),
            }
        }
        self.flush_whole(state, &mut whole, cx);
        release(self.datagrams, EXPIRE_CHUNK, cx);
        state.schedule_expiry(cx);
    }

    /// Evaluates the whole packets that came before a fragment.
    fn flush_whole(&self, state: &mut MiddleboxState, whole: &mut Batch, cx: &mut Cx) {
        if !whole.is_empty()
            && let Some(odd) = self.process_whole(state, std::mem::take(whole), cx)
        {
            cx.emit_batch(Exit::Malformed, odd);
        }
    }

    fn fragment(
        &self,
        state: &mut MiddleboxState,
        mut packet: Packet,
        headers: &Headers,
        cx: &mut Cx,
    ) {
        let Some((key, piece)) = fragment_key(packet.bytes(), headers) else {
            return cx.emit(Exit::Malformed, packet);
        };
        let key = key.for_input(self.port);
        let now = now(cx);
        let mut view = std::mem::take(&mut state.view);
        match self.datagrams.change(|all| all.admit(key, &piece, now)) {
            Admission::First => {
                view.set_packet(&packet, headers);
                let exit = self.process_view(state, &view, &mut packet, headers, cx);
                cx.emit(exit, packet);
                let waited = self.datagrams.change(|all| all.set_verdict(key, exit.denial()));
                for (mut later, port) in waited {
                    let exit = match (exit.denial(), &piece.head) {
                        (None, Some(head)) => {
                            let hook = HookContext { port, ..*self };
                            hook.process_later(state, &mut view, &mut later, head, cx)
                        }
                        (denial, _) => {
                            Exit::Fragment(denial.map_or(Refusal::Tiny, Refusal::Denied))
                        }
                    };
                    cx.emit(exit, later);
                }
            }
            Admission::Later(head) => {
                let exit = self.process_later(state, &mut view, &mut packet, &head, cx);
                cx.emit(exit, packet);
            }
            Admission::Pending => self.hold(state, &mut view, packet, (key, &piece), cx),
            Admission::Refused(refusal) => cx.emit(Exit::Fragment(refusal), packet),
        }
        state.view = view;
    }

    /// Holds a later fragment until the first fragment comes.
    fn hold(
        &self,
        state: &mut MiddleboxState,
        view: &mut HeaderBuffer,
        packet: Packet,
        (key, piece): (DatagramKey, &Fragment),
        cx: &mut Cx,
    ) {
        let waiting = || self.datagrams.read(FragmentTracker::queued);
        let Some(packet) = cx.keep_one(packet, waiting) else { return };
        let (kept, now) = ((packet, self.port), now(cx));
        let back = self.datagrams.change(|all| all.enqueue(key, piece, now, kept));
        // Another worker may have received the first fragment meanwhile.
        let Some(((mut packet, _), admission)) = back else { return };
        let exit = match admission {
            Admission::Later(head) => self.process_later(state, view, &mut packet, &head, cx),
            Admission::Refused(refusal) => Exit::Fragment(refusal),
            Admission::First | Admission::Pending => Exit::Fragment(Refusal::NoFirst),
        };
        cx.emit(exit, packet);
    }

    /// Evaluates a later fragment with the headers of the first fragment.
    fn process_later(
        &self,
        state: &mut MiddleboxState,
        view: &mut HeaderBuffer,
        packet: &mut Packet,
        head: &HeaderChain,
        cx: &mut Cx,
    ) -> Exit {
        let Some(headers) = Headers::find(packet) else { return Exit::Malformed };
        view.set_later_fragment(packet, &headers, head);
        if self.is_fragmented_error(view) {
            return Exit::Malformed;
        }
        self.process_view(state, view, packet, &headers, cx)
    }

    /// Whether a later fragment belongs to an ICMP error, where stateful rules would have to
    /// translate the packet that it quotes: its rest cannot be translated.
    pub(crate) fn is_fragmented_error(&self, view: &HeaderBuffer) -> bool {
        let is_error = || view.headers.is_some_and(|it| quotes(&view.bytes, &it));
        self.rules.stateful() > 0 && is_error()
    }

    /// Evaluates a packet by the headers in `view`.
    fn process_view(
        &self,
        state: &mut MiddleboxState,
        view: &HeaderBuffer,
        packet: &mut Packet,
        headers: &Headers,
        cx: &mut Cx,
    ) -> Exit {
        let Some(shown) = &view.headers else { return Exit::Malformed };
        let (seen, now) = ((&view.bytes[..], shown), now(cx));
        let ends = Tuple::of_any(seen.0, shown);
        self.match_rules(state, None, seen);
        if self.rules.stateful() == 0 {
            return self.apply_matched(state, None, *headers, ends, packet, cx);
        }
        self.connections.change(|connections| {
            let lookup = (&state.lookup_batch, LookupKey::Unbatched);
            let mut connection = connections.find_exclusive(lookup, seen.0, shown, now);
            match &connection {
                Some(it) if self.connection_actions(state, connections, it).is_some() => {
                    connections.refresh_exclusive(it, seen.0, shown, &self.rules.timeouts, now);
                }
                Some(it) => {
                    connections.remove(it);
                    connection = None;
                }
                None => {}
            }
            if connection.is_none() {
                match self.create_connection(state, connections, seen, cx) {
                    Ok(begun) => connection = begun,
                    Err(exit) => return exit,
                }
            }
            let of = connection.as_ref().map(|connection| ConnectionRef {
                connections,
                connection,
                headers,
            });
            self.apply_matched(state, of, *headers, ends, packet, cx)
        })
    }
}

/// Drops the fragments whose time is over, and removes at most `most` packets. Returns whether
/// there may be more.
pub(crate) fn release(
    datagrams: &RwShared<FragmentTracker<HeldFragment>>,
    most: usize,
    cx: &mut Cx,
) -> bool {
    let now = now(cx);
    if !datagrams.read(|all| all.is_due(now)) {
        return false;
    }
    let (is_done, gone) = datagrams.change(|all| (all.expire(now, most), all.take_dropped()));
    gone.into_iter().for_each(|((packet, _), why)| cx.emit(Exit::Fragment(why), packet));
    !is_done
}

impl RuleSet {
    /// Whether fragments need the headers of the first one: a rule tests fields behind the IP
    /// header, chooses by ports, or is stateful.
    #[inline]
    pub(crate) fn tracks_fragments(&self) -> bool {
        self.stateful() > 0 || self.transport_rules() > 0
    }
}
