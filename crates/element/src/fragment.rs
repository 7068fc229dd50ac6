//! Processing of fragments by the headers of the first fragment of their packet.

use crate::cx::Cx;
use crate::fate::Fate;
use crate::shared::RwShared;
use castanet_kit::fragment_tracker::{
    Admission, DatagramKey, Fragment, FragmentTracker, HeaderChain, Refusal,
};
use castanet_packet::{Batch, Packet};

/// A packet as an element with a [`FragmentGate`] sees it.
pub enum PacketKind {
    /// Not a fragment.
    Whole,
    /// A fragment: the datagram that it belongs to, and its range of that.
    Fragment(DatagramKey, Fragment),
    /// A packet with malformed headers, which is dropped as [`Refusal::Invalid`].
    Invalid,
}

/// The work of an element on the packets of one input that a [`FragmentGate`] lets through.
pub trait FragmentProcessor {
    /// The exits of the element; each reason to refuse a fragment is one of them.
    type Exit: Fate + From<Refusal>;

    /// Parses the headers of a packet.
    fn classify(&self, packet: &mut Packet) -> PacketKind;
    /// Processes and emits packets that are not fragments.
    fn whole(&mut self, batch: Batch, cx: &mut Cx);
    /// Processes and emits a first fragment. Returns the index of the reason if it is dropped.
    fn first(&mut self, packet: Packet, cx: &mut Cx) -> Option<u8>;
    /// Processes a later fragment, which came on input `port`, by the headers of the first one.
    fn later(
        &mut self,
        port: usize,
        packet: &mut Packet,
        head: &HeaderChain,
        cx: &mut Cx,
    ) -> Self::Exit;
}

/// Fragments of all workers of an element. A later fragment waits for the first one of its packet,
/// and is dropped if that is dropped.
#[derive(Clone, Default)]
pub struct FragmentGate(RwShared<FragmentTracker<(Packet, usize)>>);

impl FragmentGate {
    /// Number of fragments that wait.
    pub fn held(&self) -> usize {
        self.0.read(FragmentTracker::queued)
    }

    /// Whether no packet is known of which a fragment has come.
    pub fn is_empty(&self) -> bool {
        self.0.read(FragmentTracker::is_empty)
    }

    /// The admission that a fragment would get, in nanoseconds since the epoch, without effect.
    pub fn peek(&self, key: DatagramKey, fragment: &Fragment, now: u64) -> Admission {
        self.0.read(|all| all.peek(key, fragment, now))
    }

    /// Processes the packets of input `port` in their order.
    pub fn process<P: FragmentProcessor>(
        &self,
        it: &mut P,
        port: usize,
        batch: Batch,
        cx: &mut Cx,
    ) {
        let mut whole = Batch::new();
        for mut packet in batch {
            let kind = it.classify(&mut packet);
            if matches!(kind, PacketKind::Whole) {
                whole.push(packet);
                continue;
            }
            if !whole.is_empty() {
                it.whole(std::mem::take(&mut whole), cx);
            }
            match kind {
                PacketKind::Fragment(key, fragment) => {
                    self.admit(it, port, packet, (key.for_input(port), &fragment), cx);
                }
                _ => cx.emit(P::Exit::from(Refusal::Invalid), packet),
            }
        }
        if !whole.is_empty() {
            it.whole(whole, cx);
        }
    }

    fn admit<P: FragmentProcessor>(
        &self,
        it: &mut P,
        port: usize,
        mut packet: Packet,
        (key, fragment): (DatagramKey, &Fragment),
        cx: &mut Cx,
    ) {
        let now = cx.now().nanos();
        let exit = match self.0.change(|all| all.admit(key, fragment, now)) {
            Admission::First => return self.process_first(it, packet, (key, fragment), cx),
            Admission::Later(head) => it.later(port, &mut packet, &head, cx),
            Admission::Pending => {
                let Some(packet) = cx.keep_one(packet, || self.held()) else { return };
                return self.hold(it, (packet, port), (key, fragment), cx);
            }
            Admission::Refused(refusal) => refusal.into(),
        };
        cx.emit(exit, packet);
    }

    /// Processes a first fragment and the later ones that wait for it.
    fn process_first<P: FragmentProcessor>(
        &self,
        it: &mut P,
        packet: Packet,
        (key, fragment): (DatagramKey, &Fragment),
        cx: &mut Cx,
    ) {
        let denial = it.first(packet, cx);
        for (mut later, port) in self.0.change(|all| all.set_verdict(key, denial)) {
            let exit = match (denial, &fragment.head) {
                (None, Some(head)) => it.later(port, &mut later, head, cx),
                (denial, _) => denial.map_or(Refusal::Tiny, Refusal::Denied).into(),
            };
            cx.emit(exit, later);
        }
    }

    /// Holds a later fragment until the first one comes.
    fn hold<P: FragmentProcessor>(
        &self,
        it: &mut P,
        packet: (Packet, usize),
        (key, fragment): (DatagramKey, &Fragment),
        cx: &mut Cx,
    ) {
        let now = cx.now().nanos();
        let back = self.0.change(|all| all.enqueue(key, fragment, now, packet));
        // Another worker may have processed the first one meanwhile.
        let Some(((mut packet, port), admission)) = back else { return };
        let exit = match admission {
            Admission::Later(head) => it.later(port, &mut packet, &head, cx),
            Admission::Refused(refusal) => refusal.into(),
            Admission::First | Admission::Pending => Refusal::NoFirst.into(),
        };
        cx.emit(exit, packet);
    }

    /// Drops fragments whose first one did not come in time. Checks `limit` packets at most; returns
    /// whether none is left to check.
    pub fn expire<F: Fate + From<Refusal>>(&self, limit: usize, cx: &mut Cx) -> bool {
        let now = cx.now().nanos();
        if !self.0.read(|all| all.is_due(now)) {
            return true;
        }
        let (is_done, dropped) = self.0.change(|all| (all.expire(now, limit), all.take_dropped()));
        dropped.into_iter().for_each(|((packet, _), refusal)| cx.emit(F::from(refusal), packet));
        is_done
    }

    /// Drops all fragments that wait.
    pub fn clear<F: Fate + From<Refusal>>(&self, cx: &mut Cx) {
        self.0.change(FragmentTracker::clear);
        self.expire::<F>(0, cx);
    }
}
