//! Datagrams whose fragments are under way: which fragments belong together, what the first one
//! carries, which wait for it, and which are refused (RFC 1858, RFC 3128, RFC 5722).
//!
//! [`Datagrams`] puts nothing together. A caller asks about each fragment ([`Datagrams::admit`]):
//! a first fragment is judged by what it carries, and later ones as that one was. There is no
//! clock here: callers say what time it is, in nanoseconds.

mod pieces;
#[cfg(test)]
mod tests;

use crate::flow::{Flow, Flows, Id, Tuple6};
use castanet_wire::{Icmp, Ipv4Header, Ipv6Header, Tcp, Udp, extension, ip_proto};
use pieces::{Fit, Pieces};
use std::net::Ipv6Addr;
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;
/// The zone of each family in keys.
const ZONES: [u16; 2] = [1, 2];

/// Which datagram a fragment is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key(Tuple6);

impl Key {
    /// By addresses, protocol and identification (RFC 791).
    pub fn of4(ip: &Ipv4Header) -> Key {
        let (src, dst) = (ip.src().to_ipv6_mapped(), ip.dst().to_ipv6_mapped());
        Key(Tuple6::new((src, 0), (dst, ip.id()), ip.protocol()).in_zone(ZONES[0]))
    }

    /// By addresses and identification alone: of the protocols that fragments name only the
    /// first one's counts (RFC 8200, section 4.5).
    pub fn of6(src: Ipv6Addr, dst: Ipv6Addr, id: u32) -> Key {
        let (high, low) = ((id >> u16::BITS) as u16, id as u16);
        Key(Tuple6::new((src, high), (dst, low), 0).in_zone(ZONES[1]))
    }

    /// The same of fragments that come in by an input: those of others are not taken for theirs.
    pub fn at(self, input: usize) -> Key {
        let zone = ZONES[usize::from(self.is_ip6())];
        Key(self.0.in_zone(zone + 2 * input as u16)) // inputs are fewer than 256
    }

    fn is_ip6(&self) -> bool {
        self.0.zone() % 2 == ZONES[1] % 2
    }
}

/// The headers that the first fragment of a datagram begins with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// The protocol of these bytes.
    pub protocol: u8,
    /// All headers behind the IP or fragment header, and some of what follows them.
    pub bytes: Arc<[u8]>,
}

impl Head {
    /// The most bytes that a head has.
    pub const MOST: usize = 512;
    /// How many bytes behind the headers are worth having.
    pub const PAYLOAD: usize = 64;

    /// The head of a first fragment whose headers end at `headers` of its `bytes`; nothing if
    /// they are longer than [`Head::MOST`].
    pub fn new(protocol: u8, bytes: &[u8], headers: usize) -> Option<Head> {
        let end = (headers + Head::PAYLOAD).min(Head::MOST).min(bytes.len());
        let bytes = bytes.get(..end).filter(|_| headers <= end)?;
        Some(Head { protocol, bytes: bytes.into() })
    }
}

/// How long the header of a transport protocol is that a segment begins with: 0 for protocols
/// whose headers are nobody's business here; nothing, if it is not whole.
fn header_len(protocol: u8, segment: &[u8]) -> Option<usize> {
    let length = match (protocol, Tcp::from_prefix(segment)) {
        (ip_proto::TCP, tcp) => tcp?.0.header_len().max(Tcp::LEN),
        (protocol, _) => shortest(protocol),
    };
    (length <= segment.len()).then_some(length)
}

/// Whether a segment begins with a TCP header that says that it is shorter than any, which no
/// other fragment can mend.
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

/// A fragment.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Where it begins in the datagram, in bytes.
    pub start: usize,
    /// How many bytes of the datagram it has.
    pub length: usize,
    /// Whether others follow.
    pub more: bool,
    /// The protocol that it names.
    pub protocol: u8,
    /// The headers of the datagram, if this is the first fragment and has them all.
    pub head: Option<Head>,
}

