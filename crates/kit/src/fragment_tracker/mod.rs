//! The tracker of fragmented datagrams: it associates fragments with their first fragment, queues
//! those that come before it, and refuses malformed and overlapping ones (RFC 1858, RFC 3128, RFC
//! 5722).
//!
//! The tracker does not reassemble. The caller passes each fragment to [`FragmentTracker::admit`];
//! a verdict on the first fragment applies to later ones. There is no clock: callers pass the time
//! in nanoseconds.

mod ranges;
#[cfg(test)]
mod tests;

use crate::conntrack::{Entry, Id, Table, Tuple6};
use castanet_wire::{Icmp, Ipv4Header, Ipv6Header, Tcp, Udp, extension, ip_proto};
use ranges::{FragmentRanges, InsertResult};
use std::net::Ipv6Addr;
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;
/// The zones of keys, by address family.
const ZONES: [u16; 2] = [1, 2];

/// The key of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramKey(Tuple6);

impl DatagramKey {
    /// The key from addresses, protocol and identification (RFC 791).
    pub fn v4(ip: &Ipv4Header) -> DatagramKey {
        let (src, dst) = (ip.src().to_ipv6_mapped(), ip.dst().to_ipv6_mapped());
        DatagramKey(Tuple6::new((src, 0), (dst, ip.id()), ip.protocol()).in_zone(ZONES[0]))
    }

    /// The key from addresses and identification alone: only the first fragment's protocol counts
    /// (RFC 8200, section 4.5).
    pub fn v6(src: Ipv6Addr, dst: Ipv6Addr, id: u32) -> DatagramKey {
        let (high, low) = ((id >> u16::BITS) as u16, id as u16);
        DatagramKey(Tuple6::new((src, high), (dst, low), 0).in_zone(ZONES[1]))
    }

    /// The same key for fragments from one input; fragments of different inputs are not mixed.
    pub fn for_input(self, input: usize) -> DatagramKey {
        let zone = ZONES[usize::from(self.is_ip6())];
        DatagramKey(self.0.in_zone(zone + 2 * input as u16)) // inputs are fewer than 256
    }

    fn is_ip6(&self) -> bool {
        self.0.zone() % 2 == ZONES[1] % 2
    }
}

/// The headers at the start of a datagram's first fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderChain {
    /// The protocol of these bytes.
    pub protocol: u8,
    /// All headers after the IP or fragment header, and some of the payload.
    pub bytes: Arc<[u8]>,
}

impl HeaderChain {
    /// The largest number of bytes.
    pub const MAX: usize = 512;
    /// The payload bytes that are kept after the headers.
    pub const PAYLOAD: usize = 64;

    /// The header chain of a first fragment whose headers end at `headers` of its `bytes`; `None`
    /// if they are longer than [`HeaderChain::MAX`].
    pub fn new(protocol: u8, bytes: &[u8], headers: usize) -> Option<HeaderChain> {
        let end = (headers + HeaderChain::PAYLOAD).min(HeaderChain::MAX).min(bytes.len());
        let bytes = bytes.get(..end).filter(|_| headers <= end)?;
        Some(HeaderChain { protocol, bytes: bytes.into() })
    }
}

/// The header length of a transport protocol at the start of `segment`: 0 for protocols that are
/// not inspected, `None` if the header is incomplete.
fn header_len(protocol: u8, segment: &[u8]) -> Option<usize> {
    let length = match (protocol, Tcp::from_prefix(segment)) {
        (ip_proto::TCP, tcp) => tcp?.0.header_len().max(Tcp::LEN),
        (protocol, _) => shortest(protocol),
    };
    (length <= segment.len()).then_some(length)
}

/// Whether a segment starts with a TCP header whose length field is too small, which no other
/// fragment can correct.
fn is_malformed(protocol: u8, segment: &[u8]) -> bool {
    let tcp = Tcp::from_prefix(segment).filter(|_| protocol == ip_proto::TCP);
    tcp.is_some_and(|(tcp, _)| tcp.header_len() < Tcp::LEN)
}

