//! Rewriting of a burst: first with shared, then with exclusive access to the mappings.

use super::rewriter::Rewriter;
use super::rewriter_exits::{EXHAUSTED, NOT_REWRITTEN, UNMAPPED};
use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_kit::conntrack::{ExclusiveAccess, LookupBatch, Slot, Tuple4};
use castanet_kit::nat::{ChoiceContext, PacketInfo, Refusal, RewriterKind, Table, Translation};

/// The context in which a burst is rewritten: rewriter, zone of the table, input, time.
pub(super) struct BurstContext<'r> {
    pub(super) rewriter: &'r Rewriter,
    pub(super) zone: u16,
    pub(super) port: usize,
    pub(super) now: u64,
}

impl BurstContext<'_> {
    /// Rewrites packets for which shared access to the table is enough, and defers the others.
    /// Packets get the numbers of their mappings if `NUMBERS` says so.
    pub(super) fn rewrite_shared<const NUMBERS: bool>(
        &self,
        burst: &mut BurstState,
        batch: &mut Batch,
        table: &Table,
    ) {
        burst.look_up(self.rewriter.config.kind, self.zone, batch, table);
        let BurstState { keys, may_open, fates, deferred } = burst;
        fates.clear();
        deferred.clear();
        let plain = table.plain_translation(self.zone, self.now).filter(|_| !NUMBERS);
        let packets = batch.iter_mut().zip(keys.results()).zip(may_open).enumerate();
        fates.extend(packets.map(|(n, ((packet, (key, slot)), may_open))| {
            let translation = match &plain {
                Some(plain) if slot != Slot::NONE => {
                    let ip = packet.ipv4();
                    ip.and_then(|mut ip| plain.translate(key, slot, ip.datagram_mut()))
                }
                _ => None,
            };
            if let Some(translation) = translation {
                return self.finish(packet, Ok(translation));
            }
            // A deferred packet may still open the mapping that this one lacks.
            let waits = !deferred.is_empty() && slot == Slot::NONE;
            let result = match *may_open {
                None => {
                    Ok(exit_index(table.translate_unmapped(self.zone, self.port), NOT_REWRITTEN))
                }
                Some(_) if waits => Err(ExclusiveAccess),
                Some(may_open) => {
                    let info = self.packet_info(*key, may_open, slot, packet);
                    self.rewrite_one::<NUMBERS>(info, packet, table)
                }
            };
            result.unwrap_or_else(|ExclusiveAccess| {
                deferred.push(n);
                NOT_REWRITTEN
            })
        }));
    }

    /// Rewrites a packet, plain or not, for which shared access may be enough.
    #[inline(never)]
    fn rewrite_one<const NUMBERS: bool>(
        &self,
        info: PacketInfo,
        packet: &mut Packet,
        table: &Table,
    ) -> Result<u8, ExclusiveAccess> {
        let mut ip = packet.ipv4().ok_or(ExclusiveAccess)?;
        let dst = ip.dst();
        let result = table.translate_shared(self.zone, info, ip.datagram_mut())?;
        let fate = self.finish(packet, result);
        if NUMBERS {
            set_number(packet, table.number(self.zone, &info.key, dst));
        }
        Ok(fate)
    }

    /// Sets the annotations of a packet; returns its exit.
    #[inline]
    fn finish(&self, packet: &mut Packet, result: Result<Translation, Refusal>) -> u8 {
        self.rewriter.set_annotations(packet, &result);
        exit_index(result, UNMAPPED)
    }

    /// Rewrites the deferred packets, which may change the table.
    pub(super) fn rewrite_exclusive(
        &self,
        burst: &mut BurstState,
        batch: &mut Batch,
        table: &mut Table,
        cx: &mut Cx,
    ) {
        let BurstState { keys, may_open, fates, deferred, .. } = burst;
        let mut indices = deferred.iter().copied().peekable();
        for (n, packet) in batch.iter_mut().enumerate() {
            if indices.next_if_eq(&n).is_none() {
                continue;
            }
            let (key, may_open) = (keys.key(n), may_open[n] == Some(true));
            let info = self.packet_info(key, may_open, table.find_one(&key), packet);
            let Some(mut ip) = packet.ipv4() else { continue };
            let dst = ip.dst();
            let mut context = ChoiceContext {
                worker: cx.worker(),
                random: &mut |last| cx.random_numbers().in_range(0, last),
            };
            let result = table.translate(self.zone, info, ip.datagram_mut(), &mut context);
            fates[n] = self.finish(packet, result);
            if self.rewriter.set_aggregate {
                set_number(packet, table.number(self.zone, &key, dst));
            }
        }
    }

    #[inline]
    fn packet_info(&self, key: Tuple4, may_open: bool, slot: Slot, packet: &Packet) -> PacketInfo {
        let anno = self.rewriter.reply_anno(packet);
        PacketInfo { input: self.port, key, may_open, slot, anno, now: self.now }
    }
}

/// The keys, mappings and exits of the packets of a burst.
#[derive(Default)]
pub(super) struct BurstState {
    keys: LookupBatch<Tuple4>,
    /// Whether each packet may open a flow; `None` for packets that are not rewritten.
    may_open: Vec<Option<bool>>,
    /// Indices of packets that need exclusive access to the table.
    pub(super) deferred: Vec<usize>,
    pub(super) fates: Vec<u8>,
}

impl BurstState {
    fn look_up(&mut self, kind: RewriterKind, zone: u16, batch: &mut Batch, table: &Table) {
        self.keys.clear();
        self.may_open.clear();
        self.may_open.extend(batch.iter_mut().map(|packet| {
            let key = packet.ipv4().and_then(|ip| kind.key_of(ip.datagram()));
            self.keys.push(key.map_or_else(Tuple4::default, |(key, _)| key.in_zone(zone)));
            key.map(|(_, may_open)| may_open)
        }));
        table.look_up(&mut self.keys);
    }
}

/// Sets the aggregate annotation of a packet to the number of its mapping, if it has one.
pub(super) fn set_number(packet: &mut Packet, number: Option<u32>) {
    number.iter().for_each(|&number| packet.set_anno_u32(anno::AGGREGATE, number));
}

/// The index of the exit, an output or a reason to drop, of a translation.
pub(super) fn exit_index(result: Result<Translation, Refusal>, unmapped: u8) -> u8 {
    match result {
        Ok(Translation::Untouched(output) | Translation::Rewritten { output, .. }) => output,
        Err(Refusal::Unmapped) => unmapped,
        Err(Refusal::Exhausted) => EXHAUSTED,
    }
}