impl Piece {
    /// A fragment of IPv4, from its IP header on; nothing, if that says nothing sensible.
    pub fn of4(ip: &Ipv4Header, payload: &[u8]) -> Option<Piece> {
        let length = usize::from(ip.total_len()).checked_sub(ip.header_len())?;
        let (start, protocol) = (ip.fragment_offset(), ip.protocol());
        let payload = &payload[..length.min(payload.len())];
        if start == 0 && is_malformed(protocol, payload) {
            return None;
        }
        let first = header_len(protocol, payload).filter(|_| start == 0);
        let head = first.and_then(|headers| Head::new(protocol, payload, headers));
        Some(Piece { start, length, more: ip.more_fragments(), protocol, head })
    }

    /// A fragment of IPv6 and its datagram, from what follows its IP header; nothing, if it has no
    /// fragment header or says nothing sensible.
    pub fn of6(ip: &Ipv6Header, behind: &[u8]) -> Option<(Key, Piece)> {
        let claimed = match usize::from(ip.payload_len()) {
            0 => behind.len(),
            claimed => claimed,
        };
        let behind = &behind[..claimed.min(behind.len())];
        let upper = extension::upper_layer(ip.next_header(), behind);
        let fragment = upper.fragment?;
        let (start, protocol) = (usize::from(fragment.offset()), fragment.next_header());
        let divided = behind.get(upper.fragment_data..)?;
        let segment = behind.get(upper.offset..)?;
        // All headers are in the first fragment (RFC 7112).
        let are_whole = start == 0 && !extension::is_extension(upper.protocol);
        if are_whole && is_malformed(upper.protocol, segment) {
            return None;
        }
        let last = header_len(upper.protocol, segment).filter(|_| are_whole);
        let headers = last.map(|last| upper.offset - upper.fragment_data + last);
        let head = headers.and_then(|headers| Head::new(protocol, divided, headers));
        let length = claimed.checked_sub(upper.fragment_data)?;
        let key = Key::of6(ip.src(), ip.dst(), fragment.id());
        Some((key, Piece { start, length, more: fragment.more_fragments(), protocol, head }))
    }

    /// Whether there can be such a fragment: none is empty, or ends where no datagram does, and
    /// the next one begins at a multiple of eight.
    fn is_possible(&self) -> bool {
        let aligned = !self.more || self.length.is_multiple_of(8);
        aligned && self.length > 0 && self.start + self.length <= usize::from(u16::MAX)
    }

    /// Puts it in its place among others of its datagram, which begins with `head` if that is
    /// known; or says why it goes nowhere.
    fn fit(&self, head: Option<&Head>, pieces: &mut Pieces) -> Result<(), Refusal> {
        let is_same_first = self.start > 0 || head.is_none() || head == self.head.as_ref();
        match pieces.place(self.start, self.length, self.more) {
            _ if self.is_tiny() => Err(Refusal::Tiny),
            Fit::Apart | Fit::Again if is_same_first => Ok(()),
            Fit::Crowded => Err(Refusal::Excess),
            _ => Err(Refusal::Overlap),
        }
    }

    /// Whether it cuts the headers of its datagram in two.
    fn is_tiny(&self) -> bool {
        match self.start {
            0 => self.head.is_none(),
            start => start < shortest(self.protocol),
        }
    }
}

/// Why a fragment goes nowhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There can be no such fragment.
    Impossible,
    /// It cuts the headers of its datagram in two, or another fragment of the datagram did (RFC
    /// 1858, RFC 3128).
    Tiny,
    /// It overlaps or contradicts other fragments of its datagram, or two others did so (RFC
    /// 5722).
    Overlap,
    /// The first fragment of its datagram did not come in time.
    Lone,
    /// There is no room for it.
    Excess,
    /// The first fragment of its datagram met this fate.
    Denied(u8),
}

