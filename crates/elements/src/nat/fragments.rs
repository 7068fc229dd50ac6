//! Fragments of packets that are rewritten by their ports, where a rewriter is asked for it.

use super::burst::fate;
use super::rewriting::{
    EXCESS, Kind, LONE, NOT_REWRITTEN, OVERLAPPING, Rewriter, Rewriting, TINY, UNMAPPED, WayOfSome,
    is_reason,
};
use castanet_engine::prelude::*;
use castanet_kit::fragment_tracker::{
    Admission, DatagramKey, Fragment, FragmentTracker, HeaderChain, Refusal,
};
use castanet_kit::nat::PacketInfo;

/// A fragment that waits, and the input that it came in by.
pub(super) type HeldFragment = (Packet, usize);

/// How long it takes until it is seen that nobody need wait any longer.
const INTERVAL: Duration = Duration::from_secs(1);
/// How many packets are looked at in one go that may be over.
const SOME: usize = 64;

/// Where a fragment goes that is refused.
fn refused(refusal: Refusal) -> WayOfSome {
    WayOfSome(match refusal {
        Refusal::Invalid => NOT_REWRITTEN,
        Refusal::Tiny => TINY,
        Refusal::Overlap => OVERLAPPING,
        Refusal::NoFirst => LONE,
        Refusal::Excess => EXCESS,
        Refusal::Denied(index) => index,
    })
}

/// Which packet a fragment is of, and what it has of that.
fn piece(packet: &mut Packet) -> Option<(DatagramKey, Fragment)> {
    let ip = packet.ipv4()?;
    Some((DatagramKey::v4(&ip), Fragment::parse_v4(&ip, ip.payload())?))
}

impl Rewriter {
    /// Rewrites a burst in which there may be fragments, of which later ones are rewritten as the
    /// first of their packet.
    pub(super) fn piecewise<K: Kind>(
        &self,
        it: &mut Rewriting<K>,
        port: usize,
        batch: Batch,
        cx: &mut Cx,
    ) {
        let mut whole = Batch::new();
        for packet in batch {
            if packet.ipv4_header().is_some_and(|ip| ip.is_fragment()) {
                if !whole.is_empty() {
                    self.whole(it, port, std::mem::take(&mut whole), cx);
                }
                self.fragment(it, port, packet, cx);
            } else {
                whole.push(packet);
            }
        }
        if !whole.is_empty() {
            self.whole(it, port, whole, cx);
        }
        self.release(it, cx);
    }

    fn fragment<K: Kind>(
        &self,
        it: &mut Rewriting<K>,
        port: usize,
        mut packet: Packet,
        cx: &mut Cx,
    ) {
        let now = cx.now().nanos();
        let Some((key, piece)) = piece(&mut packet) else {
            return cx.emit(WayOfSome(NOT_REWRITTEN), packet);
        };
        let key = key.for_input(port);
        match it.datagrams.change(|all| all.admit(key, &piece, now)) {
            Admission::First => {
                self.whole(it, port, packet.into(), cx);
                let denial = it.burst.fates.first().copied().filter(|&fate| is_reason(fate));
                let waited = it.datagrams.change(|all| all.set_verdict(key, denial));
                for (later, port) in waited {
                    match (denial, &piece.head) {
                        (None, Some(head)) => self.rewrite_later(it, port, later, head, cx),
                        (denial, _) => cx.emit(WayOfSome(denial.unwrap_or(TINY)), later),
                    }
                }
            }
            Admission::Later(head) => self.rewrite_later(it, port, packet, &head, cx),
            Admission::Pending => self.hold(it, port, packet, (key, &piece), cx),
            Admission::Refused(refusal) => cx.emit(refused(refusal), packet),
        }
    }

    /// Keeps a later fragment until the first one comes.
    fn hold<K: Kind>(
        &self,
        it: &mut Rewriting<K>,
        port: usize,
        packet: Packet,
        (key, piece): (DatagramKey, &Fragment),
        cx: &mut Cx,
    ) {
        let waiting = || it.datagrams.read(FragmentTracker::queued);
        let Some(packet) = cx.keep_one(packet, waiting) else { return };
        let (kept, now) = ((packet, port), cx.now().nanos());
        // Another worker may have had the first one meanwhile.
        match it.datagrams.change(|all| all.enqueue(key, piece, now, kept)) {
            Some(((packet, _), Admission::Later(head))) => {
                self.rewrite_later(it, port, packet, &head, cx);
            }
            Some(((packet, _), Admission::Refused(why))) => cx.emit(refused(why), packet),
            Some(((packet, _), _)) => cx.emit(refused(Refusal::NoFirst), packet),
            None => {}
        }
    }

    /// Rewrites a later fragment whose packet begins with this.
    fn rewrite_later<K: Kind>(
        &self,
        it: &mut Rewriting<K>,
        input: usize,
        mut packet: Packet,
        head: &HeaderChain,
        cx: &mut Cx,
    ) {
        let (zone, anno, now) = (it.zone, self.anno(&packet), cx.now().nanos());
        let Some(mut ip) = packet.ipv4() else {
            return cx.emit(WayOfSome(NOT_REWRITTEN), packet);
        };
        let mut first = *ip;
        first.set_fragment_word(0);
        let Some((key, begins)) = self.rules.kind.key(&first, &head.bytes) else {
            let passed = it.table.read(|table| table.translate_unmapped(zone, input));
            return cx.emit(WayOfSome(fate(passed, NOT_REWRITTEN)), packet);
        };
        let key = key.in_zone(zone);
        let passed = it.table.change(|table| {
            let arrival =
                PacketInfo { input, key, may_open: begins, slot: table.find_one(&key), anno, now };
            table.translate(zone, arrival, ip.datagram_mut(), &mut || cx.random())
        });
        self.tell(&mut packet, &passed);
        cx.emit(WayOfSome(fate(passed, UNMAPPED)), packet);
    }

    /// Lets those go that waited in vain, and sees to it that it is called again while somebody
    /// waits.
    pub(super) fn release<K: Kind>(&self, it: &mut Rewriting<K>, cx: &mut Cx) {
        let (now, mut is_done) = (cx.now().nanos(), true);
        if it.datagrams.read(|all| all.is_due(now)) {
            let (done, gone) =
                it.datagrams.change(|all| (all.expire(now, SOME), all.take_dropped()));
            gone.into_iter().for_each(|((packet, _), why)| cx.emit(refused(why), packet));
            is_done = done;
        }
        if !it.datagrams.read(FragmentTracker::is_empty) {
            it.waits = true;
            cx.wake_at(cx.now() + if is_done { INTERVAL } else { Duration::from_nanos(1) });
        }
    }

    /// Goes on with those that wait where another configuration had them.
    pub(super) fn adopt<K: Kind>(&self, it: &mut Rewriting<K>) {
        if let Some(datagrams) = self.datagrams.as_ref().filter(|all| !it.datagrams.is(all)) {
            let kept = it.datagrams.change(std::mem::take);
            datagrams.change(|all| all.take_over(kept));
            it.datagrams = datagrams.clone();
        }
    }

    /// Lets all go that wait.
    pub(super) fn end<K: Kind>(&self, it: &mut Rewriting<K>, cx: &mut Cx) {
        let gone = it.datagrams.change(|all| {
            all.clear();
            all.take_dropped()
        });
        gone.into_iter().for_each(|((packet, _), why)| cx.emit(refused(why), packet));
    }

    /// How many wait, for those at home.
    pub(super) fn held<K: Kind>(&self, it: &Rewriting<K>) -> usize {
        if it.is_home() { it.datagrams.read(FragmentTracker::queued) } else { 0 }
    }
}
