//! The table of connections: which one a packet belongs to, and how one begins.

use super::fragments::Fragments;
use super::key::{Ends, Family};
use super::mapping::{Direction, Mapped};
use super::own::{Lists, Own};
use super::shelf::Shelf;
use super::side::{Hit, Side};
use super::tracked::Tracked;
use super::wish::Wish;
use crate::field::Layer;
use crate::headers::Headers;
use crate::matcher::{Places, Reference};
use crate::rules::{Entry, Timeouts};
use castanet_kit::flow::{Counts, Id, Tuple4, Tuple6};
use castanet_wire::{Icmp, icmp, icmp6};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// How many fragments that are over are looked at for each burst, at the most.
const EXPIRE: usize = 64;

/// Connections, up to a limit.
pub(crate) struct Connections {
    pub(super) four: Side<Tuple4>,
    pub(super) six: Side<Tuple6>,
    fragments: Fragments,
    pub(super) lists: Lists,
    pub(super) shelf: Shelf,
    /// Room for the rules of one that begins.
    own: Vec<Reference>,
    limit: usize,
    refused: u64,
    /// How many began and how many went since the packets of the burst were looked up.
    news: (u32, u32),
}

impl Default for Connections {
    fn default() -> Self {
        let (four, six, fragments, lists, shelf, own) = Default::default();
        let (limit, refused, news) = (usize::MAX, 0, (0, 0));
        Connections { four, six, fragments, lists, shelf, own, limit, refused, news }
    }
}

/// The connection of a packet. Small, for it is handed on by value: what is larger goes through
/// memory, where a CPU waits for a copy of what it has just written piece by piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    hit: Hit,
    /// Where the packet begins that it quotes, if it is an ICMP error.
    quoted: Option<NonZeroU32>,
    is_ip6: bool,
    /// Which way the packet goes.
    pub(crate) direction: Direction,
    /// Whether the packet has whole ports and is no fragment.
    has_ports: bool,
}

const _: () = assert!(size_of::<Option<Found>>() == 16);

