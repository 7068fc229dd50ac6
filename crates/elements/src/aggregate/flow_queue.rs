//! State of `AggregateIPFlows`: flows, and packets that wait for a first fragment.

use super::flow_trace::FlowTrace;
use castanet_element::prelude::*;
use castanet_element::wire::{Ipv4Header, Tcp, ip_proto};
use castanet_kit::ip_flows::{EndedFlow, Endpoint, Flows, TcpFlags, Timeouts};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The most packets in the queues, and the most datagrams whose ports are stored.
const MAX_QUEUED: usize = 1 << 16;

/// Two hosts, the smaller address first.
pub(super) type HostPair = (Ipv4Addr, Ipv4Addr);
/// The key of a fragmented datagram: source, destination, protocol, identification.
type DatagramKey = (Ipv4Addr, Ipv4Addr, u8, u16);
/// A flow's number and a packet's paint; `None` for packets of no flow.
type FlowMark = Option<(u32, u8)>;

/// The verdict about a packet.
pub(super) enum Verdict {
    /// The packet leaves with this mark.
    Emit(Packet, FlowMark),
    /// The packet must be queued behind others between these hosts.
    Queue(Packet, HostPair),
}

/// A queued packet.
struct QueueEntry {
    packet: Packet,
    /// The packet's time stamp, in nanoseconds.
    time: u64,
    /// The time at which the element got it.
    arrival: Time,
}

/// The flows, and the queues of packets.
#[derive(Default, Local)]
#[local(methods)]
pub struct AggregateIPFlowsState {
    flows: Flows,
    config: Option<(bool, bool, bool, Timeouts)>,
    queues: BTreeMap<HostPair, VecDeque<QueueEntry>>,
    /// Arrival of the first packet of each queue, in order.
    heads: BTreeSet<(Time, HostPair)>,
    /// Number of queued packets.
    len: usize,
    /// Whether the handler `clear` has asked for the release of all packets.
    pub(super) clearing: bool,
    /// The ports of datagrams whose first fragment has come.
    ports: HashMap<DatagramKey, (u16, u16)>,
    /// These datagrams, oldest first.
    order: VecDeque<DatagramKey>,
    /// The time stamp at which flows are next checked for their timeouts.
    due: u64,
    pub(super) trace: FlowTrace,
    /// The fates of a burst's packets, while they are decided.
    pub(super) fates: Vec<u8>,
}

#[handlers]
impl AggregateIPFlowsState {
    /// Number of flows that have not ended.
    #[read]
    fn count(&self) -> usize {
        self.flows.len()
    }
    /// Number of flows that ended because CAPACITY was reached.
    #[read]
    fn displaced(&self) -> u64 {
        self.flows.evicted()
    }
    /// Number of packets that wait for a first fragment.
    #[read]
    fn length(&self) -> usize {
        self.len
    }
    /// Releases the packets that wait, and removes all flows.
    #[write(clear, wakes)]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.clearing = true;
        Ok(())
    }
}

fn host_pair(ip: &Ipv4Header) -> HostPair {
    (ip.src().min(ip.dst()), ip.src().max(ip.dst()))
}

fn datagram_key(ip: &Ipv4Header) -> DatagramKey {
    (ip.src(), ip.dst(), ip.protocol(), ip.id())
}

/// The ports in the header of TCP or UDP; `None` if there are none.
fn ports(protocol: u8, bytes: &[u8]) -> Option<(u16, u16)> {
    let has = matches!(protocol, ip_proto::TCP | ip_proto::UDP);
    castanet_element::wire::udp::ports(bytes).filter(|_| has)
}

impl AggregateIPFlowsState {
    /// Sets the arguments of the configuration.
    pub(super) fn configure(&mut self, config: (bool, bool, bool, Timeouts), capacity: u32) {
        self.config = Some(config);
        self.flows.set_capacity(capacity as usize);
    }

    /// Whether many flows have ended that are not reported yet.
    pub(super) fn has_many_ended(&self) -> bool {
        self.flows.has_many_ended()
    }

    /// Ends flows that have timed out, if a check is due; returns whether it was.
    pub(super) fn reap_if_due(&mut self, now: u64, every: u64) -> bool {
        if self.due == 0 {
            self.due = now.saturating_add(every);
        }
        if now < self.due {
            return false;
        }
        self.due = now.saturating_add(every);
        if let Some((_, _, _, timeouts)) = &self.config {
            self.flows.expire(now, timeouts);
        }
        true
    }

    /// Takes the flows that have ended since the last call.
    pub(super) fn take_ended(&mut self) -> Vec<EndedFlow> {
        self.flows.take_ended()
    }

    /// Removes all flows.
    pub(super) fn forget(&mut self) {
        self.flows.clear();
        self.ports.clear();
        self.order.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Stores the ports of a datagram, in place of the oldest one if there are too many.
    fn store_ports(&mut self, datagram: DatagramKey, ports: (u16, u16)) {
        if self.ports.insert(datagram, ports).is_none() {
            self.order.push_back(datagram);
        }
        if self.order.len() > MAX_QUEUED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ports.remove(&oldest);
        }
    }

    /// Decides whether a packet leaves or must be queued; `now` is its time stamp.
    pub(super) fn classify(&mut self, mut packet: Packet, now: u64) -> Verdict {
        let Some(view) = packet.ipv4() else { return Verdict::Emit(packet, None) };
        let (ip, body, first) = (*view, view.payload(), view.is_first_fragment());
        if ip.is_fragment()
            && first
            && let Some(ports) = ports(ip.protocol(), body)
        {
            self.store_ports(datagram_key(&ip), ports);
        }
        // Most packets are whole, and nothing waits: they need no look at the queues.
        let waits = self.config.is_some_and(|config| config.2);
        if waits && (!first || !self.queues.is_empty()) {
            let pair = host_pair(&ip);
            let queue = self.queues.get(&pair).is_some_and(|queue| !queue.is_empty());
            if queue || !first && !self.ports.contains_key(&datagram_key(&ip)) {
                return Verdict::Queue(packet, pair);
            }
        }
        let flow = self.mark(&ip, body, now);
        Verdict::Emit(packet, flow)
    }