/// The length of the shortest header of a protocol.
fn shortest(protocol: u8) -> usize {
    match protocol {
        ip_proto::TCP => Tcp::LEN,
        ip_proto::UDP => Udp::LEN,
        ip_proto::ICMP | ip_proto::ICMPV6 => Icmp::LEN,
        _ => 0,
    }
}

/// The properties of a fragment.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// The offset in the datagram, in bytes.
    pub start: usize,
    /// The length in bytes.
    pub length: usize,
    /// Whether further fragments follow.
    pub more: bool,
    /// The protocol in the fragment's own header.
    pub protocol: u8,
    /// The headers of the datagram, if this is the first fragment and has all of them.
    pub head: Option<HeaderChain>,
}

impl Fragment {
    /// Parses an IPv4 fragment, from its IP header on; `None` if the header is inconsistent.
    pub fn parse_v4(ip: &Ipv4Header, payload: &[u8]) -> Option<Fragment> {
        let length = usize::from(ip.total_len()).checked_sub(ip.header_len())?;
        let (start, protocol) = (ip.fragment_offset(), ip.protocol());
        let payload = &payload[..length.min(payload.len())];
        if start == 0 && is_malformed(protocol, payload) {
            return None;
        }
        let first = header_len(protocol, payload).filter(|_| start == 0);
        let head = first.and_then(|headers| HeaderChain::new(protocol, payload, headers));
        Some(Fragment { start, length, more: ip.more_fragments(), protocol, head })
    }

    /// Parses an IPv6 fragment, from the bytes after its IP header, with the key of its datagram;
    /// `None` if it has no fragment header or is inconsistent.
    pub fn parse_v6(ip: &Ipv6Header, payload: &[u8]) -> Option<(DatagramKey, Fragment)> {
        let claimed = match usize::from(ip.payload_len()) {
            0 => payload.len(),
            claimed => claimed,
        };
        let payload = &payload[..claimed.min(payload.len())];
        let upper = extension::upper_layer(ip.next_header(), payload);
        let fragment = upper.fragment?;
        let (start, protocol) = (usize::from(fragment.offset()), fragment.next_header());
        let fragmentable = payload.get(upper.fragment_data..)?;
        let segment = payload.get(upper.offset..)?;
        // All headers are in the first fragment (RFC 7112).
        let are_whole = start == 0 && !extension::is_extension(upper.protocol);
        if are_whole && is_malformed(upper.protocol, segment) {
            return None;
        }
        let last = header_len(upper.protocol, segment).filter(|_| are_whole);
        let headers = last.map(|last| upper.offset - upper.fragment_data + last);
        let head = headers.and_then(|headers| HeaderChain::new(protocol, fragmentable, headers));
        let length = claimed.checked_sub(upper.fragment_data)?;
        let key = DatagramKey::v6(ip.src(), ip.dst(), fragment.id());
        Some((key, Fragment { start, length, more: fragment.more_fragments(), protocol, head }))
    }

    /// Whether such a fragment is valid: not empty, not beyond the largest datagram, and a multiple
    /// of eight bytes unless it is the last.
    fn is_valid(&self) -> bool {
        let aligned = !self.more || self.length.is_multiple_of(8);
        aligned && self.length > 0 && self.start + self.length <= usize::from(u16::MAX)
    }

    /// Adds the fragment to those of its datagram, whose header chain is `head` if it is known; the
    /// error is why it is refused.
    fn insert_into(
        &self,
        head: Option<&HeaderChain>,
        ranges: &mut FragmentRanges,
    ) -> Result<(), Refusal> {
        let is_same_first = self.start > 0 || head.is_none() || head == self.head.as_ref();
        match ranges.insert(self.start, self.length, self.more) {
            _ if self.is_tiny() => Err(Refusal::Tiny),
            InsertResult::New | InsertResult::Duplicate if is_same_first => Ok(()),
            InsertResult::Full => Err(Refusal::Excess),
            _ => Err(Refusal::Overlap),
        }
    }

