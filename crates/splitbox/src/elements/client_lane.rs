//! A lane of the client: packets that are put together from the datagrams of all parties.

use super::datagram_packet::strip;
use super::entry_lane::rest;
use super::exit::ClientExit as Exit;
use crate::bits::Bits;
use crate::counter::LaneCounter;
use crate::datagram::{DatagramInfo, DatagramKind};
use crate::epochs::ClientEpoch;
use crate::header::{header_string, write_header_string};
use crate::merge_window::{CompletePacket, DatagramPlace, MergeWindow};
use crate::replay::Freshness;
use crate::setup::{BlindUse, SetupInfo};
use crate::share::ActionShare;
use castanet_element::prelude::*;
use castanet_wire::headers::Headers;

/// Sizes of lanes.
#[derive(Clone, Copy)]
pub(super) struct LaneLimits {
    /// Packets of an epoch that may be incomplete at a time.
    pub window: usize,
    /// Nanoseconds that a packet waits for its datagrams.
    pub timeout: u64,
}

/// Counts of a lane.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LaneCounts {
    /// Packets that were put together, dummies included.
    pub complete: u64,
    /// Packets that were given up.
    pub incomplete: u64,
    /// Of these, the ones whose packet did not come from the entry.
    pub without_rest: u64,
}

/// The packets of a lane, by number of the epoch.
#[derive(Default)]
pub(super) struct ClientLane {
    windows: Vec<(u64, MergeWindow<(Packet, u8)>)>,
    pub counts: LaneCounts,
    /// By processor: packets that were given up without its share.
    pub without_share: Vec<u64>,
}

/// Epochs of which a lane has packets.
const MAX_WINDOWS: usize = 8;

impl ClientLane {
    /// Has room for counts of so many processors.
    pub(super) fn count_shares_of(&mut self, processors: usize) {
        let count = processors.max(self.without_share.len());
        self.without_share.resize(count, 0);
    }

    /// Datagrams that wait.
    pub(super) fn held(&self) -> usize {
        self.windows.iter().map(|it| it.1.held()).sum()
    }

    /// The packets of an epoch, of which an authentic datagram has come: forged ones take no memory.
    fn window(&mut self, epoch: u64, info: &SetupInfo, limits: LaneLimits, cx: &mut Cx) -> usize {
        let mut at = match self.windows.binary_search_by_key(&epoch, |it| it.0) {
            Ok(at) => return at,
            Err(at) => at,
        };
        let options = &info.options;
        let size = match options.blind_use {
            BlindUse::Again => limits.window,
            BlindUse::Once => {
                let blinds = (options.blinds / options.lanes as u64).min(limits.window as u64);
                blinds as usize
            }
        };
        if self.windows.len() >= MAX_WINDOWS {
            // The oldest epoch, whichever came last: the others may be usable, and their windows tell
            // replays.
            self.expire_at(0, u64::MAX, cx);
            self.windows.remove(0);
            at = at.saturating_sub(1);
        }
        self.windows.insert(at, (epoch, MergeWindow::new(size, options.processors)));
        at
    }

