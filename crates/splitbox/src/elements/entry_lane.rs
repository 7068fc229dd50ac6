//! A lane of the entry: packets that are counted by one worker at a time.

use super::datagram_packet::{clear_headers, seal, sealed};
use super::exit::EntryExit as Exit;
use crate::bits::Bits;
use crate::datagram::{LinkKey, OVERHEAD};
use crate::epochs::{EntryEpoch, EntryEpochs};
use crate::header::{SourceHash, header_string};
use crate::party::{BlindedHeader, Entry};
use crate::random::RandomStream;
use crate::setup::EntryParty;
use castanet_element::prelude::*;
use castanet_wire::headers::Headers;
use std::sync::Arc;

/// The first byte of a packet's datagrams to the client.
pub(super) mod rest {
    /// The packet is a dummy.
    pub(crate) const DUMMY: u8 = 1;
    /// This is the last datagram of the packet.
    pub(crate) const LAST: u8 = 2;
}

/// Room in front of new packets, for the headers of datagrams, UDP, IP and Ethernet.
const HEADROOM: usize = 128;
/// Bytes of IPv6 and UDP headers.
const CARRIER: usize = 48;

/// The parts of the element that its lanes use.
pub(super) struct EntryContext<'e> {
    pub party: &'e EntryParty,
    pub source_hash: &'e SourceHash,
    pub epochs: &'e RwShared<EntryEpochs>,
    /// Maximum length of IP packets with datagrams.
    pub mtu: usize,
}

impl EntryContext<'_> {
    /// Bytes of a packet that fit into a datagram.
    fn part_len(&self) -> usize {
        self.mtu.saturating_sub(CARRIER + OVERHEAD + 1).max(64)
    }
}

/// The lane in its present epoch.
pub(super) struct EntryLane {
    number: u8,
    epoch: Option<(Arc<EntryEpoch>, Entry)>,
    random: RandomStream,
    /// Lengths of some packets of the last time.
    lengths: [u16; EntryLane::LENGTHS],
}

impl EntryLane {
    /// Number of lengths from which those of dummy packets are drawn.
    const LENGTHS: usize = 64;

    /// A lane that has no epoch yet.
    pub(super) fn new(number: u8, random: RandomStream) -> EntryLane {
        EntryLane { number, epoch: None, random, lengths: [84; EntryLane::LENGTHS] }
    }

    /// Blinds packets and emits their datagrams.
    pub(super) fn push(&mut self, context: &EntryContext, batch: Batch, cx: &mut Cx) {
        let number = self.epoch.as_ref().map_or(0, |it| it.0.number);
        if context.epochs.read(|all| all.is_over(number)) {
            self.follow(context);
        }
        for packet in batch {
            self.push_one(context, packet, cx);
        }
    }

    fn push_one(&mut self, context: &EntryContext, mut packet: Packet, cx: &mut Cx) {
        let network = packet.network_offset().and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
        let Some(headers) = Headers::of(packet.bytes(), network) else {
            return cx.emit(Exit::NotIp, packet);
        };
        if headers.is_cut() {
            return cx.emit(Exit::Cut, packet);
        }
        let mut string = header_string(packet.bytes(), &headers);
        context.source_hash.put(&headers, &mut string);
        packet.truncate(headers.end);
        packet.pull_front(network);
        clear_headers(&mut packet);
        let dummies = context.party.dummies_per_million;
        while dummies > 0 && self.random.below(1_000_000) < dummies {
            let place = self.random.below(EntryLane::LENGTHS as u32) as usize;
            let len = self.lengths.get(place).copied().unwrap_or_default();
            let header = self.random.bits();
            let Some(mut dummy) = cx.copy_in_after(HEADROOM, &[]) else { break };
            dummy.put_back(len.into());
            self.send(context, header, (dummy, rest::DUMMY), cx);
        }
        if dummies > 0 {
            let place = self.random.below(EntryLane::LENGTHS as u32) as usize;
            let length = self.lengths.get_mut(place);
            length.into_iter().for_each(|it| *it = packet.len().min(usize::from(u16::MAX)) as u16);
        }
        self.send(context, string, (packet, 0), cx);
    }

    /// Blinds a header string; `None` if there is no epoch with a blind for it.
    fn blind(&mut self, context: &EntryContext, header: Bits) -> Option<BlindedHeader> {
        loop {
            let blinded = self.epoch.as_mut().and_then(|it| it.1.split(header));
            if blinded.is_some() || !self.follow(context) {
                return blinded;
            }
        }
    }

    /// Goes on to the next epoch; returns whether there is one.
    fn follow(&mut self, context: &EntryContext) -> bool {
        let number = self.epoch.as_ref().map_or(0, |it| it.0.number);
        let next = context.epochs.change(|all| all.next_after(number));
        let Some(epoch) = next else {
            if context.epochs.read(|all| all.is_over(number)) {
                self.epoch = None;
            }
            return false;
        };
        let entry = Entry::new(context.party, self.number, epoch.number);
        self.epoch = Some((epoch, entry));
        true
    }

    /// Emits the datagrams of a packet: to each processor, then to the client.
    fn send(&mut self, context: &EntryContext, header: Bits, packet: (Packet, u8), cx: &mut Cx) {
        let (packet, flags) = packet;
        let blinded = self.blind(context, header);
        let (Some(blinded), Some((epoch, _))) = (blinded, &self.epoch) else {
            return cx.emit(Exit::NoEpoch, packet);
        };
        let counter = blinded.counter;
        let bytes = context.party.info.options.header_bits / 8;
        let string = blinded.header.0.get(..bytes).unwrap_or_default();
        for (processor, key) in epoch.match_keys.iter().enumerate() {
            if let Some(mut datagram) = sealed(string, key, (counter, 0), cx) {
                datagram.set_paint(self.number);
                cx.emit(Exit::Out(processor as u8 + 1), datagram);
            }
        }
        self.send_parts(context, epoch, (counter, flags), packet, cx);
    }

    /// Emits a packet to the client, in as many datagrams as it takes.
    fn send_parts(
        &self,
        context: &EntryContext,
        epoch: &EntryEpoch,
        (counter, flags): (u64, u8),
        mut packet: Packet,
        cx: &mut Cx,
    ) {
        let part_len = context.part_len();
        let count = packet.len().div_ceil(part_len).clamp(1, usize::from(u8::MAX));
        for part in (1..count).rev() {
            let start = part * part_len;
            let tail = packet.bytes().get(start..).unwrap_or_default();
            let more = cx.copy_in_after(HEADROOM, tail);
            packet.truncate(start);
            let Some(mut more) = more else { continue };
            let is_last = part + 1 == count;
            more.push_front(1)[0] = flags | if is_last { rest::LAST } else { 0 };
            self.emit_part(&epoch.rest_key, (counter, part as u8), more, cx);
        }
        packet.push_front(1)[0] = flags | if count == 1 { rest::LAST } else { 0 };
        self.emit_part(&epoch.rest_key, (counter, 0), packet, cx);
    }

    fn emit_part(
        &self,
        key: &LinkKey,
        (counter, part): (u64, u8),
        mut packet: Packet,
        cx: &mut Cx,
    ) {
        seal(&mut packet, key, counter, part);
        packet.set_paint(self.number);
        cx.emit(Exit::Out(0), packet);
    }
}
