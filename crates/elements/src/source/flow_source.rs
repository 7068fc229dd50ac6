//! Common parts of the sources of flows: the pace, the frames, and the table of flows.

use super::end_action;
use castanet_element::prelude::*;
use castanet_element::wire::{Ethernet, Ipv4Header, ether_type};
use castanet_kit::rate::GapRate;

/// The minimum length of a frame in bytes, without the checksum.
const MIN_FRAME_LEN: usize = 60;

/// The number of packets made, the times of the first and the last one, and the time of the next.
#[derive(Default)]
pub(super) struct PaceState {
    pub(super) count: u64,
    first: Option<Time>,
    last: Option<Time>,
    gap: Option<GapRate>,
}

impl PaceState {
    /// Number of packets to make now: at most `n`, at most `left`, and only those that are due; or
    /// the answer to the engine if there is none. A rate of 0 means no limit.
    pub(super) fn due(
        &mut self,
        rate: u32,
        left: usize,
        n: usize,
        cx: &mut Cx,
    ) -> Result<usize, NextRun> {
        let room = cx.room();
        if left == 0 {
            self.gap = None;
            return Err(NextRun::Done);
        }
        if room == 0 {
            return Err(NextRun::Empty);
        }
        let n = n.min(left).min(room);
        if rate == 0 {
            return Ok(n);
        }
        let now = cx.now().nanos();
        let gap = self.gap.get_or_insert_with(|| GapRate::new(rate.into()));
        gap.set_rate(rate.into(), now);
        let n = n.min(usize::try_from(gap.allowance(now)).unwrap_or(n));
        if n > 0 {
            return Ok(n);
        }
        let next = gap.expiry().map(Time::from_nanos);
        Err(next.map_or(NextRun::Done, |next| {
            cx.retry_at(next);
            NextRun::At(next)
        }))
    }

    /// Counts `n` packets; `last` says that they were the last ones.
    pub(super) fn record(&mut self, n: usize, last: bool, now: Time) {
        if let Some(gap) = &mut self.gap {
            gap.update_with(n as i64);
        }
        self.count += n as u64;
        self.first = self.first.or(Some(now).filter(|_| n > 0));
        if last {
            self.last = Some(now);
        }
    }

    /// Average rate in packets per second from the first packet to the last; 0 before the last.
    pub(super) fn rate(&self) -> u64 {
        let (Some(first), Some(last)) = (self.first, self.last) else { return 0 };
        let milliseconds = (last.since(first) / 1_000_000).max(1);
        self.count * 1000 / milliseconds
    }
}

/// Rate, limit, activity and end of a source, which handlers change.
#[derive(Clone)]
pub(super) struct Pace {
    pub(super) rate: u32,
    pub(super) limit: i64,
    pub(super) active: bool,
    /// Whether to stop the router after the last packet.
    pub(super) stop: bool,
    /// Number of times that `active` was set to true. When it differs from that of the state, the
    /// source starts anew.
    pub(super) runs: u64,
}

/// The answer of a source that is asked for its next packet.
pub(super) enum NextPacket {
    /// A packet.
    Packet(Packet),
    /// No packet now: the pool has no frame for it.
    NoFrame,
    /// No further packets.
    End,
}

impl Pace {
    pub(super) fn new(rate: u32, limit: i64, active: bool, stop: bool) -> Self {
        Pace { rate, limit, active, stop, runs: 0 }
    }

    /// Emits the packets that are due. `make_packet` makes one packet; its second argument is the
    /// number of packets that remain of the limit. With `more` it is also called when none remain,
    /// until it returns [`NextPacket::End`].
    pub(super) fn emit_due(
        &self,
        state: &mut FlowSourceState,
        n: usize,
        cx: &mut Cx,
        more: bool,
        mut make_packet: impl FnMut(&mut FlowSourceState, usize, &mut Cx) -> NextPacket,
    ) -> NextRun {
        if state.runs != self.runs {
            state.restart(self.runs);
        }
        if !self.active || state.is_over {
            return NextRun::Done;
        }
        let left = end_action::packets_left(self.limit, state.pace_state.count);
        let remaining = if more { left.max(1) } else { left };
        let n = match state.pace_state.due(self.rate, remaining, n, cx) {
            Ok(n) => cx.grant(n),
            Err(asked) => return asked,
        };
        if n == 0 {
            return NextRun::Empty;
        }
        let (now, mut batch) = (cx.now(), Batch::new());
        let (mut next_run, mut ended) = (NextRun::Again, false);
        batch.reserve(n);
        for i in 0..n {
            match make_packet(state, left.saturating_sub(i), cx) {
                NextPacket::Packet(packet) => batch.push(packet),
                NextPacket::NoFrame => break,
                NextPacket::End => {
                    state.is_over = true;
                    state.pace_state.record(0, true, now);
                    (next_run, ended) = (NextRun::Done, true);
                    break;
                }
            }
            ended = !more && left == i + 1;
            state.pace_state.record(1, ended, now);
        }
        if !batch.is_empty() {
            cx.emit_batch((), batch);
        }
        if self.stop && ended {
            cx.stop();
        }
        next_run
    }
}