    /// Whether the fragment splits the headers of its datagram.
    fn is_tiny(&self) -> bool {
        match self.start {
            0 => self.head.is_none(),
            start => start < shortest(self.protocol),
        }
    }
}

/// The reason why a fragment is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The fragment is invalid.
    Invalid,
    /// The fragment splits the headers of its datagram, or another fragment of the datagram did
    /// (RFC 1858, RFC 3128).
    Tiny,
    /// The fragment overlaps or contradicts other fragments of its datagram, or two other fragments
    /// did so (RFC 5722).
    Overlap,
    /// The first fragment of the datagram did not come in time.
    NoFirst,
    /// There is no room for the fragment.
    Excess,
    /// The first fragment of the datagram got this verdict.
    Denied(u8),
}

/// The tracker's decision about a fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It is the first fragment: the caller decides and calls [`FragmentTracker::set_verdict`].
    First,
    /// It is a later fragment of a datagram with these headers.
    Later(HeaderChain),
    /// The first fragment has not come: the caller passes the packet to
    /// [`FragmentTracker::enqueue`].
    Pending,
    /// It is refused.
    Refused(Refusal),
}

/// Limits of numbers and times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Tracked datagrams.
    pub datagrams: usize,
    /// Queued fragments in all.
    pub queued: usize,
    /// Queued fragments of one datagram.
    pub per_datagram: usize,
    /// Nanoseconds that a fragment is queued for.
    pub queue_timeout: u64,
    /// Nanoseconds for which a datagram is tracked after its first fragment.
    pub timeout: u64,
    /// Nanoseconds after which another first fragment of IPv4 starts a new datagram: there are only
    /// 65 536 identifications, so incomplete datagrams collide with later ones.
    pub reuse: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            datagrams: 16 * 1024,
            queued: 1024,
            per_datagram: 64,
            queue_timeout: 2 * SECOND,
            timeout: 30 * SECOND,
            reuse: SECOND,
        }
    }
}

/// A tracked datagram.
#[derive(Debug)]
struct Datagram<P> {
    /// The arrival time of the first fragment that was seen.
    since: u64,
    head: Option<HeaderChain>,
    refusal: Option<Refusal>,
    ranges: FragmentRanges,
    queued: Vec<P>,
}

impl<P> Default for Datagram<P> {
    fn default() -> Self {
        Datagram {
            since: 0,
            head: None,
            refusal: None,
            ranges: FragmentRanges::default(),
            queued: Vec::new(),
        }
    }
}

impl<P> Entry for Datagram<P> {
    type Key = Tuple6;
}

impl<P> Datagram<P> {
    /// Whether a first fragment belongs to another datagram than this one.
    fn is_contradicted(&self, fragment: &Fragment) -> bool {
        let differs =
            || self.head != fragment.head || self.ranges.first_end() != Some(fragment.length);
        self.refusal.is_some() || self.head.is_some() && differs()
    }
}

/// Tracked datagrams, with queued fragments of type `P`.
pub struct FragmentTracker<P> {
    limits: Limits,
    flows: Table<Datagram<P>>,
    queued: usize,
    dropped: Vec<(P, Refusal)>,
}

impl<P> Default for FragmentTracker<P> {
    fn default() -> Self {
        FragmentTracker::new(Limits::default())
    }
}

impl<P> FragmentTracker<P> {
    /// An empty tracker with these limits.
    pub fn new(limits: Limits) -> Self {
        let flows = Table::new(limits.datagrams);
        FragmentTracker { limits, flows, queued: 0, dropped: Vec::new() }
    }

    /// How many datagrams are tracked.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether none is tracked.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many fragments are queued, or dropped and not yet taken by
    /// [`FragmentTracker::take_dropped`].
    pub fn queued(&self) -> usize {
        self.queued + self.dropped.len()
    }

