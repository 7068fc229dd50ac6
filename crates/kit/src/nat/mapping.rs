//! One flow that is rewritten, and what has been seen of it.

use super::order::Queued;
use super::shifts::Shifts;
use super::{By, Outputs};
use crate::flow::{Flow, Tuple4, Wait};
use castanet_wire::checksum::Delta;
use castanet_wire::{Icmp, Ipv4Header, Tcp, ip_proto, tcp, transport};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// How long mappings live without packets, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lives {
    /// As long as nothing else is said.
    pub idle: u64,
    /// Once there was data both ways (TCP), or three packets and an answer (UDP).
    pub data: u64,
    /// TCP that both sides have ended.
    pub done: u64,
    /// For so long nobody else gets a mapping's place.
    pub guarantee: u64,
}

impl Lives {
    /// How long a mapping in this state lives from its last packet on.
    #[inline]
    pub(super) fn of(&self, state: u8, is_tcp: bool) -> u64 {
        let idle = match state {
            state if is_tcp && state & BOTH_DONE == BOTH_DONE => self.done,
            state if is_tcp && state & BOTH_DATA == BOTH_DATA => self.data,
            state if !is_tcp && state == THREE | ANSWERED => self.data,
            _ => self.idle,
        };
        idle.max(self.guarantee)
    }
}

const MILLISECOND: u64 = 1_000_000;

/// The last whole millisecond, to which rewriters keep their times.
#[inline]
pub(super) fn whole(time: u64) -> u64 {
    time / MILLISECOND * MILLISECOND
}

/// A mapping. The key by which its table finds it is that of its first packets; replies are
/// found by the second. What each packet may change, several may change at once.
#[derive(Debug, Default)]
pub struct Mapping {
    /// What replies look like; in the zone of the table.
    pub(super) back: Option<Tuple4>,
    shifts: Option<Box<Shifts>>,
    /// What rewriting packets of the first direction does to the IP checksum, and to that of
    /// the transport protocol.
    deltas: [Delta; 2],
    pub(super) outputs: Outputs,
    pub(super) input: u16,
    /// So many milliseconds before its end its guarantee ends.
    unguaranteed: AtomicU32,
    /// Its entry in the order of displacement.
    pub(super) queued: Queued,
    /// The annotation that replies get.
    pub(super) anno: u8,
    state: AtomicU8,
}

impl Flow for Mapping {
    type Key = Tuple4;
    fn second(&self) -> Option<&Tuple4> {
        self.back.as_ref()
    }
}

/// In `state`, of TCP: which sides are done, and which have sent data.
const DONE: u8 = 1;
const BOTH_DONE: u8 = 3;
const DATA: u8 = 4;
const BOTH_DATA: u8 = 12;
/// Of others: that there was an answer, and how many packets, up to three.
const ANSWERED: u8 = 1;
const PACKET: u8 = 2;
const THREE: u8 = 3 * PACKET;

impl Mapping {
    /// The mapping of `flow` to `to`.
    pub(super) fn new(by: By, flow: Tuple4, to: Tuple4, outputs: Outputs, input: u16) -> Mapping {
        let ip = Delta::new().addr(flow.src().0, to.src().0).addr(flow.dst().0, to.dst().0);
        let ports = Delta::new().u16(flow.src().1, to.src().1).u16(flow.dst().1, to.dst().1);
        // ICMP has no pseudo header.
        let transport = if by == By::Echo { ports } else { ip.and(ports) };
        let back = Some(to.reversed());
        Mapping { back, deltas: [ip, transport], outputs, input, ..Mapping::default() }
    }

    /// When its guarantee ends, if it ends at `end`, both in milliseconds.
    pub(super) fn guaranteed(&self, end: u64) -> u64 {
        end.saturating_sub(self.unguaranteed.load(Relaxed).into())
    }

    /// Notes that it lives for so long from its last packet on.
    #[inline]
    pub(super) fn set_life(&self, life: u64, lives: &Lives) {
        let rest = life.saturating_sub(lives.guarantee) / MILLISECOND;
        let rest = u32::try_from(rest).unwrap_or(u32::MAX);
        if self.unguaranteed.load(Relaxed) != rest {
            self.unguaranteed.store(rest, Relaxed);
        }
    }

    /// Whether a packet is a reply; `back` says whether it was found as one. Where replies look
    /// like the flow itself, all packets but the first are replies, as in Click.
    #[inline]
    pub(super) fn is_reply(&self, back: bool) -> bool {
        back || self.back.is_none()
    }

    /// Whether sequence numbers are off.
    #[inline]
    pub(super) fn is_shifted(&self) -> bool {
        self.shifts.is_some()
    }

    /// By how much sequence numbers are off.
    pub fn shifts(&mut self) -> &mut Shifts {
        self.shifts.get_or_insert_default()
    }

    /// By how much the newest sequence numbers of a direction are off, if they are.
    pub(super) fn shifted(&self, back: bool) -> Option<i32> {
        self.shifts.as_ref()?.last(back).filter(|by| *by != 0)
    }

    /// What a packet that the mapping rewrote said, where `quoted` repeats its sequence number.
    pub(super) fn unshifted(&self, back: bool, quoted: u32) -> u32 {
        self.shifts.as_ref().map_or(quoted, |shifts| shifts.ack(!back, quoted))
    }

