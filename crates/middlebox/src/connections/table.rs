//! The table of connections: which one a packet belongs to, and how one begins.

use super::asked::{Asked, Looked};
use super::key::{Ends, Family};
use super::mapping::{Direction, Mapped, Shifts};
use super::own::{Lists, Own};
use super::shelf::Shelf;
use super::side::{Hit, Noted, Side};
use super::tracked::Tracked;
use super::wish::Wish;
use crate::field::Layer;
use crate::headers::Headers;
use crate::matcher::{Places, Reference};
use crate::rules::{Entry, Rules, Timeouts};
use castanet_kit::flow::{Counts, ExclusiveAccess, Id, Tuple4, Tuple6};
use castanet_wire::{Icmp, icmp, icmp6};
use std::num::NonZeroU32;
use std::sync::Arc;

/// Connections, up to a limit.
pub(crate) struct Connections {
    pub(super) four: Side<Tuple4>,
    pub(super) six: Side<Tuple6>,
    pub(super) lists: Lists,
    pub(super) shelf: Shelf,
    /// Room for the rules of one that begins.
    own: Vec<Reference>,
    limit: usize,
    refused: u64,
    /// Whose rules connections remember; nothing, before there are any.
    rules: Option<Arc<Rules>>,
}

impl Default for Connections {
    fn default() -> Self {
        Connections {
            four: Side::default(),
            six: Side::default(),
            lists: Lists::default(),
            shelf: Shelf::default(),
            own: Vec::new(),
            limit: usize::MAX,
            refused: 0,
            rules: None,
        }
    }
}

/// Where the packet begins that another quotes, if that is an ICMP error.
type Quoted = Option<NonZeroU32>;

/// The connection of a packet. Small, for it is handed on by value: what is larger goes through
/// memory, where a CPU waits for a copy of what it has just written piece by piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    hit: Hit,
    quoted: Quoted,
    is_ip6: bool,
    /// Which way the packet goes.
    pub(crate) direction: Direction,
    /// Whether the packet has whole ports and is no fragment.
    has_ports: bool,
}

const _: () = assert!(size_of::<Option<Found>>() == 16);

/// What a burst's look says of a packet's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finding {
    /// It belongs to this one.
    Of(Found),
    /// It belongs to none.
    None,
    /// Only who has all connections to himself can say.
    Wait,
}

const _: () = assert!(size_of::<Finding>() == 16);

/// How it ended when a connection was to begin.
pub(crate) enum Fresh {
    /// It began.
    Begun(Found),
    /// There is no room for it.
    Full,
    /// There is no port for it.
    NoPort,
}

