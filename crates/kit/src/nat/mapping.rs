//! A mapping: one flow, its rewriting and its connection state.

use super::eviction::EvictionEntry;
use super::seq_shifts::SeqShifts;
use super::{Outputs, RewriterKind, Translation};
use crate::conntrack::{Entry, ExclusiveAccess, HeaderOffsets, Tuple4};
use castanet_wire::{Ipv4Header, Tcp, ip_proto, tcp};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// Idle timeouts of mappings, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// The default.
    pub idle: u64,
    /// After data in both directions (TCP), or after three packets and a reply (UDP).
    pub data: u64,
    /// After both sides have closed the TCP connection.
    pub done: u64,
    /// The time in which the mapping cannot be evicted.
    pub guarantee: u64,
}

impl Timeouts {
    /// The idle timeout of a mapping in this state.
    #[inline]
    pub(super) fn idle_timeout(&self, state: u8, is_tcp: bool) -> u64 {
        self.of_phase(Phase::of(state, is_tcp))
    }

    /// The idle timeout of a mapping in this phase.
    #[inline]
    pub(super) fn of_phase(&self, phase: Phase) -> u64 {
        let idle = match phase {
            Phase::Idle => self.idle,
            Phase::Data => self.data,
            Phase::Done => self.done,
        };
        idle.max(self.guarantee)
    }

    /// The milliseconds between the end of the guarantee and the expiry.
    #[inline]
    pub(super) fn best_effort_ms(&self, timeout: u64) -> u32 {
        let rest = timeout.saturating_sub(self.guarantee) / MILLISECOND;
        u32::try_from(rest).unwrap_or(u32::MAX)
    }
}

/// The part of a state on which the timeout of a mapping depends.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    Idle,
    /// There was data in both directions (TCP), or three packets and a reply (UDP).
    Data,
    /// Both sides have closed the TCP connection.
    Done,
}

impl Phase {
    pub(super) const COUNT: usize = 3;
    /// All, by their numbers.
    pub(super) const ALL: [Phase; Phase::COUNT] = [Phase::Idle, Phase::Data, Phase::Done];

    /// The phase of a mapping in this state.
    #[inline]
    pub(super) fn of(state: u8, is_tcp: bool) -> Phase {
        match state {
            state if is_tcp && state & BOTH_DONE == BOTH_DONE => Phase::Done,
            state if is_tcp && state & BOTH_DATA == BOTH_DATA => Phase::Data,
            state if !is_tcp && state == THREE | ANSWERED => Phase::Data,
            _ => Phase::Idle,
        }
    }
}

const MILLISECOND: u64 = 1_000_000;

/// A time rounded down to the millisecond, the resolution of rewriters' times.
#[inline]
pub(super) fn round_to_ms(time: u64) -> u64 {
    time / MILLISECOND * MILLISECOND
}

/// A mapping. Its table finds it by the key of its first packets and by `reply_key`. Packets on
/// several workers update the atomic fields at the same time.
#[derive(Debug, Default)]
pub struct Mapping {
    /// The key of replies, with the zone; `None` if replies have the key of the flow itself.
    pub(super) reply_key: Option<Tuple4>,
    pub(super) shifts: Option<Box<SeqShifts>>,
    pub(super) outputs: Outputs,
    pub(super) input: u16,
    /// The time between the end of the guarantee and the expiry, in milliseconds.
    pub(super) best_effort_ms: AtomicU32,
    /// Its entry in the eviction order.
    pub(super) eviction_entry: EvictionEntry,
    /// Its number in the order in which mappings were made.
    pub(super) number: u32,
    /// The annotation that replies get.
    pub(super) anno: u8,
    pub(super) state: AtomicU8,
}

impl Entry for Mapping {
    type Key = Tuple4;
    fn second_key(&self) -> Option<&Tuple4> {
        self.reply_key.as_ref()
    }
}

