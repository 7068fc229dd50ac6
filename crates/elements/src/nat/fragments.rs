//! Fragments in rewriters of ports, with `FRAGMENTS true`: later ones wait for the first.

use super::burst::{exit_index, set_number};
use super::rewriter::{Rewriter, RewriterState, TableHandlers};
use super::rewriter_exits::{
    EXCESS, LONE, NOT_REWRITTEN, OVERLAPPING, RewriterExit, TINY, UNMAPPED, is_reason,
};
use castanet_element::fragment::{FragmentProcessor, PacketKind};
use castanet_element::prelude::*;
use castanet_kit::fragment_tracker::{DatagramKey, Fragment, HeaderChain, Refusal};
use castanet_kit::nat::{ChoiceContext, PacketInfo};

/// How often queued fragments are checked for their timeout.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The most packets to check for their timeout at a time, while other workers wait.
const EXPIRE_LIMIT: usize = 64;

impl From<Refusal> for RewriterExit {
    fn from(refusal: Refusal) -> Self {
        RewriterExit(match refusal {
            Refusal::Invalid => NOT_REWRITTEN,
            Refusal::Tiny => TINY,
            Refusal::Overlap => OVERLAPPING,
            Refusal::NoFirst => LONE,
            Refusal::Excess => EXCESS,
            Refusal::Denied(index) => index,
        })
    }
}

/// The context in which packets of one input are rewritten, with fragments among them.
struct FragmentContext<'r, K: TableHandlers> {
    rewriter: &'r Rewriter,
    state: &'r mut RewriterState<K>,
    port: usize,
}

impl<K: TableHandlers> FragmentProcessor for FragmentContext<'_, K> {
    type Exit = RewriterExit;

    fn classify(&self, packet: &mut Packet) -> PacketKind {
        if !packet.ipv4_header().is_some_and(|ip| ip.is_fragment()) {
            return PacketKind::Whole;
        }
        let Some(ip) = packet.ipv4() else { return PacketKind::Invalid };
        match Fragment::parse_v4(&ip, ip.payload()) {
            Some(fragment) => PacketKind::Fragment(DatagramKey::v4(&ip), fragment),
            None => PacketKind::Invalid,
        }
    }

    fn whole(&mut self, batch: Batch, cx: &mut Cx) {
        self.rewriter.batch_without_fragments(self.state, self.port, batch, cx);
    }

    fn first(&mut self, packet: Packet, cx: &mut Cx) -> Option<u8> {
        self.whole(packet.into(), cx);
        self.state.burst.fates.first().copied().filter(|&fate| is_reason(fate))
    }

    fn later(
        &mut self,
        input: usize,
        packet: &mut Packet,
        head: &HeaderChain,
        cx: &mut Cx,
    ) -> RewriterExit {
        let FragmentContext { rewriter, state, .. } = self;
        let (zone, anno, now) = (state.zone, rewriter.reply_anno(packet), cx.now().nanos());
        let Some(mut ip) = packet.ipv4() else { return RewriterExit(NOT_REWRITTEN) };
        let mut first = *ip;
        let dst = ip.dst();
        first.set_fragment_word(0);
        let Some((key, may_open)) = rewriter.config.kind.key(&first, &head.bytes) else {
            let result = state.table.read(|table| table.translate_unmapped(zone, input));
            return RewriterExit(exit_index(result, NOT_REWRITTEN));
        };
        let key = key.in_zone(zone);
        let (result, number) = state.table.change(|table| {
            let slot = table.find_one(&key);
            let info = PacketInfo { input, key, may_open, slot, anno, now };
            let mut context = ChoiceContext {
                worker: cx.worker(),
                random: &mut |last| cx.random_numbers().in_range(0, last),
            };
            let result = table.translate(zone, info, ip.datagram_mut(), &mut context);
            (result, rewriter.set_aggregate.then(|| table.number(zone, &key, dst)).flatten())
        });
        set_number(packet, number);
        rewriter.set_annotations(packet, &result);
        RewriterExit(exit_index(result, UNMAPPED))
    }
}

impl Rewriter {
    /// Rewrites a burst with fragments in it; later fragments are rewritten as the first one of
    /// their packet.
    pub(super) fn batch_with_fragments<K: TableHandlers>(
        &self,
        state: &mut RewriterState<K>,
        port: usize,
        batch: Batch,
        cx: &mut Cx,
    ) {
        let mut context = FragmentContext { rewriter: self, state, port };
        self.fragments.process(&mut context, port, batch, cx);
        self.expire_fragments(state, cx);
    }

    /// Drops fragments whose first one did not come in time, and schedules the next check while
    /// fragments are queued.
    pub(super) fn expire_fragments<K: TableHandlers>(
        &self,
        it: &mut RewriterState<K>,
        cx: &mut Cx,
    ) {
        let is_done = self.fragments.expire::<RewriterExit>(EXPIRE_LIMIT, cx);
        if !self.fragments.is_empty() {
            it.wake_pending = true;
            cx.set_timer(cx.now() + if is_done { CHECK_INTERVAL } else { Duration::from_nanos(1) });
        }
    }
}