    /// Whether a packet is no fragment and need not wait behind one.
    #[inline]
    pub(super) fn is_whole(&self, packet: &Packet) -> bool {
        self.queues.is_empty() && packet.ipv4_header().is_some_and(|ip| !ip.is_fragment())
    }

    /// The flow of a packet for which [`is_whole`](Self::is_whole) is true.
    #[inline]
    pub(super) fn mark_whole(&mut self, packet: &mut Packet, now: u64) -> FlowMark {
        let ip = packet.ipv4()?;
        self.mark(&ip, ip.payload(), now)
    }

    /// Queues a packet with the time stamp `time`.
    pub(super) fn enqueue(&mut self, packet: Packet, pair: HostPair, time: u64, arrival: Time) {
        let queue = self.queues.entry(pair).or_default();
        if queue.is_empty() {
            self.heads.insert((arrival, pair));
        }
        queue.push_back(QueueEntry { packet, time, arrival });
        self.len += 1;
    }

    /// Takes the oldest queued packet, if it has waited for the timeout or too many are queued.
    pub(super) fn pop_expired(
        &mut self,
        now: Time,
        timeout: Duration,
    ) -> Option<(Packet, FlowMark)> {
        let &(arrival, pair) = self.heads.first()?;
        let expired = arrival + timeout <= now || self.len > MAX_QUEUED;
        expired.then(|| self.pop_front_of(pair)).flatten()
    }

    /// The time at which the oldest queued packet will have waited for the timeout.
    pub(super) fn next_deadline(&self, timeout: Duration) -> Option<Time> {
        self.heads.first().map(|&(arrival, _)| arrival + timeout)
    }

    /// Takes the next packet between two hosts, if it needs to wait no longer.
    pub(super) fn pop_ready(
        &mut self,
        pair: HostPair,
        now: u64,
        timeout: u64,
    ) -> Option<(Packet, FlowMark)> {
        let first = self.queues.get_mut(&pair)?.front_mut()?;
        let ip = first.packet.ipv4().map(|ip| *ip)?;
        let known = ip.is_first_fragment() || self.ports.contains_key(&datagram_key(&ip));
        if !known && now.saturating_sub(first.time) <= timeout {
            return None;
        }
        self.pop_front_of(pair)
    }

    /// Takes any queued packet.
    pub(super) fn pop_any(&mut self) -> Option<(Packet, FlowMark)> {
        let pair = *self.queues.keys().next()?;
        self.pop_front_of(pair)
    }

    /// Takes the first packet of the queue of two hosts, and marks it.
    fn pop_front_of(&mut self, pair: HostPair) -> Option<(Packet, FlowMark)> {
        let queue = self.queues.get_mut(&pair)?;
        let QueueEntry { mut packet, time, arrival } = queue.pop_front()?;
        self.len -= 1;
        self.heads.remove(&(arrival, pair));
        match queue.front() {
            Some(next) => _ = self.heads.insert((next.arrival, pair)),
            None => _ = self.queues.remove(&pair),
        }
        let view = packet.ipv4();
        let flow = view.and_then(|view| self.mark(&view, view.payload(), time));
        Some((packet, flow))
    }

    /// The flow of a packet with this header and payload, which opens one if there is none.
    fn mark(&mut self, ip: &Ipv4Header, body: &[u8], now: u64) -> FlowMark {
        let &(symmetric, icmp, waits, ref timeouts) = self.config.as_ref()?;
        if icmp && ip.protocol() == ip_proto::ICMP {
            return self.mark_error(ip, body, symmetric);
        }
        let flow_ports = match ip.is_first_fragment() {
            true => ports(ip.protocol(), body),
            false if waits => self.ports.get(&datagram_key(ip)).copied(),
            false => None,
        };
        let (sport, dport) = flow_ports?;
        let tcp = Tcp::from_prefix(body).map(|(tcp, _)| tcp);
        let tcp = tcp.filter(|_| ip.protocol() == ip_proto::TCP && ip.is_first_fragment());
        let flags = tcp.map_or(TcpFlags::default(), |tcp| TcpFlags {
            syn: tcp.is_syn() && !tcp.is_ack(),
            fin: tcp.is_fin(),
            rst: tcp.is_rst(),
        });
        let ends: (Endpoint, Endpoint) = ((ip.src(), sport), (ip.dst(), dport));
        let (number, back) =
            self.flows.number(ip.protocol(), ends, symmetric, flags, now, timeouts);
        Some((number, u8::from(back)))
    }

    /// The flow of the packet that an ICMP error quotes.
    fn mark_error(&self, ip: &Ipv4Header, body: &[u8], symmetric: bool) -> FlowMark {
        const ERROR_PAINT: u8 = 2;
        let (icmp, inner) = castanet_element::wire::Icmp::from_prefix(body)?;
        if !icmp.is_error() || !ip.is_first_fragment() {
            return None;
        }
        let (inner, rest) = Ipv4Header::from_prefix(inner)?;
        let options = inner.header_len().saturating_sub(Ipv4Header::LEN);
        let (sport, dport) = ports(inner.protocol(), rest.get(options..)?)?;
        let ends = ((inner.src(), sport), (inner.dst(), dport));
        let (number, back) = self.flows.find(inner.protocol(), ends, symmetric)?;
        Some((number, ERROR_PAINT + u8::from(back)))
    }
}