impl Connections {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.four.len() + self.six.len()
    }

    /// What became of them.
    pub(crate) fn counts(&self) -> Counts {
        let (four, six) = (self.four.counts(), self.six.counts());
        Counts {
            added: four.added + six.added,
            expired: four.expired + six.expired,
            evicted: four.evicted + six.evicted,
            refused: four.refused + six.refused + self.refused,
        }
    }

    /// Forgets all.
    fn clear(&mut self) {
        let (limit, rules) = (self.limit, self.rules.clone());
        *self = Connections { limit, rules, ..Connections::default() };
    }

    /// Goes on with what others kept before, if they did.
    pub(crate) fn go_on(&mut self, before: Connections) {
        if before.rules.is_some() {
            *self = before;
        }
    }

    /// Goes on under other rules: connections remember those that stay. Workers all say so; the
    /// first is heard.
    pub(crate) fn follow(&mut self, rules: &Arc<Rules>, limit: usize) {
        self.set_limit(limit);
        match self.rules.replace(rules.clone()) {
            Some(before) if !before.is_akin(rules) || before.flushes < rules.flushes => {
                self.clear();
            }
            // Who is behind has the older ones.
            Some(before) if before.flushes > rules.flushes => self.rules = Some(before),
            _ => {}
        }
    }

    /// Sets how many there may be.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.four.set_limit(limit);
        self.six.set_limit(limit);
    }

    /// Whether there may be some that are over.
    #[inline]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.four.is_due(now) || self.six.is_due(now)
    }

    /// Forgets connections that are over, looking at `most` at the most of each family.
    /// Whether there are no more of them.
    pub(crate) fn forget(&mut self, now: u64, most: usize) -> bool {
        let four = self.four.forget(now, most, &mut self.shelf);
        let six = self.six.forget(now, most, &mut self.shelf);
        four && six
    }

    /// The rules of a connection, as far as they are still there.
    pub(super) fn rules_of<'a>(
        &'a self,
        own: &'a Own,
        places: &'a Places,
    ) -> impl Iterator<Item = (u32, &'a Arc<Entry>)> + Clone + 'a {
        places.still_there(self.lists.rules(own))
    }

    /// The rules of a packet's connection that are still there, with their places.
    #[inline]
    pub(crate) fn rules<'a>(
        &'a self,
        found: &Found,
        places: &'a Places,
    ) -> impl Iterator<Item = (u32, &'a Arc<Entry>)> + Clone + 'a {
        places.still_there(self.own(found))
    }

    /// The rules of a packet's connection, if they are still there or not.
    #[inline]
    pub(crate) fn own(&self, found: &Found) -> &[Reference] {
        let own = match found.is_ip6 {
            false => self.four.tracked(found.hit.id).map(|it| &it.own),
            true => self.six.tracked(found.hit.id).map(|it| &it.own),
        };
        own.map_or(&[], |own| self.lists.rules(own))
    }

    /// Whether anything changes in packets of the connection.
    #[inline]
    pub(crate) fn changes(&self, found: &Found) -> bool {
        let changes = match found.is_ip6 {
            false => self.four.tracked(found.hit.id).map(Tracked::changes),
            true => self.six.tracked(found.hit.id).map(Tracked::changes),
        };
        changes.unwrap_or_default()
    }

    /// The connection that a packet of the burst belongs to, if any.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        (asked, looked): (&Asked, Looked),
        bytes: &[u8],
        headers: &Headers,
        now: u64,
    ) -> Finding {
        let (is_ip6, hit) = match looked {
            Looked::Alone => return self.find_alone(bytes, headers, now),
            Looked::Four(at) => (false, asked.four.looked(at)),
            Looked::Six(at) => (true, asked.six.looked(at)),
        };
        let Some(hit) = hit else { return Finding::None };
        self.found(is_ip6, hit, (None, true), now)
    }

    /// The connection that a packet of the burst belongs to now, if any; forgets it if it is
    /// over.
    pub(crate) fn find_now(
        &mut self,
        (asked, looked): (&Asked, Looked),
        bytes: &[u8],
        headers: &Headers,
        now: u64,
    ) -> Option<Found> {
        let (is_ip6, hit, packet) = match looked {
            Looked::Alone => {
                let (ends, quoted) = ends(bytes, headers)?;
                (ends.is_ip6, self.of_ends(&ends)?, (quoted, false))
            }
            Looked::Four(at) => (false, asked.four.look_again(at, &self.four)?, (None, true)),
            Looked::Six(at) => (true, asked.six.look_again(at, &self.six)?, (None, true)),
        };
        if let Finding::Of(found) = self.found(is_ip6, hit, packet, now) {
            return Some(found);
        }
        match is_ip6 {
            false => self.four.end(hit.id, now, &mut self.shelf),
            true => self.six.end(hit.id, now, &mut self.shelf),
        }
        None
    }

    fn of_ends(&self, ends: &Ends) -> Option<Hit> {
        match ends.is_ip6 {
            false => self.four.find(ends),
            true => self.six.find(ends),
        }
    }

    #[inline(never)]
    fn find_alone(&self, bytes: &[u8], headers: &Headers, now: u64) -> Finding {
        if self.len() == 0 {
            return Finding::None;
        }
        let Some((ends, quoted)) = ends(bytes, headers) else { return Finding::None };
        let Some(hit) = self.of_ends(&ends) else { return Finding::None };
        self.found(ends.is_ip6, hit, (quoted, false), now)
    }

    /// The connection of a packet that quotes another, or has whole ports, if it is not over.
    #[inline(always)]
    fn found(&self, is_ip6: bool, hit: Hit, packet: (Quoted, bool), now: u64) -> Finding {
        match is_ip6 {
            false => match self.four.current(hit.id, now) {
                Some(tracked) => Finding::Of(Found::new(tracked, hit, packet)),
                None => Finding::Wait,
            },
            true => match self.six.current(hit.id, now) {
                Some(tracked) => Finding::Of(Found::new(tracked, hit, packet)),
                None => Finding::Wait,
            },
        }
    }

    /// Takes note of a packet of a connection.
    #[inline]
    pub(crate) fn keep(
        &self,
        found: &Found,
        bytes: &[u8],
        headers: &Headers,
        timeouts: &Timeouts,
        now: u64,
    ) -> Result<(), ExclusiveAccess> {
        // An error is no sign of life.
        if found.quoted.is_some() {
            return Ok(());
        }
        let packet = found.noted(bytes, headers);
        match found.is_ip6 {
            false => self.four.keep(found.hit.id, packet, timeouts, now),
            true => self.six.keep(found.hit.id, packet, timeouts, now),
        }
    }

    /// The same for who has them to himself.
    pub(crate) fn keep_now(
        &mut self,
        found: &Found,
        bytes: &[u8],
        headers: &Headers,
        timeouts: &Timeouts,
        now: u64,
    ) {
        if found.quoted.is_some() {
            return;
        }
        let packet = found.noted(bytes, headers);
        match found.is_ip6 {
            false => self.four.keep_now(found.hit.id, packet, timeouts, now),
            true => self.six.keep_now(found.hit.id, packet, timeouts, now),
        }
    }

    /// Forgets a connection.
    pub(crate) fn remove(&mut self, found: &Found) {
        match found.is_ip6 {
            false => self.four.remove(found.hit.id, &mut self.shelf),
            true => self.six.remove(found.hit.id, &mut self.shelf),
        }
    }

    /// The ends of the packet that began a connection.
    pub(crate) fn beginning(&self, found: &Found) -> Option<Ends> {
        match found.is_ip6 {
            false => self.four.beginning(found.hit.id),
            true => self.six.beginning(found.hit.id),
        }
    }

    /// What becomes of a packet of a connection.
    pub(crate) fn mapped(&self, found: &Found) -> Option<Mapped> {
        match found.is_ip6 {
            false => self.four.mapped(found.hit, found.quoted(), &self.shelf),
            true => self.six.mapped(found.hit, found.quoted(), &self.shelf),
        }
    }

    /// What becomes of the ends of a packet, where that is a matter of ends alone.
    #[inline]
    pub(crate) fn exchanged(&self, found: &Found) -> Exchanged {
        if !self.changes(found) {
            return Exchanged::Nothing;
        }
        if found.is_ip6 || !found.has_ports {
            return Exchanged::More;
        }
        match self.four.tracked(found.hit.id) {
            Some(tracked) if tracked.shifts.is_none() => {
                self.four.exchanged(found.hit).map_or(Exchanged::Nothing, Exchanged::Ends)
            }
            _ => Exchanged::More,
        }
    }

    /// Begins the connection of a packet that these stateful rules are about, and
    /// that belongs to none; nothing, if it cannot belong to any.
    pub(crate) fn begin<'r>(
        &mut self,
        seen: (&[u8], &Headers),
        entries: impl Iterator<Item = &'r Arc<Entry>> + Clone,
        timeouts: &Timeouts,
        random: impl FnMut() -> u64,
        now: u64,
    ) -> Option<Fresh> {
        Some(match self.propose(seen, entries.clone(), random)? {
            Some(proposal) => self.establish(proposal, entries, timeouts, now),
            None => Fresh::NoPort,
        })
    }

    /// Proposes a connection for a packet that these stateful rules are about, and that
    /// belongs to none: nothing, if it cannot belong to any, and no proposal, if there is no port
    /// for it.
    pub(crate) fn propose<'r>(
        &self,
        (bytes, headers): (&[u8], &Headers),
        entries: impl Iterator<Item = &'r Arc<Entry>>,
        random: impl FnMut() -> u64,
    ) -> Option<Option<Proposal>> {
        let (ends, quoted) = ends(bytes, headers)?;
        if quoted.is_some() || headers.is_later_fragment {
            return None;
        }
        let mut wish = Wish::new(ends, random);
        entries.for_each(|entry| wish.follow(&entry.plan));
        let is_settled = wish.settle(|ends| self.of_ends(ends).is_some());
        let (to, shifts, flags) = (wish.ends, wish.shifts, headers.tcp_flags(bytes));
        Some(is_settled.then_some(Proposal { from: ends, to, shifts, flags }))
    }

    /// Begins a connection that was proposed, of these rules.
    pub(crate) fn establish<'r>(
        &mut self,
        Proposal { from, to, shifts, flags }: Proposal,
        entries: impl Iterator<Item = &'r Arc<Entry>>,
        timeouts: &Timeouts,
        now: u64,
    ) -> Fresh {
        if !self.make_room(from.is_ip6) {
            self.refused += 1;
            return Fresh::Full;
        }
        self.own.clear();
        self.own.extend(entries.map(|entry| Reference::to(entry)));
        let Connections { four, six, shelf, limit, lists, own, .. } = self;
        let shifts = shelf.put(shifts);
        let of = Beginning { from, to, own: lists.own(own), shifts, flags };
        let begun = match from.is_ip6 {
            false => of.begin(four, timeouts, *limit, now),
            true => of.begin(six, timeouts, *limit, now),
        };
        let Some(begun) = begun else {
            shelf.take(shifts);
            return Fresh::Full;
        };
        Fresh::Begun(begun)
    }

    /// Whether there is room for one more, or somebody may go.
    pub(crate) fn has_room(&self) -> bool {
        self.len() < self.limit || self.four.may_evict() || self.six.may_evict()
    }

    /// Sees to it that there is room for one more: somebody goes who may, of the same family
    /// or else of the other.
    fn make_room(&mut self, is_ip6: bool) -> bool {
        if self.len() < self.limit {
            return true;
        }
        let Connections { four, six, shelf, .. } = self;
        match is_ip6 {
            false => four.evict(shelf) || six.evict(shelf),
            true => six.evict(shelf) || four.evict(shelf),
        }
    }
}

