//! Fragments: matched with the headers of the first fragment of their packet.
//!
//! Rules match a later fragment with its own IP header and the headers of the first fragment. A
//! later fragment waits for the first one, and is dropped if that is dropped.

use crate::burst::{ConnectionRef, HookContext, now};
use crate::connections::{quotes, read_any_tuple};
use crate::ct_state::CtInfo;
use crate::exit::Exit;
use crate::headers::{self, Headers};
use crate::rule_set::RuleSet;
use crate::state::MiddleboxState;
use castanet_element::fragment::{FragmentProcessor, PacketKind};
use castanet_element::prelude::*;
use castanet_kit::fragment_tracker::{DatagramKey, Fragment, HeaderChain};
use castanet_wire::{Ipv4Header, Ipv6Header};

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

    /// Copies the headers of a later fragment up to that of IP, and behind them the header chain of the first
    /// fragment.
    pub(crate) fn set_later_fragment(
        &mut self,
        packet: &Packet,
        headers: &Headers,
        head: &HeaderChain,
    ) {
        let own = packet.bytes().get(..headers.transport).unwrap_or_default();
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

/// The context in which packets of one input are evaluated, with fragments among them.
struct FragmentContext<'m> {
    hook: HookContext<'m>,
    state: &'m mut MiddleboxState,
    view: HeaderBuffer,
}

impl FragmentProcessor for FragmentContext<'_> {
    type Exit = Exit;

    fn classify(&self, packet: &mut Packet) -> PacketKind {
        match headers::find(packet) {
            Some(headers) if headers.is_fragment => fragment_key(packet.bytes(), &headers)
                .map_or(PacketKind::Invalid, |(key, fragment)| PacketKind::Fragment(key, fragment)),
            Some(headers) if headers.is_cut() => PacketKind::Invalid,
            _ => PacketKind::Whole,
        }
    }

    fn whole(&mut self, batch: Batch, cx: &mut Cx) {
        if let Some(odd) = self.hook.process_whole(self.state, batch, cx) {
            cx.emit_batch(Exit::Malformed, odd);
        }
    }

    fn first(&mut self, mut packet: Packet, cx: &mut Cx) -> Option<u8> {
        let exit = match headers::find(&packet) {
            Some(headers) => {
                self.view.set_packet(&packet, &headers);
                self.hook.process_view(self.state, &self.view, &mut packet, &headers, cx)
            }
            None => Exit::Malformed,
        };
        cx.emit(exit, packet);
        exit.denial()
    }

    fn later(&mut self, port: usize, packet: &mut Packet, head: &HeaderChain, cx: &mut Cx) -> Exit {
        let FragmentContext { hook, state, view } = self;
        let hook = HookContext { port, ..*hook };
        let Some(headers) = headers::find(packet) else { return Exit::Malformed };
        view.set_later_fragment(packet, &headers, head);
        if hook.is_fragmented_error(view) {
            return Exit::Malformed;
        }
        hook.process_view(state, view, packet, &headers, cx)
    }
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
        let view = std::mem::take(&mut state.view);
        let mut context = FragmentContext { hook: *self, state, view };
        self.fragments.process(&mut context, self.port, batch, cx);
        let FragmentContext { state, view, .. } = context;
        state.view = view;
        self.fragments.expire::<Exit>(EXPIRE_CHUNK, cx);
        state.schedule_expiry(cx);
    }

    /// Whether a later fragment belongs to an ICMP error, where connections would have to
    /// translate the packet that it quotes: its rest cannot be translated.
    pub(crate) fn is_fragmented_error(&self, view: &HeaderBuffer) -> bool {
        let is_error = || view.headers.is_some_and(|it| quotes(&view.bytes, &it));
        self.rules.has_connections() && is_error()
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
        let ends = read_any_tuple(seen.0, shown);
        let none = CtInfo::of_no_connection(seen.0, shown);
        if !self.rules.has_connections() {
            self.match_rules(state, None, packet, seen, none);
            return self.apply_matched(state, None, *headers, ends, packet, &mut || cx.random());
        }
        self.connections.change(|connections| {
            let found = self.find_connection(state, connections, None, seen, now);
            let ct_info = found.as_ref().map_or(none, |(it, _)| connections.ct_info_of(it));
            self.match_rules(state, None, packet, seen, ct_info);
            let connection = match found {
                Some((connection, _)) => Ok(Some(connection)),
                None => self.create_connection(state, connections, seen, cx),
            };
            let connection = match connection {
                Ok(connection) => connection,
                Err(exit) => return self.refuse(state, exit, headers, packet),
            };
            let of = connection.as_ref().map(|connection| ConnectionRef {
                connections,
                connection,
                headers,
            });
            self.apply_matched(state, of, *headers, ends, packet, &mut || cx.random())
        })
    }
}

impl RuleSet {
    /// Whether fragments need the headers of the first one: a rule tests fields behind the IP
    /// header, chooses by ports, or is about connections.
    #[inline]
    pub(crate) fn tracks_fragments(&self) -> bool {
        self.has_connections() || self.transport_rules() > 0
    }
}
