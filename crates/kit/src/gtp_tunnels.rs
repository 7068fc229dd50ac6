//! Which tunnel leads back: what a `GTPTable` learns of tunnels by pings through them.
//!
//! There is no clock here: callers say what time it is, in nanoseconds.

use castanet_wire::gtp_tunnel::{Flow, Ping, Tunnel};
use rapidhash::RapidHashMap;
use std::hash::Hash;

/// Strangers choose what there is to remember, so it has a limit.
const MOST: usize = 1 << 20;
/// How long what was not seen any more is remembered if there is no room.
const STALE: u64 = 300_000_000_000;
/// How long to wait for the answer to a ping before the next.
const PATIENCE: u64 = 1_000_000_000;

/// What is known of a tunnel.
#[derive(Debug)]
struct Known {
    /// The tunnel that leads back.
    back: Option<Tunnel>,
    /// The ping on its way, and when it was sent.
    asked: Option<(Ping, u64)>,
    seen: u64,
}

/// What a packet on its way back finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The tunnel to send it by.
    By(Tunnel),
    /// No ping has come back yet.
    Unresolved,
    /// Nobody has sent anything that it could be an answer to.
    Unknown,
}

/// Tunnels, the flows in them, and pings on their way.
#[derive(Debug, Default)]
pub struct Tunnels {
    tunnels: RapidHashMap<Tunnel, Known>,
    /// By flow of the answers: the tunnel that packets came by, and when.
    flows: RapidHashMap<Flow, (Tunnel, u64)>,
    pings: RapidHashMap<Ping, Tunnel>,
}

impl Tunnels {
    /// Notes a packet that came by a tunnel; whether to ask by a ping what leads back.
    pub fn came(&mut self, tunnel: Tunnel, flow: Option<Flow>, now: u64) -> bool {
        if let Some(flow) = flow {
            make_room(&mut self.flows, |seen| seen.1, now);
            self.flows.insert(flow.reversed(), (tunnel, now));
        }
        if self.tunnels.len() >= MOST {
            let pings = &mut self.pings;
            make_room(&mut self.tunnels, |known| known.seen, now);
            pings.retain(|_, tunnel| self.tunnels.contains_key(tunnel));
        }
        let new = || Known { back: None, asked: None, seen: now };
        let known = self.tunnels.entry(tunnel).or_insert_with(new);
        known.seen = now;
        let waits = known.asked.is_some_and(|(_, at)| now.saturating_sub(at) < PATIENCE);
        known.back.is_none() && !waits
    }

    /// Notes that a ping was sent by a tunnel, in place of the one before.
    pub fn asked(&mut self, tunnel: Tunnel, ping: Ping, now: u64) {
        let Some(known) = self.tunnels.get_mut(&tunnel) else { return };
        if let Some((before, _)) = known.asked.replace((ping, now)) {
            self.pings.remove(&before);
        }
        self.pings.insert(ping, tunnel);
    }

    /// Notes that the answer to a ping came by `back`; false if nobody has asked.
    pub fn answered(&mut self, ping: Ping, back: Tunnel) -> bool {
        let Some(tunnel) = self.pings.remove(&ping) else { return false };
        if let Some(known) = self.tunnels.get_mut(&tunnel) {
            (known.back, known.asked) = (Some(back), None);
        }
        true
    }

    /// By which tunnel a packet of this flow goes back.
    pub fn way(&self, flow: Flow) -> Way {
        let Some((tunnel, _)) = self.flows.get(&flow) else { return Way::Unknown };
        let known = self.tunnels.get(tunnel);
        known.and_then(|known| known.back).map_or(Way::Unresolved, Way::By)
    }

    /// How many tunnels are known, and of how many what leads back.
    pub fn count(&self) -> (usize, usize) {
        let resolved = self.tunnels.values().filter(|known| known.back.is_some());
        (self.tunnels.len(), resolved.count())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Tunnels::default();
    }
}

/// Forgets what was not seen for long if there is no room for one more; everything, if that is
/// not enough.
fn make_room<K: Hash + Eq, V>(map: &mut RapidHashMap<K, V>, seen: impl Fn(&V) -> u64, now: u64) {
    if map.len() < MOST {
        return;
    }
    map.retain(|_, value| now.saturating_sub(seen(value)) < STALE);
    if map.len() >= MOST {
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
    fn a_ping_tells_which_tunnel_leads_back() {
        let mut it = Tunnels::default();
        assert_eq!(it.way(flow(5).reversed()), Way::Unknown);
        assert!(it.came(tunnel(7), Some(flow(5)), 0));
        it.asked(tunnel(7), ping(1), 0);
        assert!(!it.came(tunnel(7), Some(flow(6)), PATIENCE - 1), "one at a time");
        assert_eq!(it.way(flow(5).reversed()), Way::Unresolved);
        assert!(it.came(tunnel(7), None, PATIENCE), "no answer");
        it.asked(tunnel(7), ping(2), PATIENCE);
        assert!(!it.answered(ping(1), tunnel(9)), "too late");
        assert!(it.answered(ping(2), tunnel(9)));
        assert!(!it.answered(ping(2), tunnel(9)), "once");
        for port in [5, 6] {
            assert_eq!(it.way(flow(port).reversed()), Way::By(tunnel(9)));
        }
        assert!(!it.came(tunnel(7), None, 10 * PATIENCE), "known");
        assert_eq!((it.count(), it.way(flow(5))), ((1, 1), Way::Unknown));
        it.clear();
        assert_eq!(it.count(), (0, 0));
    }

    #[test]
    fn strangers_cannot_fill_the_memory() {
        let mut map: RapidHashMap<usize, u64> = (0..MOST).map(|i| (i, i as u64 % 2)).collect();
        make_room(&mut map, |seen| *seen, STALE);
        assert_eq!(map.len(), MOST / 2, "what was seen first goes");
        map = (0..MOST).map(|i| (i, 1)).collect();
        make_room(&mut map, |seen| *seen, 1);
        assert!(map.is_empty());
    }
}
