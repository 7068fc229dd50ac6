//! What rewriters do with a burst.

use super::rewriting::{EXHAUSTED, NOT_REWRITTEN, Rewriter, UNMAPPED};
use castanet_engine::prelude::*;
use castanet_kit::flow::{ExclusiveAccess, Slot, Tuple4};
use castanet_kit::nat::{PacketInfo, Refusal, RewriterKind, Table, Translation};

/// A burst's turn.
pub(super) struct Turn<'r> {
    pub(super) rewriter: &'r Rewriter,
    pub(super) zone: u16,
    pub(super) port: usize,
    pub(super) now: u64,
}

impl Turn<'_> {
    /// The packets for which nothing is to be changed but what many may change.
    pub(super) fn early(&self, burst: &mut Burst, batch: &mut Batch, table: &Table) {
        burst.look_up(self.rewriter.rules.kind, self.zone, batch, table);
        let Burst { begins, fates, late, .. } = burst;
        fates.clear();
        late.clear();
        for (n, packet) in batch.iter_mut().enumerate() {
            let Some(begins) = begins[n] else {
                fates.push(fate(table.translate_unmapped(self.zone, self.port), NOT_REWRITTEN));
                continue;
            };
            let found = burst.found[n];
            // What has no mapping may have got one by those who wait.
            let waits = !late.is_empty() && found == Slot::NONE;
            let arrival = self.arrival(burst.keys[n], begins, found, packet);
            let datagram = packet.ipv4().filter(|_| !waits);
            let passed = datagram
                .map(|mut ip| table.translate_shared(self.zone, arrival, ip.datagram_mut()));
            match passed {
                Some(Ok(passed)) => {
                    self.rewriter.tell(packet, &passed);
                    fates.push(fate(passed, UNMAPPED));
                }
                Some(Err(ExclusiveAccess)) | None => {
                    late.push(n);
                    fates.push(NOT_REWRITTEN);
                }
            }
        }
    }

    /// The others.
    pub(super) fn late(
        &self,
        burst: &mut Burst,
        batch: &mut Batch,
        table: &mut Table,
        cx: &mut Cx,
    ) {
        let Burst { keys, begins, fates, late, .. } = burst;
        let mut waiting = late.iter().copied().peekable();
        for (n, packet) in batch.iter_mut().enumerate() {
            if waiting.next_if_eq(&n).is_none() {
                continue;
            }
            let arrival =
                self.arrival(keys[n], begins[n] == Some(true), table.find_one(&keys[n]), packet);
            let Some(mut ip) = packet.ipv4() else { continue };
            let passed =
                table.translate(self.zone, arrival, ip.datagram_mut(), &mut || cx.random());
            self.rewriter.tell(packet, &passed);
            fates[n] = fate(passed, UNMAPPED);
        }
    }

    #[inline]
    fn arrival(&self, key: Tuple4, begins: bool, found: Slot, packet: &Packet) -> PacketInfo {
        let anno = self.rewriter.anno(packet);
        PacketInfo { input: self.port, key, may_open: begins, slot: found, anno, now: self.now }
    }
}

/// What is found out about a burst before any packet is rewritten.
#[derive(Default)]
pub(super) struct Burst {
    keys: Vec<Tuple4>,
    /// Whether each may begin a flow; `None` for those that are not rewritten.
    begins: Vec<Option<bool>>,
    found: Vec<Slot>,
    /// Those that wait until mappings may be changed.
    pub(super) late: Vec<usize>,
    pub(super) fates: Vec<u8>,
}

impl Burst {
    fn look_up(&mut self, by: RewriterKind, zone: u16, batch: &mut Batch, table: &Table) {
        self.keys.clear();
        self.begins.clear();
        for packet in batch.iter_mut() {
            let key = packet.ipv4().and_then(|ip| by.key(&ip, ip.payload()));
            self.keys.push(key.map_or_else(Tuple4::default, |(key, _)| key.in_zone(zone)));
            self.begins.push(key.map(|(_, begins)| begins));
        }
        self.found.clear();
        self.found.resize(self.keys.len(), Slot::NONE);
        table.find_all(&self.keys, &mut self.found);
    }
}

pub(super) fn fate(passed: Result<Translation, Refusal>, unmapped: u8) -> u8 {
    match passed {
        Ok(Translation::Untouched(output) | Translation::Rewritten { output, .. }) => output,
        Err(Refusal::Unmapped) => unmapped,
        Err(Refusal::Exhausted) => EXHAUSTED,
    }
}
