//! The flows that `AggregateIPFlows` knows, and the packets that wait for a first fragment.

use super::flow_trace::Trace;
use castanet_engine::prelude::*;
use castanet_engine::wire::{Ipv4Header, Tcp, ip_proto};
use castanet_kit::icmp_error::is_error;
use castanet_kit::ip_flows::{EndedFlow, Endpoint, Flows, TcpFlags, Timeouts};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The most packets that wait, and the most datagrams whose ports are remembered.
const MOST: usize = 1 << 16;

/// Two hosts, the lesser first.
pub(super) type Pair = (Ipv4Addr, Ipv4Addr);
/// A datagram in pieces: from, to, protocol, identification.
type Pieces = (Ipv4Addr, Ipv4Addr, u8, u16);
/// A flow's number and a packet's paint.
type Marked = Option<(u32, u8)>;

/// What becomes of a packet.
pub(super) enum Verdict {
    /// It goes on, with its flow or none.
    Known(Packet, Marked),
    /// It is to wait with others between these hosts.
    Waits(Packet, Pair),
}

/// A packet that waits.
struct Waiting {
    packet: Packet,
    /// The packet's own time.
    since: u64,
    /// When it came here.
    came: Time,
}

/// Flows, and packets that wait.
#[derive(Default, Local)]
#[local(methods)]
pub struct Held {
    flows: Flows,
    settings: Option<(bool, bool, bool, Timeouts)>,
    waiting: BTreeMap<Pair, VecDeque<Waiting>>,
    /// When the first packet came that waits between two hosts, in order.
    heads: BTreeSet<(Time, Pair)>,
    /// How many packets wait.
    len: usize,
    /// Whether a handler says that all that wait are to go.
    pub(super) clearing: bool,
    /// The ports of datagrams whose first piece was seen.
    ports: HashMap<Pieces, (u16, u16)>,
    /// Those datagrams, in the order in which they came.
    order: VecDeque<Pieces>,
    /// When to look for flows that are over.
    due: u64,
    pub(super) trace: Trace,
}

#[handlers]
impl Held {
    /// Flows that are alive.
    #[read]
    fn count(&self) -> usize {
        self.flows.len()
    }
    /// Flows that were over because there was no room for them.
    #[read]
    fn displaced(&self) -> u64 {
        self.flows.evicted()
    }
    /// Packets that wait for a first fragment.
    #[read]
    fn length(&self) -> usize {
        self.len
    }
    /// Lets go of packets that wait, and forgets all flows.
    #[write(clear, wakes)]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.clearing = true;
        Ok(())
    }
}

fn pair(ip: &Ipv4Header) -> Pair {
    (ip.src().min(ip.dst()), ip.src().max(ip.dst()))
}

fn pieces(ip: &Ipv4Header) -> Pieces {
    (ip.src(), ip.dst(), ip.protocol(), ip.id())
}

/// The ports that TCP or UDP begins with; `None` if there are none.
fn ports(protocol: u8, bytes: &[u8]) -> Option<(u16, u16)> {
    let has = matches!(protocol, ip_proto::TCP | ip_proto::UDP);
    castanet_engine::wire::udp::ports(bytes).filter(|_| has)
}

impl Held {
    /// Takes over what the configuration says.
    pub(super) fn set(&mut self, settings: (bool, bool, bool, Timeouts), capacity: u32) {
        self.settings = Some(settings);
        self.flows.set_capacity(capacity as usize);
    }

    /// Whether many flows are over of which nobody knows yet.
    pub(super) fn are_many_over(&self) -> bool {
        self.flows.has_many_ended()
    }

    /// Forgets flows that are over, if it is time to; whether it was.
    pub(super) fn reap_if_due(&mut self, now: u64, every: u64) -> bool {
        if self.due == 0 {
            self.due = now.saturating_add(every);
        }
        if now < self.due {
            return false;
        }
        self.due = now.saturating_add(every);
        if let Some((_, _, _, timeouts)) = &self.settings {
            self.flows.expire(now, timeouts);
        }
        true
    }

    /// The flows that have ended.
    pub(super) fn over(&mut self) -> Vec<EndedFlow> {
        self.flows.take_ended()
    }

