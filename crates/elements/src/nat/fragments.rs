//! Fragments in rewriters of ports, with `FRAGMENTS true`: later ones wait for the first.

use super::burst::exit_index;
use super::rewriter::{
    EXCESS, LONE, NOT_REWRITTEN, OVERLAPPING, Rewriter, RewriterExit, RewriterState, TINY,
    TableHandlers, UNMAPPED, is_reason,
};
use castanet_element::prelude::*;
use castanet_kit::fragment_tracker::{
    Admission, DatagramKey, Fragment, FragmentTracker, HeaderChain, Refusal,
};
use castanet_kit::nat::PacketInfo;

/// A queued fragment, and the input on which it came.
pub(super) type HeldFragment = (Packet, usize);

/// How often queued fragments are checked for their timeout.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The most packets to check for their timeout at a time, while other workers wait.
const EXPIRE_LIMIT: usize = 64;

/// The exit of a refused fragment.
fn exit_of_refusal(refusal: Refusal) -> RewriterExit {
    RewriterExit(match refusal {
        Refusal::Invalid => NOT_REWRITTEN,
        Refusal::Tiny => TINY,
        Refusal::Overlap => OVERLAPPING,
        Refusal::NoFirst => LONE,
        Refusal::Excess => EXCESS,
        Refusal::Denied(index) => index,
    })
}

/// The packet that a fragment belongs to, and the range of it that the fragment has.
fn parse_fragment(packet: &mut Packet) -> Option<(DatagramKey, Fragment)> {
    let ip = packet.ipv4()?;
    Some((DatagramKey::v4(&ip), Fragment::parse_v4(&ip, ip.payload())?))
}

impl Rewriter {
    /// Rewrites a burst with fragments in it; later fragments are rewritten as the first one of
    /// their packet.
    pub(super) fn batch_with_fragments<K: TableHandlers>(
        &self,
        it: &mut RewriterState<K>,
        port: usize,
        batch: Batch,
        cx: &mut Cx,
    ) {
        let mut whole = Batch::new();
        for packet in batch {
            if packet.ipv4_header().is_some_and(|ip| ip.is_fragment()) {
                if !whole.is_empty() {
                    self.batch_without_fragments(it, port, std::mem::take(&mut whole), cx);
                }
                self.fragment(it, port, packet, cx);
            } else {
                whole.push(packet);
            }
        }
        if !whole.is_empty() {
            self.batch_without_fragments(it, port, whole, cx);
        }
        self.release(it, cx);
    }

    fn fragment<K: TableHandlers>(
        &self,
        it: &mut RewriterState<K>,
        port: usize,
        mut packet: Packet,
        cx: &mut Cx,
    ) {
        let now = cx.now().nanos();
        let Some((key, fragment)) = parse_fragment(&mut packet) else {
            return cx.emit(RewriterExit(NOT_REWRITTEN), packet);
        };
        let key = key.for_input(port);
        match it.datagrams.change(|all| all.admit(key, &fragment, now)) {
            Admission::First => {
                self.batch_without_fragments(it, port, packet.into(), cx);
                let denial = it.burst.fates.first().copied().filter(|&fate| is_reason(fate));
                let queued = it.datagrams.change(|all| all.set_verdict(key, denial));
                for (later, port) in queued {
                    match (denial, &fragment.head) {
                        (None, Some(head)) => self.rewrite_later(it, port, later, head, cx),
                        (denial, _) => cx.emit(RewriterExit(denial.unwrap_or(TINY)), later),
                    }
                }
            }
            Admission::Later(head) => self.rewrite_later(it, port, packet, &head, cx),
            Admission::Pending => self.hold(it, port, packet, (key, &fragment), cx),
            Admission::Refused(refusal) => cx.emit(exit_of_refusal(refusal), packet),
        }
    }