/// The tracker's decision about a fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It is the first: it is judged, and [`Datagrams::settle`] is told.
    First,
    /// It follows a first fragment that began with this.
    Follows(Head),
    /// The first fragment has not come: [`Datagrams::wait`] takes it.
    Waits,
    /// It goes nowhere.
    Refused(Refusal),
}

/// How much is kept, and how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Datagrams whose fragments are under way.
    pub datagrams: usize,
    /// Fragments that wait, in all.
    pub waiting: usize,
    /// Fragments that wait, of one datagram.
    pub each: usize,
    /// Nanoseconds that a fragment waits.
    pub patience: u64,
    /// Nanoseconds for which later fragments find the first.
    pub timeout: u64,
    /// Nanoseconds after which another first fragment of IPv4 begins another datagram: there are
    /// but 65 536 identifications, so datagrams of which a fragment was lost meet later ones.
    pub reuse: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            datagrams: 16 * 1024,
            waiting: 1024,
            each: 64,
            patience: 2 * SECOND,
            timeout: 30 * SECOND,
            reuse: SECOND,
        }
    }
}

/// A datagram.
#[derive(Debug)]
struct Datagram<P> {
    /// When its first known fragment came.
    since: u64,
    head: Option<Head>,
    refusal: Option<Refusal>,
    pieces: Pieces,
    waiting: Vec<P>,
}

impl<P> Default for Datagram<P> {
    fn default() -> Self {
        Datagram {
            since: 0,
            head: None,
            refusal: None,
            pieces: Pieces::default(),
            waiting: Vec::new(),
        }
    }
}

impl<P> Flow for Datagram<P> {
    type Key = Tuple6;
}

impl<P> Datagram<P> {
    /// Whether a first fragment is of another datagram than this one.
    fn is_contradicted(&self, piece: &Piece) -> bool {
        let differs = || self.head != piece.head || self.pieces.first_end() != Some(piece.length);
        self.refusal.is_some() || self.head.is_some() && differs()
    }
}

/// Datagrams whose fragments are under way, with fragments of type `P` that wait.
pub struct Datagrams<P> {
    limits: Limits,
    flows: Option<Flows<Datagram<P>>>,
    waiting: usize,
    gone: Vec<(P, Refusal)>,
}

impl<P> Default for Datagrams<P> {
    fn default() -> Self {
        Datagrams::new(Limits::default())
    }
}

impl<P> Datagrams<P> {
    /// No datagrams, and up to so many.
    pub fn new(limits: Limits) -> Self {
        Datagrams { limits, flows: None, waiting: 0, gone: Vec::new() }
    }

