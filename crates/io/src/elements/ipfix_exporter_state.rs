//! The state of an `IPFIXExporter` on one worker: its flows, and its session with the collector.

use super::ipfix_exporter::{IPFIXExporter, IPFIXExporterExit};
use crate::ipfix::{Emit, ExportSession, metrics};
use castanet_element::prelude::*;
use castanet_kit::ipfix::{FlowCache, ObservedPacket, Sampler};
use castanet_packet::anno;
use castanet_wire::headers::frame_payload;
use castanet_wire::ipfix::FLOW_TEMPLATES;
use castanet_wire::{Ethernet, Vlan, ether_type};

/// How often flows that are over are looked for, and what waits is sent.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// Flows that are looked at in one turn of the timer.
const EXPIRE: usize = 256;
/// Maximum number of VLAN tags before an IP header.
const MOST_TAGS: usize = 8;

/// The flows that one worker meters, and its session.
#[derive(Default, Local)]
#[local(methods)]
pub struct IPFIXExporterState {
    cache: FlowCache,
    #[flatten]
    session: ExportSession,
    sampler: Sampler,
    /// Whether a handler has asked that all flows end.
    is_flushing: bool,
    /// Packets without an IP header, which belong to no flow.
    #[read]
    #[metric(metrics::IGNORED)]
    ignored: u64,
}

#[handlers]
impl IPFIXExporterState {
    /// Flows at present.
    #[read]
    #[metric(metrics::FLOWS)]
    fn flows(&self) -> usize {
        self.cache.len()
    }

    /// Flows that ended because CAPACITY left no room; their records were sent, too.
    #[read]
    #[metric(metrics::EVICTED)]
    fn evicted(&self) -> u64 {
        self.cache.evicted()
    }

    /// Ends all flows, and sends their records.
    #[write(flush, wakes)]
    fn flush(&mut self, _: &str) -> Result<(), ArgError> {
        self.is_flushing = true;
        Ok(())
    }
}

impl IPFIXExporterState {
    pub(super) fn configure(&mut self, element: &IPFIXExporter) {
        let (limits, ingress) = element.limits();
        self.cache.configure(limits, ingress);
        self.session.configure(element.exporter_settings(0));
    }

    pub(super) fn open(&mut self, element: &IPFIXExporter, cx: &mut Cx) -> Result<(), ArgError> {
        self.sampler = Sampler::new(cx.random());
        let settings = element.exporter_settings(cx.worker());
        let opened = ExportSession::open(element.args().collector, settings, FLOW_TEMPLATES);
        self.session = opened.map_err(|error| error.at("COLLECTOR"))?;
        Ok(())
    }

    /// Counts the packets of a burst in their flows, and exports flows that end.
    pub(super) fn meter(&mut self, element: &IPFIXExporter, batch: &Batch, cx: &mut Cx) {
        let IPFIXExporterState { cache, session, sampler, ignored, .. } = self;
        let (now, interval, before) = (cx.now().nanos(), element.args().sampling, *ignored);
        session.export(cx, element.emit(), |exporter, transport| {
            if cache.is_due(now) {
                let ended = &mut |record: &_| exporter.add(record, now, transport);
                cache.expire(now, 2 * batch.len(), ended);
            }
            for packet in batch.iter() {
                if !sampler.takes_next(interval) {
                    continue;
                }
                match observe(packet) {
                    Some(observed) => {
                        let ended = &mut |record: &_| exporter.add(record, now, transport);
                        cache.count(&observed, now, ended);
                    }
                    None => *ignored += 1,
                }
            }
            exporter.count_ignored(*ignored - before);
        });
    }

    /// Ends flows that are over and sends what waits; the time until the next call.
    pub(super) fn tick(&mut self, element: &IPFIXExporter, cx: &mut Cx) -> Duration {
        if std::mem::take(&mut self.is_flushing) {
            self.end_all(element, cx);
            return TICK;
        }
        let IPFIXExporterState { cache, session, .. } = self;
        let (now, mut is_done) = (cx.now().nanos(), true);
        session.export(cx, element.emit(), |exporter, transport| {
            is_done = cache.expire(now, EXPIRE, &mut |record| exporter.add(record, now, transport));
            if is_done {
                exporter.keep_alive(now, transport);
            }
        });
        if is_done { TICK } else { Duration::from_nanos(1) }
    }

    /// Ends all flows by force, and sends their records.
    pub(super) fn end_all(&mut self, element: &IPFIXExporter, cx: &mut Cx) {
        let IPFIXExporterState { cache, session, .. } = self;
        let now = cx.now().nanos();
        session.export(cx, element.emit(), |exporter, transport| {
            cache.clear(&mut |record| exporter.add(record, now, transport));
            exporter.flush(now, transport);
        });
    }
}

impl IPFIXExporter {
    /// The way of messages to output 1, if that is connected.
    fn emit(&self) -> Option<Emit> {
        self.has_output.then_some(|cx, message| {
            let packet = cx.copy_in(message);
            packet.map(|packet| cx.emit(IPFIXExporterExit::Message, packet)).is_some()
        })
    }
}

/// The packet as its flow counts it; `None` without an IP header.
#[inline]
fn observe(packet: &Packet) -> Option<ObservedPacket> {
    let bytes = packet.bytes();
    let cut = packet.anno_u32(anno::EXTRA_LENGTH) as usize;
    match packet.network_offset() {
        Some(network) => {
            let network = usize::try_from(network).ok()?;
            let tagged = || outer_vlan(bytes).filter(|(_, _, at)| *at == network);
            let annotated = packet.anno_u16(anno::VLAN_TCI) & Vlan::ID_MASK;
            let vlan = tagged().map_or(annotated, |(vlan, ..)| vlan);
            ObservedPacket::of(bytes, network, cut, vlan)
        }
        None => {
            let (vlan, kind, network) = outer_vlan(bytes)?;
            let is_ip = matches!(kind, ether_type::IPV4 | ether_type::IPV6);
            is_ip.then(|| ObservedPacket::of(bytes, network, cut, vlan))?
        }
    }
}

/// The VLAN of the first tag of an Ethernet frame, 0 without one; the EtherType and the offset of the
/// payload.
#[inline]
fn outer_vlan(bytes: &[u8]) -> Option<(u16, u16, usize)> {
    let (kind, payload) = frame_payload(bytes, MOST_TAGS)?;
    let tag = bytes.get(Ethernet::LEN..).and_then(Vlan::from_prefix);
    let vlan = tag.filter(|_| payload > Ethernet::LEN).map_or(0, |(tag, _)| tag.id());
    Some((vlan, kind, payload))
}