    /// Decides about a fragment. If queued fragments are refused because of it, they go to
    /// [`FragmentTracker::take_dropped`].
    pub fn admit(&mut self, key: DatagramKey, fragment: &Fragment, now: u64) -> Admission {
        if !fragment.is_valid() {
            return Admission::Refused(Refusal::Invalid);
        }
        let Some(id) = self.datagram(key, fragment, now) else {
            return Admission::Refused(Refusal::Excess);
        };
        let it = self.flows.get_mut(id);
        if let Some(refusal) = it.refusal {
            return Admission::Refused(refusal);
        }
        if let Err(refusal) = fragment.insert_into(it.head.as_ref(), &mut it.ranges) {
            self.refuse(id, refusal, now);
            return Admission::Refused(refusal);
        }
        self.record(id, fragment, now)
    }

    /// The result that [`FragmentTracker::admit`] would have, without recording the fragment.
    /// `Excess` if too many fragments of the datagram are queued.
    pub fn peek(&self, key: DatagramKey, fragment: &Fragment, now: u64) -> Admission {
        if !fragment.is_valid() {
            return Admission::Refused(Refusal::Invalid);
        }
        let known = self.flows.find(&key.0).map(|(id, _)| id);
        let known = known.filter(|&id| self.is_current(id, (key, fragment), now));
        let known = known.map(|id| self.flows.get(id));
        if let Some(refusal) = known.and_then(|it| it.refusal) {
            return Admission::Refused(refusal);
        }
        let mut ranges = known.map_or_else(FragmentRanges::default, |it| it.ranges.clone());
        let head = known.and_then(|it| it.head.as_ref());
        if let Err(refusal) = fragment.insert_into(head, &mut ranges) {
            return Admission::Refused(refusal);
        }
        let is_crowded = known.is_some_and(|it| it.queued.len() >= self.limits.per_datagram);
        match head {
            _ if fragment.start == 0 => Admission::First,
            Some(head) => Admission::Later(head.clone()),
            None if is_crowded => Admission::Refused(Refusal::Excess),
            None => Admission::Pending,
        }
    }

    /// Records a fragment that fits.
    fn record(&mut self, id: Id, fragment: &Fragment, now: u64) -> Admission {
        if fragment.start == 0 {
            self.flows.set_deadline(id, now + self.limits.timeout).head.clone_from(&fragment.head);
            return Admission::First;
        }
        let it = self.flows.get(id);
        let Some(head) = it.head.clone() else { return Admission::Pending };
        if it.ranges.is_complete() {
            self.remove(id, Refusal::NoFirst);
        }
        Admission::Later(head)
    }

    /// The datagram of a fragment, a new one if there is none; `None` if there is no room.
    fn datagram(&mut self, key: DatagramKey, fragment: &Fragment, now: u64) -> Option<Id> {
        let limits = self.limits;
        if let Some((id, _)) = self.flows.find(&key.0) {
            if self.is_current(id, (key, fragment), now) {
                return Some(id);
            }
            self.remove(id, Refusal::NoFirst);
        }
        if self.len() >= limits.datagrams {
            self.evict(|_| true);
        }
        let queue_timeout = if fragment.start == 0 { limits.timeout } else { limits.queue_timeout };
        let new = Datagram { since: now, ..Datagram::default() };
        self.flows.insert(key.0, new, now + queue_timeout, now).ok()
    }

    /// Whether a fragment with the key of this datagram belongs to it: the datagram has not
    /// expired, and the fragment is not the first of another one.
    fn is_current(&self, id: Id, (key, fragment): (DatagramKey, &Fragment), now: u64) -> bool {
        let it = self.flows.get(id);
        let is_other = !key.is_ip6()
            && fragment.start == 0
            && now >= it.since.saturating_add(self.limits.reuse)
            && it.is_contradicted(fragment);
        !is_other && self.flows.deadline(id) > now
    }

    /// Evicts the first datagram to expire for which `may_go` is true.
    fn evict(&mut self, may_go: impl FnMut(&Datagram<P>) -> bool) {
        if let Some((_, dropped)) = self.flows.evict(may_go) {
            self.drop_queued(dropped, Refusal::Excess);
        }
    }