/// Bits of `state` for TCP: sides that have closed, and sides that have sent data.
const DONE: u8 = 1;
const BOTH_DONE: u8 = 3;
const DATA: u8 = 4;
const BOTH_DATA: u8 = 12;
/// Bits of `state` for other protocols: a reply was seen; the number of packets, up to three.
const ANSWERED: u8 = 1;
const PACKET: u8 = 2;
const THREE: u8 = 3 * PACKET;

impl Mapping {
    /// A mapping without packets.
    pub(super) fn new(reply_key: Option<Tuple4>, outputs: Outputs, input: u16) -> Mapping {
        Mapping { reply_key, outputs, input, ..Mapping::default() }
    }

    /// The end of the guarantee of a mapping that expires at `end`, both in milliseconds.
    pub(super) fn guarantee_end(&self, end: u64) -> u64 {
        end.saturating_sub(self.best_effort_ms.load(Relaxed).into())
    }

    /// Sets the time from the last packet to expiry.
    #[inline]
    pub(super) fn set_timeout(&self, timeout: u64, timeouts: &Timeouts) {
        self.set_best_effort(timeouts.best_effort_ms(timeout));
    }

    /// Sets the time between the end of the guarantee and the expiry, in milliseconds.
    #[inline]
    pub(super) fn set_best_effort(&self, best_effort_ms: u32) {
        if self.best_effort_ms.load(Relaxed) != best_effort_ms {
            self.best_effort_ms.store(best_effort_ms, Relaxed);
        }
    }

    /// The connection state.
    #[inline]
    pub(super) fn state(&self) -> u8 {
        self.state.load(Relaxed)
    }

    /// The tuple of the packets of a direction, of a mapping with this first key.
    #[inline]
    pub(super) fn tuple(&self, key: &Tuple4, back: bool) -> Tuple4 {
        if back { self.reply_key.unwrap_or(*key) } else { *key }
    }

    /// The tuple that the packets of a direction get.
    #[inline]
    pub(super) fn target(&self, key: &Tuple4, back: bool) -> Tuple4 {
        self.tuple(key, !back).reversed()
    }

    /// The translation of a packet that gets the tuple `to`.
    #[inline]
    pub(super) fn translation(&self, kind: RewriterKind, back: bool, to: &Tuple4) -> Translation {
        Translation::Rewritten {
            output: self.outputs[usize::from(back)],
            dst: (back || kind != RewriterKind::SourceAddress).then_some(to.dst().0),
            anno: back.then_some(self.anno),
        }
    }

    /// Whether a packet is a reply; `back` says whether the table found it by the reply key. Where
    /// both keys are the same, all packets but the first are replies, as in Click.
    #[inline]
    pub(super) fn is_reply(&self, back: bool) -> bool {
        back || self.reply_key.is_none()
    }

    /// Whether sequence numbers are shifted.
    #[inline]
    pub(super) fn is_shifted(&self) -> bool {
        self.shifts.is_some()
    }

    /// The shifts of sequence numbers, for changes.
    pub fn shifts(&mut self) -> &mut SeqShifts {
        self.shifts.get_or_insert_default()
    }

    /// The shift of the newest sequence numbers of a direction, if there is one.
    pub(super) fn last_shift(&self, back: bool) -> Option<i32> {
        self.shifts.as_ref()?.last(back).filter(|by| *by != 0)
    }

    /// The sender's own sequence number for one that was quoted after the rewriting.
    pub(super) fn unshift_seq(&self, back: bool, quoted: u32) -> u32 {
        self.shifts.as_ref().map_or(quoted, |shifts| shifts.ack(!back, quoted))
    }

