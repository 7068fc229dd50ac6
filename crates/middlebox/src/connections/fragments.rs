//! Fragments, which follow the first of their packet: that has the ports.

use super::key::Ends;
use crate::headers::Headers;
use castanet_kit::flow::{Flow, Flows, Tuple6};

/// How long later fragments find the first, in nanoseconds.
const TIMEOUT: u64 = 30_000_000_000;
/// How many packets are known whose fragments are under way.
const MOST: usize = 16 * 1024;

/// The ports of a packet whose fragments are under way.
#[derive(Default)]
struct Ports((u16, u16));

impl Flow for Ports {
    type Key = Tuple6;
}

/// Packets whose fragments are under way.
#[derive(Default)]
pub(super) struct Fragments(Option<Flows<Ports>>);

impl Fragments {
    /// The ends of a packet, with the ports that its first fragment had; takes note
    /// of those if it is the first.
    pub(super) fn complete(&mut self, ends: Ends, headers: &Headers, now: u64) -> Option<Ends> {
        if !headers.is_fragment {
            return Some(ends);
        }
        let flows = self.0.get_or_insert_with(|| Flows::new(MOST, now));
        let key = key(&ends, headers.fragment_id);
        if headers.is_later_fragment {
            let (id, _) = flows.find(&key)?;
            let (sport, dport) = flows.get(id).0;
            return Some(Ends { src: (ends.src.0, sport), dst: (ends.dst.0, dport), ..ends });
        }
        let ports = (ends.src.1, ends.dst.1);
        match flows.find(&key) {
            Some((id, _)) => flows.keep(id, now + TIMEOUT).0 = ports,
            None => _ = flows.insert(key, Ports(ports), now + TIMEOUT, |_| true),
        }
        Some(ends)
    }

    /// Whether there may be some to forget.
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.0.as_ref().is_some_and(|flows| flows.is_due(now))
    }

    /// Forgets what is over.
    pub(super) fn expire(&mut self, now: u64, most: usize) {
        if let Some(flows) = &mut self.0 {
            flows.expire(now, most, |_, _| ());
        }
    }
}

/// What the fragments of a packet have in common; each family has a zone.
fn key(ends: &Ends, id: u32) -> Tuple6 {
    let halves = ((id >> u16::BITS) as u16, id as u16);
    let whole = Ends { src: (ends.src.0, halves.0), dst: (ends.dst.0, halves.1), ..*ends };
    whole.wide().in_zone(u16::from(ends.is_ip6))
}