    /// Takes a datagram of the entry or of a processor.
    pub(super) fn take(
        &mut self,
        (setup, limits): (&SetupInfo, LaneLimits),
        (epoch, info): (&ClientEpoch, &DatagramInfo),
        mut packet: Packet,
        cx: &mut Cx,
    ) {
        let processor = info.link.processor;
        let (key, place) = match info.link.kind {
            DatagramKind::Rest => (Some(&epoch.rest_key), DatagramPlace::Part(info.part)),
            _ => (epoch.share_keys.get(usize::from(processor)), DatagramPlace::Share(processor)),
        };
        let Some(key) = key else {
            return cx.emit(Exit::Foreign, packet);
        };
        let sequence = LaneCounter::of(info.counter).sequence;
        let at = self.windows.binary_search_by_key(&epoch.number, |it| it.0);
        let freshness = at.map_or(Freshness::New, |at| self.windows[at].1.check(sequence, place));
        if freshness != Freshness::New {
            return cx.emit(Exit::from(freshness), packet);
        }
        let opened = key.open(info, packet.bytes_mut());
        let payload = match opened {
            Ok(payload) => payload,
            Err(error) => return cx.emit(Exit::from(error), packet),
        };
        let at = self.window(epoch.number, setup, limits, cx);
        let deadline = cx.now().nanos().saturating_add(limits.timeout);
        match place {
            DatagramPlace::Share(_) => {
                let Some(share) = read_share(payload, setup.options.header_bits / 8) else {
                    return cx.emit(Exit::Malformed, packet);
                };
                cx.count_consumed(1);
                let window = &mut self.windows[at].1;
                if let Some(complete) = window.add_share(sequence, processor, &share, deadline) {
                    self.counts.complete += 1;
                    finish(complete, cx);
                }
            }
            DatagramPlace::Part(part) => {
                let Some(flags) = payload.first().copied() else {
                    return cx.emit(Exit::Malformed, packet);
                };
                strip(&mut packet);
                packet.pull_front(1);
                let Some(packet) = cx.keep_one(packet, || self.held()) else { return };
                let is_last = flags & rest::LAST != 0;
                let window = &mut self.windows[at].1;
                let part = (part, (packet, flags));
                if let Some(complete) = window.add_part(sequence, part, is_last, deadline) {
                    self.counts.complete += 1;
                    finish(complete, cx);
                }
            }
        }
        self.drop_given_up(at, cx);
    }

    /// Gives up packets whose time has passed.
    pub(super) fn expire(&mut self, now: u64, cx: &mut Cx) {
        (0..self.windows.len()).for_each(|at| self.expire_at(at, now, cx));
    }

    fn expire_at(&mut self, at: usize, now: u64, cx: &mut Cx) {
        self.windows[at].1.expire(now);
        self.drop_given_up(at, cx);
    }

    fn drop_given_up(&mut self, at: usize, cx: &mut Cx) {
        let ClientLane { windows, counts, without_share } = self;
        for packet in windows[at].1.take_given_up() {
            counts.incomplete += 1;
            counts.without_rest += u64::from(packet.is_rest_missing);
            for (processor, count) in without_share.iter_mut().enumerate() {
                *count += packet.missing_shares >> processor & 1;
            }
            packet.parts.into_iter().for_each(|(part, _)| cx.emit(Exit::Incomplete, part));
        }
    }
}

/// The share in a payload; `None` if it has another length.
fn read_share(payload: &[u8], len: usize) -> Option<ActionShare> {
    let (value, projection) = payload.split_at_checked(len)?;
    let bits = |bytes: &[u8]| {
        let mut bits = Bits::ZERO;
        bits.0.get_mut(..len).filter(|it| it.len() == bytes.len())?.copy_from_slice(bytes);
        Some(bits)
    };
    Some(ActionShare { value: bits(value)?, projection: bits(projection)? })
}

/// Applies the result of the function to a packet, and emits it.
fn finish(complete: CompletePacket<(Packet, u8)>, cx: &mut Cx) {
    let CompletePacket { sum, mut parts } = complete;
    let Some((_, (mut packet, flags))) = parts.next() else { return };
    for (_, (part, _)) in parts {
        packet.put_back(part.len()).copy_from_slice(part.bytes());
        cx.count_consumed(1);
    }
    if flags & rest::DUMMY != 0 {
        return cx.emit(Exit::Dummy, packet);
    }
    // The entry has refused packets without whole headers.
    let Some(headers) = Headers::of(packet.bytes(), 0) else {
        return cx.emit(Exit::Malformed, packet);
    };
    let string = header_string(packet.bytes(), &headers);
    let result = sum.apply(string);
    if result.0[0] == 0 {
        return cx.emit(Exit::Policy, packet);
    }
    if result != string {
        write_header_string(packet.bytes_mut(), &headers, &result);
    }
    packet.set_network_header(0, headers.transport);
    cx.emit(Exit::Out(0), packet);
}