/// Pace, flows and counters of a source.
#[derive(Default, Local)]
#[local(methods)]
pub struct FlowSourceState {
    pub(super) pace_state: PaceState,
    pub(super) flows: FlowTable,
    /// Number of the layout of the packets that the flows have, in [`FlowSourceState::lay_out`].
    layout: u64,
    runs: u64,
    is_over: bool,
}

impl FlowSourceState {
    /// Starts anew, with the flows that there are.
    fn restart(&mut self, runs: u64) {
        let flows = std::mem::take(&mut self.flows);
        *self = FlowSourceState { flows, layout: self.layout, runs, ..FlowSourceState::default() };
    }

    /// Starts anew, with other flows, if the number of the layout is another one.
    pub(super) fn lay_out(&mut self, layout: u64) {
        if self.layout != layout {
            *self = FlowSourceState { layout, runs: self.runs, ..FlowSourceState::default() };
        }
    }
}

#[handlers]
impl FlowSourceState {
    /// Number of packets made since the last reset.
    #[read]
    fn count(&self) -> u64 {
        self.pace_state.count
    }
    /// Average rate in packets per second from the first packet to the last; 0 before the last.
    #[read]
    fn rate(&self) -> u64 {
        self.pace_state.rate()
    }
    /// Counts from 0 again, and starts anew.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.restart(self.runs);
        Ok(())
    }
}

#[handlers]
impl Pace {
    /// Sets the rate in packets per second; no limit if 0.
    #[write]
    fn rate(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(Pace { rate: u32::from_arg(text, names)?, ..self.clone() })
    }
    /// Total number of packets to make; 4294967295 if there is no limit, as in FastClick.
    #[read(limit)]
    fn packet_limit(&self) -> u64 {
        u64::try_from(self.limit).unwrap_or(u32::MAX.into())
    }
    /// Whether the router stops after the last packet.
    #[read(stop)]
    fn stops(&self) -> bool {
        self.stop
    }
    /// Sets whether the router stops after the last packet.
    #[write]
    fn stop(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(Pace { stop: bool::from_arg(text, names)?, ..self.clone() })
    }
    /// Sets the total number of packets to make; no limit if negative.
    #[write]
    fn limit(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(Pace { limit: i64::from_arg(text, names)?, ..self.clone() })
    }
    /// Sets whether the source makes packets; `true` starts it anew.
    #[write]
    fn active(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let active = bool::from_arg(text, names)?;
        Ok(Pace { active, runs: self.runs + u64::from(active), ..self.clone() })
    }
}

/// Arguments of the sources of many flows.
#[derive(Args)]
pub(super) struct FlowArgs {
    /// Rate in packets per second; no limit if 0.
    #[arg]
    pub(super) rate: u32,
    /// Total number of packets to make; no limit if negative.
    #[arg]
    pub(super) limit: i64,
    /// Length of the frames in bytes.
    #[arg]
    pub(super) length: FrameLength,
    /// Source Ethernet address.
    #[arg]
    srceth: MacAddr,
    /// Source IPv4 address.
    #[arg]
    srcip: Ipv4Addr,
    /// Destination Ethernet address.
    #[arg]
    dsteth: MacAddr,
    /// Destination IPv4 address.
    #[arg]
    dstip: Ipv4Addr,
    /// Number of concurrent flows.
    #[arg(range = 1..=16777216)]
    pub(super) flows: u32,
}

impl FlowArgs {
    pub(super) fn endpoints(&self) -> Endpoints {
        Endpoints { ether: (self.srceth, self.dsteth), ip: (self.srcip, self.dstip) }
    }
}

/// The addresses of a flow, source first.
#[derive(Clone)]
pub(super) struct Endpoints {
    pub(super) ether: (MacAddr, MacAddr),
    pub(super) ip: (Ipv4Addr, Ipv4Addr),
}

/// An Ethernet frame of `length` bytes with an IPv4 header and this transport header, filled up
/// with zeros. It has 60 bytes at least.
pub(super) fn frame(
    endpoints: &Endpoints,
    protocol: u8,
    transport: &[u8],
    length: FrameLength,
) -> Vec<u8> {
    let length = length.0.max(MIN_FRAME_LEN);
    let ether = Ethernet::new(endpoints.ether.1, endpoints.ether.0, ether_type::IPV4);
    let total = (length - Ethernet::LEN) as u16;
    let mut ip = Ipv4Header::new(protocol, endpoints.ip.0, endpoints.ip.1, total);
    ip.set_ttl(250);
    ip.update_checksum(&[]);
    let mut frame = [&ether.bytes()[..], ip.bytes(), transport].concat();
    frame.resize(length, 0);
    frame
}