/// A connection that may be begun: its ends before and after translation.
pub(crate) struct Proposal {
    from: Ends,
    to: Ends,
    shifts: Shifts,
    flags: u8,
}

/// A connection that begins.
struct Beginning {
    from: Ends,
    to: Ends,
    own: Own,
    shifts: Option<NonZeroU32>,
    flags: u8,
}

impl Beginning {
    fn begin<K: Family>(
        &self,
        side: &mut Side<K>,
        timeouts: &Timeouts,
        limit: usize,
        now: u64,
    ) -> Option<Found> {
        let (key, mut tracked) = Tracked::<K>::new(&self.from, &self.to);
        (tracked.own, tracked.shifts) = (self.own, self.shifts);
        tracked.see(Direction::Forward, self.flags);
        let until = now + tracked.timeout(self.from.proto, timeouts);
        let id: Id = side.insert((key, tracked), until, limit, now)?;
        let swapped = K::of(&self.from).ordered().1;
        let hit = Hit { id, is_second: false, swapped };
        side.tracked(id).map(|tracked| Found::new(tracked, hit, (None, false)))
    }
}

/// What becomes of the ends of a packet.
pub(crate) enum Exchanged {
    /// Nothing.
    Nothing,
    /// They become those of this key, and nothing else changes.
    Ends(Tuple4),
    /// More than that, or something else.
    More,
}

