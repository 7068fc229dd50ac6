//! Translation of plain packets: TCP or UDP without IP options, whole, of a mapping whose state they do
//! not change. Most packets of a rewriter are plain.

use super::mapping::{Mapping, Phase, is_tcp, round_to_ms, state_after};
use super::{RewriterKind, Table, Timeouts, Translation};
use crate::conntrack::{self, Flow, Slot, Tuple4, write_tuple};
use castanet_wire::{Ipv4Header, ip_proto};

/// The translation of the plain packets of one burst, under shared access.
pub struct PlainTranslation<'t> {
    flows: &'t conntrack::Table<Mapping>,
    kind: RewriterKind,
    now: u64,
    /// For TCP and for other protocols, by [`Phase`].
    expiries: [[Expiry; Phase::COUNT]; 2],
}

/// When a mapping expires after a packet now.
#[derive(Clone, Copy)]
struct Expiry {
    until: u64,
    best_effort_ms: u32,
}

impl Expiry {
    /// The expiries of mappings in each phase.
    fn of(timeouts: &Timeouts, now: u64) -> [Expiry; Phase::COUNT] {
        Phase::ALL.map(|phase| {
            let timeout = timeouts.of_phase(phase);
            let until = round_to_ms(now).saturating_add(timeout);
            Expiry { until, best_effort_ms: timeouts.best_effort_ms(timeout) }
        })
    }
}

impl Table {
    /// The translation of a member's plain packets at time `now`; `None` if its keys have no ports, or
    /// if there is no such member.
    pub fn plain_translation(&self, zone: u16, now: u64) -> Option<PlainTranslation<'_>> {
        let config = &self.members.get(usize::from(zone))?.config;
        let expiries = [true, false].map(|is_tcp| Expiry::of(config.timeouts(is_tcp), now));
        (!config.kind.ignores_ports()).then_some(PlainTranslation {
            flows: &self.flows,
            kind: config.kind,
            now,
            expiries,
        })
    }
}

impl PlainTranslation<'_> {
    /// Translates a packet, without link padding, with this key, which is in the member's zone, and this
    /// result of its lookup. `None` if it is not plain: it is as it was, and [`Table::translate_shared`] has the answer.
    #[inline]
    pub fn translate(&self, key: &Tuple4, slot: Slot, datagram: &mut [u8]) -> Option<Translation> {
        let flow = self.flows.flow(slot.entry()?.0);
        let mapping = flow.data();
        if flow.deadline() <= self.now || mapping.is_shifted() {
            return None;
        }
        let (header, segment) = datagram.split_first_chunk_mut()?;
        let ip = Ipv4Header::from_array_mut(header);
        let protocol = key.proto();
        let is_tcp_or_udp = matches!(protocol, ip_proto::TCP | ip_proto::UDP);
        if !is_tcp_or_udp || !ip.is_plain() || ip.is_fragment() {
            return None;
        }
        let back = mapping.is_reply(slot.entry()?.1);
        let to = mapping.target(flow.key(), back);
        self.touch(flow, back, is_tcp(self.kind, protocol), segment)?;
        if !to.equals(key) {
            write_tuple((ip, segment), key, &to)?;
        }
        Some(mapping.translation(self.kind, back, &to))
    }

    /// Postpones the expiry of a packet's mapping; `None` if the packet changes the state of the mapping, or
    /// the mapping would expire earlier.
    #[inline]
    fn touch(&self, flow: Flow<Mapping>, back: bool, is_tcp: bool, segment: &[u8]) -> Option<()> {
        let state = flow.data().state();
        if state_after(state, back, is_tcp, segment) != state {
            return None;
        }
        let expiry = self.expiries[usize::from(!is_tcp)][Phase::of(state, is_tcp) as usize];
        flow.postpone(expiry.until).ok()?;
        flow.data().set_best_effort(expiry.best_effort_ms);
        Some(())
    }
}
