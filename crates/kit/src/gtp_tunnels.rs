//! The tunnel map of `GTPTable`: finds the return tunnel of each tunnel by pings through it.
//!
//! There is no clock: callers pass the time in nanoseconds.

use castanet_wire::gtp_tunnel::{Flow, Ping, Tunnel};
use rapidhash::RapidHashMap;
use std::hash::Hash;

/// Remote hosts choose the entries, so their number is limited.
const MAX_ENTRIES: usize = 1 << 20;
/// Entries that were idle for this long are removed if there is no room.
const STALE_AFTER: u64 = 300_000_000_000;
/// How long to wait for the reply to a ping before the next one.
const PING_TIMEOUT: u64 = 1_000_000_000;

/// The state of a tunnel.
#[derive(Debug)]
struct TunnelState {
    /// The return tunnel, once it is known.
    back: Option<Tunnel>,
    /// The pending ping and its time.
    pending: Option<(Ping, u64)>,
    last_seen: u64,
}

/// The result of a lookup for a packet in the return direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnPath {
    /// The tunnel to send the packet by.
    Via(Tunnel),
    /// No ping has come back yet.
    Unresolved,
    /// No packet of the forward direction has been seen.
    Unknown,
}

/// Tunnels, the flows in them, and pending pings.
#[derive(Debug, Default)]
pub struct Tunnels {
    tunnels: RapidHashMap<Tunnel, TunnelState>,
    /// By flow of the return direction: the forward tunnel and the time of its last packet.
    flows: RapidHashMap<Flow, (Tunnel, u64)>,
    pings: RapidHashMap<Ping, Tunnel>,
}

impl Tunnels {
    /// Records a packet that came by a tunnel; whether to send a ping to find the return tunnel.
    pub fn record_packet(&mut self, tunnel: Tunnel, flow: Option<Flow>, now: u64) -> bool {
        if let Some(flow) = flow {
            make_room(&mut self.flows, |entry| entry.1, now);
            self.flows.insert(flow.reversed(), (tunnel, now));
        }
        if self.tunnels.len() >= MAX_ENTRIES {
            let pings = &mut self.pings;
            make_room(&mut self.tunnels, |known| known.last_seen, now);
            pings.retain(|_, tunnel| self.tunnels.contains_key(tunnel));
        }
        let new = || TunnelState { back: None, pending: None, last_seen: now };
        let known = self.tunnels.entry(tunnel).or_insert_with(new);
        known.last_seen = now;
        let waits = known.pending.is_some_and(|(_, at)| now.saturating_sub(at) < PING_TIMEOUT);
        known.back.is_none() && !waits
    }

    /// Records a ping that was sent by a tunnel; it replaces the previous one.
    pub fn record_ping(&mut self, tunnel: Tunnel, ping: Ping, now: u64) {
        let Some(known) = self.tunnels.get_mut(&tunnel) else { return };
        if let Some((before, _)) = known.pending.replace((ping, now)) {
            self.pings.remove(&before);
        }
        self.pings.insert(ping, tunnel);
    }

    /// Records the reply to a ping, which came by `back`; false if no ping is pending.
    pub fn record_reply(&mut self, ping: Ping, back: Tunnel) -> bool {
        let Some(tunnel) = self.pings.remove(&ping) else { return false };
        if let Some(known) = self.tunnels.get_mut(&tunnel) {
            (known.back, known.pending) = (Some(back), None);
        }
        true
    }

    /// The return tunnel for a packet of this flow.
    pub fn return_path(&self, flow: Flow) -> ReturnPath {
        let Some((tunnel, _)) = self.flows.get(&flow) else { return ReturnPath::Unknown };
        let known = self.tunnels.get(tunnel);
        known.and_then(|known| known.back).map_or(ReturnPath::Unresolved, ReturnPath::Via)
    }

    /// How many tunnels are known, and for how many the return tunnel is known.
    pub fn count(&self) -> (usize, usize) {
        let resolved = self.tunnels.values().filter(|known| known.back.is_some());
        (self.tunnels.len(), resolved.count())
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        *self = Tunnels::default();
    }
}

/// Removes entries that were idle for long if there is no room for one more; all entries if that is
/// not enough.
fn make_room<K: Hash + Eq, V>(
    map: &mut RapidHashMap<K, V>,
    last_seen: impl Fn(&V) -> u64,
    now: u64,
) {
    if map.len() < MAX_ENTRIES {
        return;
    }
    map.retain(|_, value| now.saturating_sub(last_seen(value)) < STALE_AFTER);
    if map.len() >= MAX_ENTRIES {
        map.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn tunnel(teid: u32) -> Tunnel {
        Tunnel { src: (Ipv4Addr::LOCALHOST, 1), dst: (Ipv4Addr::LOCALHOST, 2), teid }
    }

    fn flow(port: u16) -> Flow {
        let end = |port| (Ipv4Addr::LOCALHOST, port);
        Flow { protocol: 6, src: end(port), dst: end(80) }
    }

    fn ping(seq: u16) -> Ping {
        Ping { src: Ipv4Addr::LOCALHOST, dst: Ipv4Addr::BROADCAST, id: 1, seq }
    }

    #[test]
    fn a_ping_finds_the_return_tunnel() {
        let mut it = Tunnels::default();
        assert_eq!(it.return_path(flow(5).reversed()), ReturnPath::Unknown);
        assert!(it.record_packet(tunnel(7), Some(flow(5)), 0));
        it.record_ping(tunnel(7), ping(1), 0);
        assert!(!it.record_packet(tunnel(7), Some(flow(6)), PING_TIMEOUT - 1), "one at a time");
        assert_eq!(it.return_path(flow(5).reversed()), ReturnPath::Unresolved);
        assert!(it.record_packet(tunnel(7), None, PING_TIMEOUT), "no answer");
        it.record_ping(tunnel(7), ping(2), PING_TIMEOUT);
        assert!(!it.record_reply(ping(1), tunnel(9)), "too late");
        assert!(it.record_reply(ping(2), tunnel(9)));
        assert!(!it.record_reply(ping(2), tunnel(9)), "once");
        for port in [5, 6] {
            assert_eq!(it.return_path(flow(port).reversed()), ReturnPath::Via(tunnel(9)));
        }
        assert!(!it.record_packet(tunnel(7), None, 10 * PING_TIMEOUT), "known");
        assert_eq!((it.count(), it.return_path(flow(5))), ((1, 1), ReturnPath::Unknown));
        it.clear();
        assert_eq!(it.count(), (0, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut map: RapidHashMap<usize, u64> =
            (0..MAX_ENTRIES).map(|i| (i, i as u64 % 2)).collect();
        make_room(&mut map, |seen| *seen, STALE_AFTER);
        assert_eq!(map.len(), MAX_ENTRIES / 2, "what was seen first goes");
        map = (0..MAX_ENTRIES).map(|i| (i, 1)).collect();
        make_room(&mut map, |seen| *seen, 1);
        assert!(map.is_empty());
    }
}