    /// Queues a later fragment until the first one comes.
    fn hold<K: TableHandlers>(
        &self,
        it: &mut RewriterState<K>,
        port: usize,
        packet: Packet,
        (key, fragment): (DatagramKey, &Fragment),
        cx: &mut Cx,
    ) {
        let queued = || it.datagrams.read(FragmentTracker::queued);
        let Some(packet) = cx.keep_one(packet, queued) else { return };
        let (entry, now) = ((packet, port), cx.now().nanos());
        // Another worker may have rewritten the first one in the meantime.
        match it.datagrams.change(|all| all.enqueue(key, fragment, now, entry)) {
            Some(((packet, _), Admission::Later(head))) => {
                self.rewrite_later(it, port, packet, &head, cx);
            }
            Some(((packet, _), Admission::Refused(refusal))) => {
                cx.emit(exit_of_refusal(refusal), packet)
            }
            Some(((packet, _), _)) => cx.emit(exit_of_refusal(Refusal::NoFirst), packet),
            None => {}
        }
    }

    /// Rewrites a later fragment by the headers in the first one of its packet.
    fn rewrite_later<K: TableHandlers>(
        &self,
        it: &mut RewriterState<K>,
        input: usize,
        mut packet: Packet,
        head: &HeaderChain,
        cx: &mut Cx,
    ) {
        let (zone, anno, now) = (it.zone, self.reply_anno(&packet), cx.now().nanos());
        let Some(mut ip) = packet.ipv4() else {
            return cx.emit(RewriterExit(NOT_REWRITTEN), packet);
        };
        let mut first = *ip;
        first.set_fragment_word(0);
        let Some((key, may_open)) = self.config.kind.key(&first, &head.bytes) else {
            let result = it.table.read(|table| table.translate_unmapped(zone, input));
            return cx.emit(RewriterExit(exit_index(result, NOT_REWRITTEN)), packet);
        };
        let key = key.in_zone(zone);
        let result = it.table.change(|table| {
            let slot = table.find_one(&key);
            let info = PacketInfo { input, key, may_open, slot, anno, now };
            table.translate(zone, info, ip.datagram_mut(), &mut || cx.random())
        });
        self.set_annotations(&mut packet, &result);
        cx.emit(RewriterExit(exit_index(result, UNMAPPED)), packet);
    }

    /// Drops fragments whose first one did not come in time, and schedules the next check while
    /// fragments are queued.
    pub(super) fn release<K: TableHandlers>(&self, it: &mut RewriterState<K>, cx: &mut Cx) {
        let (now, mut is_done) = (cx.now().nanos(), true);
        if it.datagrams.read(|all| all.is_due(now)) {
            let (done, dropped) =
                it.datagrams.change(|all| (all.expire(now, EXPIRE_LIMIT), all.take_dropped()));
            dropped
                .into_iter()
                .for_each(|((packet, _), refusal)| cx.emit(exit_of_refusal(refusal), packet));
            is_done = done;
        }
        if !it.datagrams.read(FragmentTracker::is_empty) {
            it.wake_pending = true;
            cx.set_timer(cx.now() + if is_done { CHECK_INTERVAL } else { Duration::from_nanos(1) });
        }
    }

    /// Takes over the queued fragments of the previous configuration.
    pub(super) fn take_over_fragments<K: TableHandlers>(&self, it: &mut RewriterState<K>) {
        if let Some(datagrams) = self.datagrams.as_ref().filter(|all| !it.datagrams.is_same(all)) {
            let previous = it.datagrams.change(std::mem::take);
            datagrams.change(|all| all.take_over(previous));
            it.datagrams = datagrams.clone();
        }
    }

    /// Drops all queued fragments.
    pub(super) fn end<K: TableHandlers>(&self, it: &mut RewriterState<K>, cx: &mut Cx) {
        let dropped = it.datagrams.change(|all| {
            all.clear();
            all.take_dropped()
        });
        dropped
            .into_iter()
            .for_each(|((packet, _), refusal)| cx.emit(exit_of_refusal(refusal), packet));
    }

    /// The number of queued fragments, which one worker reports for all.
    pub(super) fn held<K: TableHandlers>(&self, it: &RewriterState<K>) -> usize {
        if it.is_primary() { it.datagrams.read(FragmentTracker::queued) } else { 0 }
    }
}
