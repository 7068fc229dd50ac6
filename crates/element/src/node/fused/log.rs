//! Which packets of a burst leave a chain before its end, and which stage panicked.

use super::{EXITED, MAX_BRANCHES, STOP, StagePlace};
use crate::exec::ChainExit;
use castanet_packet::Packet;
use std::cell::Cell;

/// No stage has this number.
const NO_STAGE: u8 = u8::MAX;

/// Log of packets that leave before the end of the chain.
pub struct ExitLog<'a> {
    pub(super) exits: &'a mut Vec<ChainExit>,
    /// Address of the burst's first packet.
    start: usize,
    /// Whether a stage has stopped a packet.
    has_stopped: bool,
    /// By branch: the first stage that takes a packet only as part of a batch. All packets of the branch
    /// after that one must stay behind it.
    stops: [u8; MAX_BRANCHES + 1],
    /// The place of the stage that panicked.
    panicked: &'a Cell<StagePlace>,
}

impl<'a> ExitLog<'a> {
    /// For a burst of these packets.
    #[inline]
    pub(super) fn new(
        exits: &'a mut Vec<ChainExit>,
        packets: &[Packet],
        panicked: &'a Cell<StagePlace>,
    ) -> ExitLog<'a> {
        let start = packets.as_ptr().addr();
        let stops = [NO_STAGE; MAX_BRANCHES + 1];
        ExitLog { exits, start, has_stopped: false, stops, panicked }
    }

    /// Logs a packet that does not go on from a stage.
    #[inline(always)]
    pub(super) fn exit(&mut self, packet: &Packet, place: StagePlace, fate: u8) -> u8 {
        self.note(packet, place, fate);
        EXITED
    }

    /// Whether a stage takes all packets after one of those logged.
    // Never inlined: the compiler would merge this test with the one before,
    // and make it for packets that go on, too.
    #[cold]
    #[inline(never)]
    pub(super) fn has_stopped(&self) -> bool {
        self.has_stopped
    }

    /// Whether packets that come to this stage must stay behind one that has stopped there.
    #[inline]
    pub(super) fn stops_at(&self, place: StagePlace) -> bool {
        self.stops.get(usize::from(place.branch)) == Some(&place.stage)
    }

    /// Logs where a packet leaves, and whether those after it may go on.
    #[cold]
    #[inline(never)]
    fn note(&mut self, packet: &Packet, place: StagePlace, fate: u8) {
        let index = (std::ptr::from_ref(packet).addr() - self.start) / size_of::<Packet>();
        if fate == STOP {
            self.has_stopped = true;
            if let Some(stop) = self.stops.get_mut(usize::from(place.branch)) {
                *stop = place.stage.min(*stop);
            }
        }
        let fate = (fate != STOP).then_some(fate);
        self.exits.push(ChainExit { index: index as u16, place, fate });
    }
}

/// Records the stage that runs, if it panics.
pub(super) struct PanicGuard<'a> {
    place: StagePlace,
    // Its cell would be loaded for each stage of each packet.
    log: &'a ExitLog<'a>,
}

impl<'a> PanicGuard<'a> {
    /// Of a stage that begins to run; to be forgotten when it has ended.
    #[inline(always)]
    pub(super) fn new(place: StagePlace, log: &'a ExitLog<'a>) -> PanicGuard<'a> {
        PanicGuard { place, log }
    }
}

impl Drop for PanicGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.log.panicked.set(self.place);
    }
}