    /// Refuses all further fragments of a datagram and the queued ones.
    fn refuse(&mut self, id: Id, refusal: Refusal, now: u64) {
        let it = self.flows.set_deadline(id, now + self.limits.timeout);
        let refused = Datagram { since: it.since, refusal: Some(refusal), ..Datagram::default() };
        let before = std::mem::replace(it, refused);
        self.drop_queued(before, refusal);
    }

    fn remove(&mut self, id: Id, refusal: Refusal) {
        let (_, dropped) = self.flows.remove(id);
        self.drop_queued(dropped, refusal);
    }

    fn drop_queued(&mut self, datagram: Datagram<P>, refusal: Refusal) {
        self.queued -= datagram.queued.len();
        self.dropped.extend(datagram.queued.into_iter().map(|waited| (waited, refusal)));
    }

    /// Queues a fragment for which [`FragmentTracker::admit`] returned `Pending`. If the first
    /// fragment came meanwhile, the fragment is returned with its new admission.
    pub fn enqueue(
        &mut self,
        key: DatagramKey,
        fragment: &Fragment,
        now: u64,
        packet: P,
    ) -> Option<(P, Admission)> {
        match self.admit(key, fragment, now) {
            Admission::Pending => {
                self.push(key, packet);
                None
            }
            admission => Some((packet, admission)),
        }
    }

    /// Queues a fragment. It is dropped if too many of its datagram are queued; if too many are
    /// queued in all, those of the first datagram to expire are dropped.
    fn push(&mut self, key: DatagramKey, packet: P) {
        let Limits { per_datagram, queued: limit, .. } = self.limits;
        if self.queued >= limit {
            self.evict(|it| !it.queued.is_empty());
        }
        let found = self.flows.find(&key.0).filter(|_| self.queued < limit);
        match found.map(|(id, _)| self.flows.get_mut(id)) {
            Some(it) if it.queued.len() < per_datagram => {
                it.queued.push(packet);
                self.queued += 1;
            }
            _ => self.dropped.push((packet, Refusal::Excess)),
        }
    }

    /// Sets the verdict of a first fragment: `None` to pass later ones, or a verdict that they
    /// share. Returns the fragments that were queued for it, in order of arrival.
    pub fn set_verdict(&mut self, key: DatagramKey, verdict: Option<u8>) -> Vec<P> {
        let Some((id, _)) = self.flows.find(&key.0) else { return Vec::new() };
        let it = self.flows.get_mut(id);
        it.refusal = verdict.map(Refusal::Denied);
        let waited = std::mem::take(&mut it.queued);
        self.queued -= waited.len();
        if it.ranges.is_complete() {
            self.remove(id, Refusal::NoFirst);
        }
        waited
    }

    /// Whether [`FragmentTracker::expire`] may find anything.
    pub fn is_due(&self, now: u64) -> bool {
        !self.dropped.is_empty() || self.flows.is_due(now)
    }

    /// Removes expired datagrams, checking at most `limit`. Returns whether none is left to check.
    pub fn expire(&mut self, now: u64, limit: usize) -> bool {
        let FragmentTracker { flows, queued, dropped, .. } = self;
        flows.expire(now, limit, |_, _, it| {
            *queued -= it.queued.len();
            dropped.extend(it.queued.into_iter().map(|waited| (waited, Refusal::NoFirst)));
        })
    }

    /// Takes the queued fragments that were dropped since the last call, with the reasons.
    pub fn take_dropped(&mut self) -> Vec<(P, Refusal)> {
        std::mem::take(&mut self.dropped)
    }

    /// Removes all datagrams.
    pub fn clear(&mut self) {
        let ids: Vec<Id> = self.flows.iter().map(|(id, ..)| id).collect();
        ids.into_iter().for_each(|id| self.remove(id, Refusal::NoFirst));
    }
}