/// A packet of a burst that may be of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Looked {
    /// It has to be looked at by itself.
    #[default]
    Alone,
    /// With others of IPv4: its number there, and whether its ends are in the other order.
    Four((u32, bool)),
    /// The same of IPv6.
    Six((u32, bool)),
}

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
    pub(crate) fn clear(&mut self) {
        *self = Connections { limit: self.limit, ..Connections::default() };
    }

    /// Goes on under other rules: connections keep those that have heirs.
    pub(crate) fn adopt(&mut self, heirs: &HashMap<Reference, Reference>) {
        let Connections { four, six, lists, own, .. } = self;
        let old = std::mem::take(lists);
        let mut new = |of: &Own| {
            own.clear();
            own.extend(old.rules(of).iter().filter_map(|rule| heirs.get(rule)));
            lists.own(own)
        };
        four.each(|tracked| tracked.own = new(&tracked.own));
        six.each(|tracked| tracked.own = new(&tracked.own));
    }

    /// Sets how many there may be.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.four.set_limit(limit);
        self.six.set_limit(limit);
    }

    /// Forgets some that are over.
    pub(crate) fn expire(&mut self, now: u64) {
        self.forget(now, EXPIRE);
        self.fragments.expire(now, EXPIRE);
    }

    /// Forgets connections that are over, looking at `most` at the most of each family.
    /// Whether there are no more of them.
    pub(crate) fn forget(&mut self, now: u64, most: usize) -> bool {
        let before = self.len();
        let four = self.four.forget(now, most, &mut self.shelf);
        let six = self.six.forget(now, most, &mut self.shelf);
        self.news.1 += u32::from(self.len() < before);
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
    fn changes(&self, found: &Found) -> bool {
        let changes = match found.is_ip6 {
            false => self.four.tracked(found.hit.id).map(Tracked::changes),
            true => self.six.tracked(found.hit.id).map(Tracked::changes),
        };
        changes.unwrap_or_default()
    }

    /// Begins a burst: its packets come by [`Connections::ask`].
    pub(crate) fn begin_burst(&mut self) {
        self.four.begin();
        self.six.begin();
    }

    /// The next packet of the burst.
    #[inline]
    pub(crate) fn ask(&mut self, bytes: &[u8], headers: &Headers) -> Looked {
        if headers.is_fragment || !matches!(headers.upper, Layer::Tcp | Layer::Udp) {
            return Looked::Alone;
        }
        let looked = match headers.is_ip6 {
            false => self.four.ask(bytes, headers).map(Looked::Four),
            true => self.six.ask(bytes, headers).map(Looked::Six),
        };
        looked.unwrap_or_default()
    }

    /// The same for one that has ports, is no fragment, and of IPv4.
    #[inline]
    pub(crate) fn ask_four(&mut self, bytes: &[u8], headers: &Headers) -> Looked {
        self.four.ask(bytes, headers).map(Looked::Four).unwrap_or_default()
    }

    /// Looks for the connections of all packets of the burst.
    pub(crate) fn look(&mut self) {
        self.four.look();
        self.six.look();
        self.news = (0, 0);
    }

    /// Whether a packet of the burst had a connection when it was looked up.
    #[inline]
    pub(crate) fn is_known(&self, looked: Looked) -> bool {
        match looked {
            Looked::Alone => false,
            Looked::Four(at) => self.four.looked(at).is_some(),
            Looked::Six(at) => self.six.looked(at).is_some(),
        }
    }

    /// The connection that a packet of the burst belongs to, if any.
    #[inline]
    pub(crate) fn find(
        &mut self,
        looked: Looked,
        bytes: &[u8],
        headers: &Headers,
        now: u64,
    ) -> Option<Found> {
        // What was found is good as long as nobody went, that nothing was, as long as
        // nobody came.
        let is_good = |hit: Option<Hit>| match hit {
            Some(_) => self.news.1 == 0,
            None => self.news.0 == 0,
        };
        let (is_ip6, hit) = match looked {
            Looked::Alone => return self.find_alone(bytes, headers, now),
            Looked::Four(at) => match self.four.looked(at) {
                hit if is_good(hit) => (false, hit?),
                _ => (false, self.four.look_again(at)?),
            },
            Looked::Six(at) => match self.six.looked(at) {
                hit if is_good(hit) => (true, hit?),
                _ => (true, self.six.look_again(at)?),
            },
        };
        self.found(is_ip6, hit, (None, true), now)
    }

    /// The ends of a packet, and the packet that an ICMP error quotes; nothing, if
    /// it belongs to no connection of any kind.
    fn ends(&mut self, bytes: &[u8], headers: &Headers, now: u64) -> Option<(Ends, Option<usize>)> {
        if let Some(at) = quoted(bytes, headers) {
            let inner = Headers::of(bytes.get(..headers.end)?, at)?;
            let ends = Ends::of_packet(&bytes[..headers.end], &inner)?;
            return Some((ends, Some(at)));
        }
        let ends = Ends::of_packet(bytes, headers)?;
        Some((self.fragments.complete(ends, headers, now)?, None))
    }

    #[inline(never)]
    fn find_alone(&mut self, bytes: &[u8], headers: &Headers, now: u64) -> Option<Found> {
        if self.len() == 0 {
            return None;
        }
        let (ends, quoted) = self.ends(bytes, headers, now)?;
        let hit = match ends.is_ip6 {
            false => self.four.find(&ends)?,
            true => self.six.find(&ends)?,
        };
        let quoted = quoted.and_then(|at| NonZeroU32::new(at as u32));
        self.found(ends.is_ip6, hit, (quoted, false), now)
    }

    /// A connection that is not over, of a packet that quotes another, or has whole ports.
    #[inline(always)]
    fn found(
        &mut self,
        is_ip6: bool,
        hit: Hit,
        packet: (Option<NonZeroU32>, bool),
        now: u64,
    ) -> Option<Found> {
        let Connections { four, six, shelf, .. } = self;
        let found = match is_ip6 {
            false => four.current(hit.id, now, shelf).map(|it| Found::new(it, hit, packet)),
            true => six.current(hit.id, now, shelf).map(|it| Found::new(it, hit, packet)),
        };
        self.news.1 += u32::from(found.is_none());
        found
    }

    /// Takes note of a packet of a connection.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        found: &Found,
        bytes: &[u8],
        headers: &Headers,
        timeouts: &Timeouts,
        now: u64,
    ) {
        // An error is no sign of life.
        if found.quoted.is_some() {
            return;
        }
        let seen = (headers.protocol, headers.tcp_flags(bytes));
        match found.is_ip6 {
            false => self.four.keep(found.hit.id, found.direction, seen, timeouts, now),
            true => self.six.keep(found.hit.id, found.direction, seen, timeouts, now),
        }
    }

    /// Forgets a connection.
    pub(crate) fn remove(&mut self, found: &Found) {
        self.news.1 += 1;
        match found.is_ip6 {
            false => self.four.remove(found.hit.id, &mut self.shelf),
            true => self.six.remove(found.hit.id, &mut self.shelf),
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
        (bytes, headers): (&[u8], &Headers),
        entries: impl Iterator<Item = &'r Arc<Entry>> + Clone,
        (places, timeouts): (&Places, &Timeouts),
        random: impl FnMut() -> u64,
        now: u64,
    ) -> Option<Fresh> {
        let (ends, quoted) = self.ends(bytes, headers, now)?;
        if quoted.is_some() || headers.is_later_fragment {
            return None;
        }
        self.own.clear();
        self.own.extend(entries.clone().map(|entry| places.reference(entry.slot as u32)));
        let own = self.lists.own(&self.own);
        let mut wish = Wish::new(ends, random);
        entries.for_each(|entry| wish.follow(&entry.plan));
        let is_there = |ends: &Ends| match ends.is_ip6 {
            false => self.four.find(ends).is_some(),
            true => self.six.find(ends).is_some(),
        };
        if !wish.settle(is_there) {
            return Some(Fresh::NoPort);
        }
        if !self.make_room(ends.is_ip6) {
            self.refused += 1;
            return Some(Fresh::Full);
        }
        let Connections { four, six, shelf, limit, .. } = self;
        let (flags, shifts) = (headers.tcp_flags(bytes), shelf.put(wish.shifts));
        let of = Beginning { from: ends, to: wish.ends, own, shifts, flags };
        let begun = match ends.is_ip6 {
            false => of.begin(four, timeouts, *limit, now),
            true => of.begin(six, timeouts, *limit, now),
        };
        let Some(begun) = begun else {
            shelf.take(shifts);
            return Some(Fresh::Full);
        };
        self.news.0 += 1;
        Some(Fresh::Begun(begun))
    }

    /// Sees to it that there is room for one more: somebody goes who may, of the same family
    /// or else of the other.
    fn make_room(&mut self, is_ip6: bool) -> bool {
        if self.len() < self.limit {
            return true;
        }
        self.news.1 += 1;
        let Connections { four, six, shelf, .. } = self;
        match is_ip6 {
            false => four.evict(shelf) || six.evict(shelf),
            true => six.evict(shelf) || four.evict(shelf),
        }
    }
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
        Some(Found::new(&tracked, Hit { id, is_second: false, swapped }, (None, false)))
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
        (quoted, has_ports): (Option<NonZeroU32>, bool),
    ) -> Found {
        let direction = tracked.direction(hit.is_second, hit.swapped);
        // What is quoted went the other way than what quotes it.
        let direction = if quoted.is_some() { direction.opposite() } else { direction };
        Found { hit, quoted, is_ip6: K::IS_IP6, direction, has_ports }
    }

    fn quoted(&self) -> Option<usize> {
        self.quoted.map(|at| at.get() as usize)
    }
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