    /// Updates the connection state from a packet and returns the idle timeout from now on. Only a
    /// caller that `may_shorten` the timeout may apply a shorter one; others get
    /// [`ExclusiveAccess`].
    #[inline]
    pub(super) fn update_state(
        &self,
        back: bool,
        is_tcp: bool,
        packet: &Datagram,
        timeouts: &Timeouts,
        may_shorten: bool,
    ) -> Result<u64, ExclusiveAccess> {
        let before = self.state();
        let Some(segment) = packet.segment() else {
            return Ok(timeouts.idle_timeout(before, is_tcp));
        };
        let after = |state| state_after(state, back, is_tcp, segment);
        let state = after(before);
        let timeout = timeouts.idle_timeout(state, is_tcp);
        if state != before {
            if !may_shorten && timeout < timeouts.idle_timeout(before, is_tcp) {
                return Err(ExclusiveAccess);
            }
            _ = self.state.fetch_update(Relaxed, Relaxed, |state| Some(after(state)));
        }
        self.set_timeout(timeout, timeouts);
        Ok(timeout)
    }

    /// Translates sequence number, acknowledgment and SACK blocks of a TCP segment, whatever its
    /// flags.
    pub(super) fn shift_numbers(&mut self, back: bool, packet: &mut Datagram) {
        let Some(shifts) = &mut self.shifts else { return };
        let segment = packet.bytes.get_mut(packet.at.transport..packet.at.end);
        let Some((tcp, rest)) = segment.and_then(Tcp::from_prefix_mut) else { return };
        let options = tcp.header_len().saturating_sub(Tcp::LEN);
        tcp.rewrite_seq(shifts.seq(back, tcp.seq()));
        tcp.rewrite_ack(shifts.ack(back, tcp.ack()));
        if let Some(options) = rest.get_mut(..options) {
            let delta = tcp::map_sacks(options, |number| shifts.ack(back, number));
            tcp.adjust_checksum(delta);
        }
    }
}

/// The state of a mapping after a packet from one side.
#[inline]
pub(super) fn state_after(state: u8, back: bool, is_tcp: bool, segment: &[u8]) -> u8 {
    if is_tcp {
        return Tcp::from_prefix(segment).map_or(state, |(tcp, rest)| {
            let has_data = rest.len() > tcp.header_len().saturating_sub(Tcp::LEN);
            after_segment(state, u8::from(back), tcp, has_data)
        });
    }
    let state = state | if back { ANSWERED } else { 0 };
    if state >= THREE { state } else { state + PACKET }
}

/// The state of a TCP connection after a segment from one side.
#[inline]
fn after_segment(state: u8, side: u8, tcp: &Tcp, has_data: bool) -> u8 {
    let state = match (tcp.is_rst(), tcp.is_fin(), tcp.is_syn() || has_data) {
        (true, ..) => state | BOTH_DONE,
        (_, true, _) => state | DONE << side,
        (_, _, true) => state & !(DONE << side),
        _ => state,
    };
    if has_data { state | DATA << side } else { state }
}

/// A packet with the offsets of its headers.
pub(super) struct Datagram<'p> {
    pub(super) bytes: &'p mut [u8],
    pub(super) at: HeaderOffsets,
}

impl Datagram<'_> {
    pub(super) fn parse(bytes: &mut [u8]) -> Option<Datagram<'_>> {
        let (ip, _) = Ipv4Header::from_prefix(bytes)?;
        let (transport, total) = (ip.header_len(), usize::from(ip.total_len()));
        // Shorter than a header, as of a packet that the device is to segment: the packet has the length.
        let end = if total < Ipv4Header::LEN { bytes.len() } else { total.min(bytes.len()) };
        let has_segment = ip.is_first_fragment() && (Ipv4Header::LEN..=end).contains(&transport);
        let transport = if has_segment { transport } else { end };
        let at = HeaderOffsets { network: 0, transport, end, protocol: ip.protocol() };
        Some(Datagram { bytes, at })
    }

    /// The IP payload; `None` for later fragments.
    fn segment(&self) -> Option<&[u8]> {
        self.bytes.get(self.at.transport..self.at.end).filter(|segment| !segment.is_empty())
    }
}

/// Whether mappings of this protocol have TCP states.
#[inline]
pub(super) fn is_tcp(kind: RewriterKind, protocol: u8) -> bool {
    matches!(kind, RewriterKind::Tcp | RewriterKind::TcpUdp) && protocol == ip_proto::TCP
}