    /// Notes what a packet says of the flow, and answers for how long that lives from now on. A
    /// life that gets shorter waits for who `may_shorten` it.
    #[inline]
    pub(super) fn note(
        &self,
        back: bool,
        is_tcp: bool,
        packet: &Parts,
        lives: &Lives,
        may_shorten: bool,
    ) -> Result<u64, Wait> {
        let before = self.state.load(Relaxed);
        let Some(segment) = &packet.segment else { return Ok(lives.of(before, is_tcp)) };
        let after = |state| match is_tcp {
            true => Tcp::from_prefix(segment).map_or(state, |(tcp, rest)| {
                let has_data = rest.len() > tcp.header_len().saturating_sub(Tcp::LEN);
                after_segment(state, u8::from(back), tcp, has_data)
            }),
            false => {
                let state = state | if back { ANSWERED } else { 0 };
                if state >= THREE { state } else { state + PACKET }
            }
        };
        let state = after(before);
        let life = lives.of(state, is_tcp);
        if state != before {
            if !may_shorten && life < lives.of(before, is_tcp) {
                return Err(Wait);
            }
            _ = self.state.fetch_update(Relaxed, Relaxed, |state| Some(after(state)));
        }
        self.set_life(life, lives);
        Ok(life)
    }

    /// Rewrites a packet of the mapping, which is `to` in its place, but for sequence numbers.
    pub(super) fn rewrite(&self, by: By, to: Rewrite, packet: &mut Parts) {
        if !to.changes {
            return;
        }
        let [mut of_ip, mut of_transport] = self.deltas;
        if to.back {
            (of_ip, of_transport) = (of_ip.inverse(), of_transport.inverse());
        }
        let ip = &mut packet.ip;
        to.src.iter().for_each(|src| ip.set_src(*src));
        to.dst.iter().for_each(|dst| ip.set_dst(*dst));
        ip.adjust_checksum(of_ip);
        let Some(segment) = &mut packet.segment else { return };
        match by {
            By::Echo => set_identifier(segment, to.ports.0, of_transport),
            By::Source | By::Pair => {}
            By::Tcp | By::Udp | By::Both => transport::set_ports(segment, to.ports.0, to.ports.1),
        }
        if by != By::Echo {
            transport::adjust_checksum(ip.protocol(), segment, of_transport);
        }
    }

    /// Moves the numbers of a TCP segment; the acknowledgment and SACK blocks in every one,
    /// whatever its flags.
    pub(super) fn shift(&mut self, back: bool, packet: &mut Parts) {
        let (Some(shifts), Some(segment)) = (&mut self.shifts, &mut packet.segment) else { return };
        let Some((tcp, rest)) = Tcp::from_prefix_mut(segment) else { return };
        let options = tcp.header_len().saturating_sub(Tcp::LEN);
        tcp.rewrite_seq(shifts.seq(back, tcp.seq()));
        tcp.rewrite_ack(shifts.ack(back, tcp.ack()));
        if let Some(options) = rest.get_mut(..options) {
            let delta = tcp::map_sacks(options, |number| shifts.ack(back, number));
            tcp.adjust_checksum(delta);
        }
    }
}

/// The state of a TCP connection after a segment from one side.
fn after_segment(state: u8, side: u8, tcp: &Tcp, has_data: bool) -> u8 {
    let state = match (tcp.is_rst(), tcp.is_fin(), tcp.is_syn() || has_data) {
        (true, ..) => state | BOTH_DONE,
        (_, true, _) => state | DONE << side,
        (_, _, true) => state & !(DONE << side),
        _ => state,
    };
    if has_data { state | DATA << side } else { state }
}

/// A packet, as far as mappings are about it.
pub(super) struct Parts<'p> {
    ip: &'p mut Ipv4Header,
    /// What it carries, if that is not a later fragment.
    segment: Option<&'p mut [u8]>,
}

impl Parts<'_> {
    pub(super) fn of(datagram: &mut [u8]) -> Option<Parts<'_>> {
        let (ip, rest) = Ipv4Header::from_prefix_mut(datagram)?;
        let len = usize::from(ip.total_len()).saturating_sub(Ipv4Header::LEN).min(rest.len());
        let options = ip.header_len().checked_sub(Ipv4Header::LEN);
        let segment = options.and_then(|options| rest.get_mut(options..len));
        let segment = segment.filter(|_| ip.is_first_fragment());
        Some(Parts { ip, segment })
    }
}

/// What is written into a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rewrite {
    /// Whether it is a reply.
    pub(super) back: bool,
    /// Whether anything changes.
    pub(super) changes: bool,
    pub(super) src: Option<Ipv4Addr>,
    pub(super) dst: Option<Ipv4Addr>,
    /// Ports; first the identifier where there is one.
    pub(super) ports: (u16, u16),
}

/// Sets the identifier of an ICMP echo.
fn set_identifier(message: &mut [u8], id: u16, delta: Delta) {
    if let Some((icmp, rest)) = Icmp::from_prefix_mut(message) {
        icmp.set_id(id);
        icmp.adjust_checksum(delta);
        icmp.normalize_zero_checksum(rest);
    }
}

/// Whether mappings of this protocol go through the states of TCP.
pub(super) fn is_tcp(by: By, protocol: u8) -> bool {
    matches!(by, By::Tcp | By::Both) && protocol == ip_proto::TCP
}