impl Found {
    #[inline]
    fn new<K: Family>(
        tracked: &Tracked<K>,
        hit: Hit,
        (quoted, has_ports): (Quoted, bool),
    ) -> Found {
        let direction = tracked.direction(hit.is_second, hit.swapped);
        // What is quoted went the other way than what quotes it.
        let direction = if quoted.is_some() { direction.opposite() } else { direction };
        Found { hit, quoted, is_ip6: K::IS_IP6, direction, has_ports }
    }

    /// Whether it is one of IPv6.
    pub(super) fn is_ip6(&self) -> bool {
        self.is_ip6
    }

    /// Its place among those of its family.
    pub(super) fn id(&self) -> Id {
        self.hit.id
    }

    fn quoted(&self) -> Option<usize> {
        self.quoted.map(|at| at.get() as usize)
    }

    #[inline]
    fn noted(&self, bytes: &[u8], headers: &Headers) -> Noted {
        let (proto, tcp_flags) = (headers.protocol, headers.tcp_flags(bytes));
        Noted { direction: self.direction, proto, tcp_flags }
    }
}

/// The ends of a packet as far as it says them itself, and where the packet begins that an ICMP
/// error quotes.
fn ends(bytes: &[u8], headers: &Headers) -> Option<(Ends, Quoted)> {
    let Some(at) = quoted(bytes, headers) else {
        return Some((Ends::of_packet(bytes, headers)?, None));
    };
    let bytes = bytes.get(..headers.end)?;
    let inner = Headers::quoted(bytes, at)?;
    Some((Ends::of_packet(bytes, &inner)?, NonZeroU32::new(at as u32)))
}

/// Whether it is an ICMP error, which quotes another packet.
pub(crate) fn quotes(bytes: &[u8], headers: &Headers) -> bool {
    quoted(bytes, headers).is_some()
}

/// Where the packet begins that an ICMP error quotes.
fn quoted(bytes: &[u8], headers: &Headers) -> Option<usize> {
    if headers.is_later_fragment || !matches!(headers.upper, Layer::Icmp | Layer::Icmp6) {
        return None;
    }
    let (message, _) = Icmp::from_prefix(bytes.get(headers.transport..)?)?;
    let is_error = match headers.is_ip6 {
        false => icmp::is_error(message.kind()),
        true => icmp6::is_error(message.kind()),
    };
    is_error.then_some(headers.transport + Icmp::LEN)
}