/// A packet with a copy of `frame`, its headers marked and its destination annotation set to `dst`;
/// `None` if the pool has no frame.
pub(super) fn packet(frame: &[u8], dst: Ipv4Addr, cx: &mut Cx) -> Option<Packet> {
    let mut packet = cx.copy_in(frame)?;
    packet.set_mac_header(0);
    packet.set_network_header(Ethernet::LEN as isize, Ipv4Header::LEN);
    packet.set_dst(dst);
    Some(packet)
}

/// Length of an Ethernet frame with an IPv4 packet, in bytes.
#[derive(Clone, Copy)]
pub(super) struct FrameLength(pub(super) usize);

impl FromArg for FrameLength {
    const SYNTAX: &'static str = "a number up to 65549";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        const MAX_LEN: usize = Ethernet::LEN + u16::MAX as usize;
        let length = u32::from_arg(text, names)? as usize;
        let error = || ArgError::new(format!("{length} is longer than a frame can be"));
        (length <= MAX_LEN).then_some(FrameLength(length)).ok_or_else(error)
    }
}

/// A flow: its ports and the number of packets sent.
#[derive(Clone, Copy, Default)]
pub(super) struct Flow {
    pub(super) ports: (u16, u16),
    /// The initial sequence number of TCP.
    pub(super) initial_seq: u32,
    pub(super) sent: u32,
    /// The checksum of UDP, once a packet of the flow was made.
    pub(super) checksum: u16,
}

/// The flows of a source.
#[derive(Default)]
pub(super) struct FlowTable {
    flows: Vec<Flow>,
    /// The flow of the last packet, and the number of packets in a row that were of it.
    last: (usize, u32),
}

/// The order of the packets of flows, and of the ports of new flows.
#[derive(Clone, Copy)]
pub(super) struct FlowOrder {
    /// Number of packets in a row that belong to one flow.
    pub(super) burst: u32,
    /// Whether flows follow each other by number, and new ones have the next port numbers.
    pub(super) sequential: bool,
}

/// A number from 0 to `count` - 1, as Click's sources of flows draw it.
#[inline]
fn below(count: u32, cx: &mut Cx) -> u32 {
    (cx.random_numbers().number() >> 2) % count
}

/// Ports as Click's sources of flows draw them, whose byte order is not the network's.
fn random_ports(cx: &mut Cx) -> (u16, u16) {
    let mut port = || (below(u16::MAX.into(), cx) as u16).swap_bytes();
    (port(), port())
}

impl FlowTable {
    /// Makes `count` flows with random ports, unless there are so many. In Click, each flow draws
    /// `more_draws` further numbers, of which the first is the initial sequence number.
    pub(super) fn prepare(&mut self, count: u32, more_draws: u32, cx: &mut Cx) {
        if self.flows.len() == count as usize {
            return;
        }
        let mut flow = || {
            let ports = random_ports(cx);
            let mut draws = (0..more_draws).map(|_| cx.random_numbers().number());
            let initial_seq = draws.next().unwrap_or_default().swap_bytes();
            draws.for_each(drop);
            Flow { ports, initial_seq, ..Flow::default() }
        };
        *self = FlowTable { flows: (0..count).map(|_| flow()).collect(), last: (0, 0) };
    }

    /// Returns a random flow, and counts a packet of it. A flow that has sent `size` packets starts anew
    /// with other ports.
    #[inline]
    pub(super) fn random_flow(&mut self, size: u32, cx: &mut Cx) -> &mut Flow {
        let at = below(self.flows.len() as u32, cx);
        self.flow_at(at as usize, size, false, cx)
    }

    /// Returns a flow in this order, beginning with the first one, and counts a packet of it, as
    /// `random_flow` does.
    #[inline]
    pub(super) fn flow_in_order(&mut self, order: FlowOrder, size: u32, cx: &mut Cx) -> &mut Flow {
        let (last, packets) = self.last;
        self.last = match packets {
            packets if packets < order.burst => (last, packets + 1),
            _ if order.sequential => ((last + 1) % self.flows.len(), 1),
            _ => (below(self.flows.len() as u32, cx) as usize, 1),
        };
        self.flow_at(self.last.0, size, order.sequential, cx)
    }

    /// Counts a packet of flow `at`, which starts anew if it has sent `size` packets: with the next
    /// port numbers if it is `sequential`, else with random ones.
    fn flow_at(&mut self, at: usize, size: u32, sequential: bool, cx: &mut Cx) -> &mut Flow {
        let flow = &mut self.flows[at];
        if flow.sent >= size {
            let next = |port: u16| (port + 1) % u16::MAX;
            let ports = match sequential {
                true => (next(flow.ports.0), next(flow.ports.1)),
                false => random_ports(cx),
            };
            *flow = Flow { ports, initial_seq: flow.initial_seq, ..Flow::default() };
        }
        flow.sent += 1;
        flow
    }

    /// Returns a flow that has sent between 1 and `size - 1` packets and marks it as complete;
    /// `None` if there is none.
    pub(super) fn finish_one(&mut self, size: u32) -> Option<Flow> {
        let flow = self.flows.iter_mut().find(|flow| flow.sent > 0 && flow.sent < size)?;
        flow.sent = size;
        Some(*flow)
    }
}