    /// How many datagrams are known.
    pub fn len(&self) -> usize {
        self.flows.as_ref().map_or(0, Flows::len)
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many fragments wait, or wait to be taken by [`Datagrams::take_gone`].
    pub fn waiting(&self) -> usize {
        self.waiting + self.gone.len()
    }

    /// Decides about a fragment. Fragments that waited and are refused for it are among
    /// [`Datagrams::take_gone`].
    pub fn admit(&mut self, key: Key, piece: &Piece, now: u64) -> Admission {
        if !piece.is_possible() {
            return Admission::Refused(Refusal::Impossible);
        }
        let Some(id) = self.datagram(key, piece, now) else {
            return Admission::Refused(Refusal::Excess);
        };
        let Some(flows) = &mut self.flows else { return Admission::Waits };
        let it = flows.get_mut(id);
        if let Some(refusal) = it.refusal {
            return Admission::Refused(refusal);
        }
        if let Err(refusal) = piece.fit(it.head.as_ref(), &mut it.pieces) {
            self.refuse(id, refusal, now);
            return Admission::Refused(refusal);
        }
        self.admitted(id, piece, now)
    }

    /// The answer that [`Datagrams::admit`] would give, without taking note of the fragment. One
    /// that would find too many others waiting is refused for that.
    pub fn foresee(&self, key: Key, piece: &Piece, now: u64) -> Admission {
        if !piece.is_possible() {
            return Admission::Refused(Refusal::Impossible);
        }
        let flows = self.flows.as_ref();
        let known = flows.and_then(|flows| Some((flows.find(&key.0)?.0, flows)));
        let known = known.filter(|&(id, flows)| self.goes_on(flows, id, (key, piece), now));
        let known = known.map(|(id, flows)| flows.get(id));
        if let Some(refusal) = known.and_then(|it| it.refusal) {
            return Admission::Refused(refusal);
        }
        let mut pieces = known.map_or_else(Pieces::default, |it| it.pieces.clone());
        let head = known.and_then(|it| it.head.as_ref());
        if let Err(refusal) = piece.fit(head, &mut pieces) {
            return Admission::Refused(refusal);
        }
        let is_crowded = known.is_some_and(|it| it.waiting.len() >= self.limits.each);
        match head {
            _ if piece.start == 0 => Admission::First,
            Some(head) => Admission::Follows(head.clone()),
            None if is_crowded => Admission::Refused(Refusal::Excess),
            None => Admission::Waits,
        }
    }

    /// Takes in a fragment that has found its place.
    fn admitted(&mut self, id: Id, piece: &Piece, now: u64) -> Admission {
        let Some(flows) = &mut self.flows else { return Admission::Waits };
        if piece.start == 0 {
            flows.keep(id, now + self.limits.timeout).head.clone_from(&piece.head);
            return Admission::First;
        }
        let it = flows.get(id);
        let Some(head) = it.head.clone() else { return Admission::Waits };
        if it.pieces.are_all() {
            self.remove(id, Refusal::Lone);
        }
        Admission::Follows(head)
    }

    /// The datagram of a fragment, a new one if there is none; nothing if there is no room.
    fn datagram(&mut self, key: Key, piece: &Piece, now: u64) -> Option<Id> {
        let limits = self.limits;
        let flows = self.flows.get_or_insert_with(|| Flows::new(limits.datagrams, now));
        if let Some((id, _)) = flows.find(&key.0) {
            if let Some(flows) = &self.flows
                && self.goes_on(flows, id, (key, piece), now)
            {
                return Some(id);
            }
            self.remove(id, Refusal::Lone);
        }
        self.make_room();
        let patience = if piece.start == 0 { limits.timeout } else { limits.patience };
        let new = Datagram { since: now, ..Datagram::default() };
        self.flows.as_mut()?.insert(key.0, new, now + patience, |_| false).ok()
    }

    /// Whether a datagram is the one of a fragment with its key, for it is neither over nor is the
    /// fragment the first of another.
    fn goes_on(
        &self,
        flows: &Flows<Datagram<P>>,
        id: Id,
        (key, piece): (Key, &Piece),
        now: u64,
    ) -> bool {
        let it = flows.get(id);
        let is_other = !key.is_ip6()
            && piece.start == 0
            && now >= it.since.saturating_add(self.limits.reuse)
            && it.is_contradicted(piece);
        !is_other && flows.ends(id) > now
    }

    /// Lets the datagram go that would end first, if there are as many as there may be.
    fn make_room(&mut self) {
        let most = self.limits.datagrams;
        let Some(flows) = self.flows.as_mut().filter(|flows| flows.len() >= most) else { return };
        if let Some((_, gone)) = flows.evict(|_| true) {
            self.let_go(gone, Refusal::Excess);
        }
    }

    /// Refuses all fragments of a datagram from now on, and those that wait.
    fn refuse(&mut self, id: Id, refusal: Refusal, now: u64) {
        let Some(flows) = &mut self.flows else { return };
        let it = flows.keep(id, now + self.limits.timeout);
        let refused = Datagram { since: it.since, refusal: Some(refusal), ..Datagram::default() };
        let before = std::mem::replace(it, refused);
        self.let_go(before, refusal);
    }

    fn remove(&mut self, id: Id, refusal: Refusal) {
        if let Some(flows) = &mut self.flows {
            let (_, gone) = flows.remove(id);
            self.let_go(gone, refusal);
        }
    }

    fn let_go(&mut self, datagram: Datagram<P>, refusal: Refusal) {
        self.waiting -= datagram.waiting.len();
        self.gone.extend(datagram.waiting.into_iter().map(|waited| (waited, refusal)));
    }

    /// Takes a fragment of which [`Datagrams::admit`] has said that it waits. Gives it back, with
    /// what becomes of it, if its first one came meanwhile.
    pub fn wait(
        &mut self,
        key: Key,
        piece: &Piece,
        now: u64,
        fragment: P,
    ) -> Option<(P, Admission)> {
        match self.admit(key, piece, now) {
            Admission::Waits => {
                self.hold(key, fragment);
                None
            }
            admission => Some((fragment, admission)),
        }
    }

    /// Takes a fragment that waits. It goes where there are too many of its datagram; where
    /// there are too many in all, those of the datagram go that would go first.
    fn hold(&mut self, key: Key, fragment: P) {
        if self.waiting >= self.limits.waiting
            && let Some(flows) = &mut self.flows
            && let Some((_, gone)) = flows.evict(|it| !it.waiting.is_empty())
        {
            self.let_go(gone, Refusal::Excess);
        }
        let Limits { each, waiting: most, .. } = self.limits;
        let flows = self.flows.as_mut().filter(|_| self.waiting < most);
        let found = flows.and_then(|flows| {
            let (id, _) = flows.find(&key.0)?;
            Some(flows.get_mut(id)).filter(|it| it.waiting.len() < each)
        });
        match found {
            Some(it) => {
                it.waiting.push(fragment);
                self.waiting += 1;
            }
            None => self.gone.push((fragment, Refusal::Excess)),
        }
    }

    /// Hears what became of a first fragment: nothing but good, or a fate that later ones share.
    /// Gives those that waited for it, in the order in which they came.
    pub fn settle(&mut self, key: Key, fate: Option<u8>) -> Vec<P> {
        let Some(flows) = &mut self.flows else { return Vec::new() };
        let Some((id, _)) = flows.find(&key.0) else { return Vec::new() };
        let it = flows.get_mut(id);
        it.refusal = fate.map(Refusal::Denied);
        let waited = std::mem::take(&mut it.waiting);
        self.waiting -= waited.len();
        if it.pieces.are_all() {
            self.remove(id, Refusal::Lone);
        }
        waited
    }

    /// Whether [`Datagrams::expire`] may find anything.
    pub fn is_due(&self, now: u64) -> bool {
        !self.gone.is_empty() || self.flows.as_ref().is_some_and(|flows| flows.is_due(now))
    }

    /// Forgets datagrams whose time is over, looking at `most` of them. Whether there are no
    /// more of these.
    pub fn expire(&mut self, now: u64, most: usize) -> bool {
        let Datagrams { flows: Some(flows), waiting, gone, .. } = self else { return true };
        flows.expire(now, most, |_, it| {
            *waiting -= it.waiting.len();
            gone.extend(it.waiting.into_iter().map(|waited| (waited, Refusal::Lone)));
        })
    }

    /// The fragments that waited in vain since this was asked last, and why.
    pub fn take_gone(&mut self) -> Vec<(P, Refusal)> {
        std::mem::take(&mut self.gone)
    }

    /// Forgets all datagrams.
    pub fn clear(&mut self) {
        let ids: Vec<Id> = self.flows.iter().flat_map(Flows::iter).map(|(id, ..)| id).collect();
        ids.into_iter().for_each(|id| self.remove(id, Refusal::Lone));
    }

    /// Goes on with what another one kept before, if this keeps nothing.
    pub fn go_on(&mut self, before: Datagrams<P>) {
        if self.is_empty() && self.gone.is_empty() {
            *self = before;
        }
    }
}
