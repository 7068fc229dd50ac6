//! Fragments, which are judged by what their packet begins with.
//!
//! The first fragment says what later ones go by: rules see these with their own IP header and
//! the headers of the first. They wait for it, and go nowhere where it goes nowhere.

use crate::books::Books;
use crate::burst::{Of, Pass, now};
use crate::connections::{Ends, Looked, quotes};
use crate::exits::Exit;
use crate::headers::Headers;
use crate::rules::Rules;
use castanet_engine::prelude::*;
use castanet_kit::fragment_tracker::{
    Admission, DatagramKey, Fragment, FragmentTracker, HeaderChain, Refusal,
};
use castanet_wire::{Ipv4Header, Ipv6Header};

/// A fragment that waits, and the input that it came in by.
pub(crate) type HeldFragment = (Packet, usize);

/// How many packets are looked at in one go that may be over.
const SOME: usize = 64;

/// A packet as rules see it.
#[derive(Default)]
pub(crate) struct View {
    pub(crate) bytes: Vec<u8>,
    pub(crate) headers: Option<Headers>,
}

impl View {
    /// A first fragment, as it is.
    pub(crate) fn show(&mut self, packet: &Packet, headers: &Headers) {
        self.bytes.clear();
        self.bytes.extend(packet.bytes());
        self.headers = Some(*headers);
    }

    /// A later fragment: its own headers, and what its packet begins with.
    pub(crate) fn join(&mut self, packet: &Packet, headers: &Headers, head: &HeaderChain) {
        let own = packet.bytes().get(headers.network..headers.transport).unwrap_or_default();
        self.bytes.clear();
        self.bytes.extend(own);
        self.bytes.extend(&head.bytes[..]);
        self.headers = Some(headers.with_first(own.len(), head.protocol, &self.bytes));
    }
}

/// Which packet a fragment is of, and what it has of that.
pub(crate) fn piece(bytes: &[u8], headers: &Headers) -> Option<(DatagramKey, Fragment)> {
    let bytes = bytes.get(headers.network..headers.end)?;
    if headers.is_ip6 {
        let (ip, behind) = Ipv6Header::from_prefix(bytes)?;
        return Fragment::parse_v6(ip, behind);
    }
    let (ip, _) = Ipv4Header::from_prefix(bytes)?;
    let payload = bytes.get(headers.transport - headers.network..)?;
    Some((DatagramKey::v4(ip), Fragment::parse_v4(ip, payload)?))
}