    /// Forgets all flows.
    pub(super) fn forget(&mut self) {
        self.flows.clear();
        self.ports.clear();
        self.order.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Remembers the ports of a datagram, in the place of the oldest if there are too many.
    fn remember(&mut self, datagram: Pieces, ports: (u16, u16)) {
        if self.ports.insert(datagram, ports).is_none() {
            self.order.push_back(datagram);
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.ports.remove(&oldest);
        }
    }

    /// Decides about a packet, which may have to wait.
    pub(super) fn take_in(&mut self, mut packet: Packet, now: u64) -> Verdict {
        let Some(view) = packet.ipv4() else { return Verdict::Known(packet, None) };
        let (ip, first) = (*view, view.is_first_fragment());
        if let Some((sport, dport)) = ports(ip.protocol(), view.payload())
            && ip.is_fragment()
            && first
        {
            self.remember(pieces(&ip), (sport, dport));
        }
        let pair = pair(&ip);
        let waits = self.settings.is_some_and(|settings| settings.2);
        let queue = self.waiting.get(&pair).is_some_and(|queue| !queue.is_empty());
        if waits && (queue || !first && !self.ports.contains_key(&pieces(&ip))) {
            return Verdict::Waits(packet, pair);
        }
        let flow = self.mark(&mut packet, now);
        Verdict::Known(packet, flow)
    }

    /// Lets a packet wait, whose own time is `since`.
    pub(super) fn wait(&mut self, packet: Packet, pair: Pair, since: u64, came: Time) {
        let queue = self.waiting.entry(pair).or_default();
        if queue.is_empty() {
            self.heads.insert((came, pair));
        }
        queue.push_back(Waiting { packet, since, came });
        self.len += 1;
    }

    /// The packet that came first of those that wait, once it has waited for long enough, or too
    /// many do.
    pub(super) fn late(&mut self, now: Time, timeout: Duration) -> Option<(Packet, Marked)> {
        let &(came, pair) = self.heads.first()?;
        let late = came + timeout <= now || self.len > MOST;
        late.then(|| self.any_of(pair)).flatten()
    }

    /// When the first packet will have waited for long enough.
    pub(super) fn next_late(&self, timeout: Duration) -> Option<Time> {
        self.heads.first().map(|&(came, _)| came + timeout)
    }

    /// The next packet between two hosts that need not wait any longer.
    pub(super) fn next(&mut self, pair: Pair, now: u64, timeout: u64) -> Option<(Packet, Marked)> {
        let first = self.waiting.get_mut(&pair)?.front_mut()?;
        let ip = first.packet.ipv4().map(|ip| *ip)?;
        let known = ip.is_first_fragment() || self.ports.contains_key(&pieces(&ip));
        if !known && now.saturating_sub(first.since) <= timeout {
            return None;
        }
        self.any_of(pair)
    }

    /// Any packet that waits.
    pub(super) fn any(&mut self) -> Option<(Packet, Marked)> {
        let pair = *self.waiting.keys().next()?;
        self.any_of(pair)
    }

    fn any_of(&mut self, pair: Pair) -> Option<(Packet, Marked)> {
        let queue = self.waiting.get_mut(&pair)?;
        let Waiting { mut packet, since, came } = queue.pop_front()?;
        self.len -= 1;
        self.heads.remove(&(came, pair));
        match queue.front() {
            Some(next) => _ = self.heads.insert((next.came, pair)),
            None => _ = self.waiting.remove(&pair),
        }
        let flow = self.mark(&mut packet, since);
        Some((packet, flow))
    }

    /// The flow of a packet, which it may begin.
    fn mark(&mut self, packet: &mut Packet, now: u64) -> Marked {
        let (symmetric, icmp, waits, timeouts) = self.settings?;
        let view = packet.ipv4()?;
        let (ip, body) = (*view, view.payload());
        if icmp && ip.protocol() == ip_proto::ICMP {
            return self.about(&ip, body, symmetric);
        }
        let found = match ip.is_first_fragment() {
            true => ports(ip.protocol(), body),
            false if waits => self.ports.get(&pieces(&ip)).copied(),
            false => None,
        };
        let (sport, dport) = found?;
        let tcp = Tcp::from_prefix(body).map(|(tcp, _)| tcp);
        let tcp = tcp.filter(|_| ip.protocol() == ip_proto::TCP && ip.is_first_fragment());
        let marks = tcp.map_or(TcpFlags::default(), |tcp| TcpFlags {
            syn: tcp.is_syn() && !tcp.is_ack(),
            fin: tcp.is_fin(),
            rst: tcp.is_rst(),
        });
        let ends: (Endpoint, Endpoint) = ((ip.src(), sport), (ip.dst(), dport));
        let (number, back) =
            self.flows.number(ip.protocol(), ends, symmetric, marks, now, &timeouts);
        Some((number, u8::from(back)))
    }

    /// The flow that an ICMP error is about.
    fn about(&self, ip: &Ipv4Header, body: &[u8], symmetric: bool) -> Marked {
        const OF_ERRORS: u8 = 2;
        let (icmp, inner) = castanet_engine::wire::Icmp::from_prefix(body)?;
        if !is_error(icmp.kind()) || !ip.is_first_fragment() {
            return None;
        }
        let (inner, rest) = Ipv4Header::from_prefix(inner)?;
        let options = inner.header_len().saturating_sub(Ipv4Header::LEN);
        let (sport, dport) = ports(inner.protocol(), rest.get(options..)?)?;
        let ends = ((inner.src(), sport), (inner.dst(), dport));
        let (number, back) = self.flows.find(inner.protocol(), ends, symmetric)?;
        Some((number, OF_ERRORS + u8::from(back)))
    }
}