impl Pass<'_> {
    /// Lets a burst pass in which there are fragments, or packets whose headers are cut short.
    #[cold]
    #[inline(never)]
    pub(crate) fn piecewise(&self, books: &mut Books, batch: Batch, cx: &mut Cx) {
        let mut whole = Batch::new();
        for packet in batch {
            match Headers::find(&packet) {
                Some(headers) if headers.is_fragment => {
                    self.between(books, &mut whole, cx);
                    self.fragment(books, packet, &headers, cx);
                }
                Some(headers) if headers.is_cut() => cx.emit(Exit::Malformed, packet),
                _ => whole.push(packet),
            }
        }
        self.between(books, &mut whole, cx);
        release(self.datagrams, SOME, cx);
        books.wait(cx);
    }

    /// The packets before a fragment.
    fn between(&self, books: &mut Books, whole: &mut Batch, cx: &mut Cx) {
        if !whole.is_empty()
            && let Some(odd) = self.whole(books, std::mem::take(whole), cx)
        {
            cx.emit_batch(Exit::Malformed, odd);
        }
    }

    fn fragment(&self, books: &mut Books, mut packet: Packet, headers: &Headers, cx: &mut Cx) {
        let Some((key, piece)) = piece(packet.bytes(), headers) else {
            return cx.emit(Exit::Malformed, packet);
        };
        let key = key.for_input(self.port);
        let now = now(cx);
        let mut view = std::mem::take(&mut books.view);
        match self.datagrams.change(|all| all.admit(key, &piece, now)) {
            Admission::First => {
                view.show(&packet, headers);
                let exit = self.by_view(books, &view, &mut packet, headers, cx);
                cx.emit(exit, packet);
                let waited = self.datagrams.change(|all| all.set_verdict(key, exit.denial()));
                for (mut later, port) in waited {
                    let exit = match (exit.denial(), &piece.head) {
                        (None, Some(head)) => {
                            let pass = Pass { port, ..*self };
                            pass.follow(books, &mut view, &mut later, head, cx)
                        }
                        (denial, _) => {
                            Exit::Fragment(denial.map_or(Refusal::Tiny, Refusal::Denied))
                        }
                    };
                    cx.emit(exit, later);
                }
            }
            Admission::Later(head) => {
                let exit = self.follow(books, &mut view, &mut packet, &head, cx);
                cx.emit(exit, packet);
            }
            Admission::Pending => self.wait(books, &mut view, packet, (key, &piece), cx),
            Admission::Refused(refusal) => cx.emit(Exit::Fragment(refusal), packet),
        }
        books.view = view;
    }

    /// Keeps a later fragment until the first one comes.
    fn wait(
        &self,
        books: &mut Books,
        view: &mut View,
        packet: Packet,
        (key, piece): (DatagramKey, &Fragment),
        cx: &mut Cx,
    ) {
        let waiting = || self.datagrams.read(FragmentTracker::queued);
        let Some(packet) = cx.keep_one(packet, waiting) else { return };
        let (kept, now) = ((packet, self.port), now(cx));
        let back = self.datagrams.change(|all| all.enqueue(key, piece, now, kept));
        // Another worker may have had the first one meanwhile.
        let Some(((mut packet, _), admission)) = back else { return };
        let exit = match admission {
            Admission::Later(head) => self.follow(books, view, &mut packet, &head, cx),
            Admission::Refused(refusal) => Exit::Fragment(refusal),
            Admission::First | Admission::Pending => Exit::Fragment(Refusal::NoFirst),
        };
        cx.emit(exit, packet);
    }

    /// Judges a later fragment by the headers that its packet begins with.
    fn follow(
        &self,
        books: &mut Books,
        view: &mut View,
        packet: &mut Packet,
        head: &HeaderChain,
        cx: &mut Cx,
    ) -> Exit {
        let Some(headers) = Headers::find(packet) else { return Exit::Malformed };
        view.join(packet, &headers, head);
        if self.is_refused(view) {
            return Exit::Malformed;
        }
        self.by_view(books, view, packet, &headers, cx)
    }

    /// Whether a later fragment that rules see so goes nowhere: no ICMP error is so long, and what
    /// a later part of it quotes is nobody's to restore.
    pub(crate) fn is_refused(&self, view: &View) -> bool {
        let is_error = || view.headers.is_some_and(|it| quotes(&view.bytes, &it));
        self.rules.stateful() > 0 && is_error()
    }

    /// Judges a packet by a view: a fragment together with the headers of its packet's first one.
    fn by_view(
        &self,
        books: &mut Books,
        view: &View,
        packet: &mut Packet,
        headers: &Headers,
        cx: &mut Cx,
    ) -> Exit {
        let Some(shown) = &view.headers else { return Exit::Malformed };
        let (seen, now) = ((&view.bytes[..], shown), now(cx));
        let ends = Ends::of_any(seen.0, shown);
        self.meet(books, None, seen);
        if self.rules.stateful() == 0 {
            return self.by_matched(books, None, *headers, ends, packet, cx);
        }
        self.connections.change(|connections| {
            let asked = (&books.asked, Looked::Alone);
            let mut found = connections.find_now(asked, seen.0, shown, now);
            match &found {
                Some(it) if self.own(books, connections, it).is_some() => {
                    connections.keep_now(it, seen.0, shown, &self.rules.timeouts, now);
                }
                Some(it) => {
                    connections.remove(it);
                    found = None;
                }
                None => {}
            }
            if found.is_none() {
                match self.begun(books, connections, seen, cx) {
                    Ok(begun) => found = begun,
                    Err(exit) => return exit,
                }
            }
            let of = found.as_ref().map(|found| Of { connections, found, headers });
            self.by_matched(books, of, *headers, ends, packet, cx)
        })
    }
}

/// Lets go those that waited in vain, and forgets `most` packets whose time is over. Whether there
/// may be more.
pub(crate) fn release(
    datagrams: &Common<FragmentTracker<HeldFragment>>,
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

impl Rules {
    /// Whether fragments are judged by what their packet begins with: where some rule looks behind
    /// the IP header, chooses by ports, or is about connections.
    #[inline]
    pub(crate) fn follow_fragments(&self) -> bool {
        self.stateful() > 0 || self.deep() > 0
    }
}
