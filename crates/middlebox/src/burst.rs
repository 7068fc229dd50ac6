//! What becomes of a burst of packets.

use crate::books::Books;
use crate::connections::{Connections, Ends, Exchanged, Finding, Found, Fresh, Looked, exchange};
use crate::exits::Exit;
use crate::fragments::HeldFragment;
use crate::headers::{Headers, NonIp};
use crate::holds::Seen;
use crate::interfaces::Interfaces;
use crate::judge::{is_dropped, rewrite};
use crate::matcher::{ACCEPTS, CHANGES, DROPS, STATEFUL, VAGUE};
use crate::rules::{Entry, Other, Rules};
use castanet_engine::prelude::*;
use castanet_kit::flow::ExclusiveAccess;
use castanet_kit::fragment_tracker::FragmentTracker;
use std::sync::Arc;

/// How many connections that are over are looked at for each burst, at the most.
const EXPIRE: usize = 64;

/// What is known of a packet of a burst before its turn comes. Not its headers: to find those
/// of most packets again costs less than to keep them.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    looked: Looked,
    /// Its number among those whose rules were looked up, if it is one.
    asked: Option<u32>,
}

/// A packet's connection, and where its headers are.
#[derive(Clone, Copy)]
pub(crate) struct Of<'c> {
    pub(crate) connections: &'c Connections,
    pub(crate) found: &'c Found,
    pub(crate) headers: &'c Headers,
}

/// The rules that packets of an input pass.
#[derive(Clone, Copy)]
pub(crate) struct Pass<'m> {
    pub(crate) rules: &'m Rules,
    pub(crate) interfaces: &'m Interfaces,
    pub(crate) connections: &'m Common<Connections>,
    pub(crate) datagrams: &'m Common<FragmentTracker<HeldFragment>>,
    pub(crate) mtu: usize,
    pub(crate) port: usize,
}

impl Pass<'_> {
    /// Lets a burst pass.
    pub(crate) fn burst(&self, books: &mut Books, batch: Batch, cx: &mut Cx) {
        if let Some(odd) = self.whole(books, batch, cx) {
            self.piecewise(books, odd, cx);
        }
    }

    /// Lets a burst of whole packets pass; gives back one in which others are, where rules look
    /// behind their IP headers.
    pub(crate) fn whole(&self, books: &mut Books, mut batch: Batch, cx: &mut Cx) -> Option<Batch> {
        let mut fates = std::mem::take(&mut books.fates);
        fates.clear();
        let is_odd = match self.rules.stateful() {
            0 => self.stateless(books, &mut batch, &mut fates, cx),
            _ => self.stateful(books, &mut batch, &mut fates, cx),
        };
        let odd = if is_odd {
            Some(batch)
        } else {
            cx.route(batch, &fates);
            None
        };
        books.fates = fates;
        odd
    }

    /// Where no rule is about connections. Whether the burst is for [`Pass::piecewise`].
    fn stateless(
        &self,
        books: &mut Books,
        batch: &mut Batch,
        fates: &mut Vec<u8>,
        cx: &mut Cx,
    ) -> bool {
        books.matcher.begin();
        let mut is_odd = false;
        batch.iter().for_each(|packet| is_odd |= books.matcher.ask_any(packet));
        if is_odd && self.rules.follow_fragments() {
            return true;
        }
        books.matcher.look();
        for (number, packet) in batch.iter_mut().enumerate() {
            // Nothing waits here.
            let exit = self.by_rules(books, number as u32, packet, cx).unwrap_or(self.on());
            fates.push(exit.index());
        }
        if books.matcher.has_others() {
            self.others(batch, fates);
        }
        false
    }

    /// The packets of a burst that have no IP header.
    #[cold]
    fn others(&self, batch: &Batch, fates: &mut [u8]) {
        for (packet, fate) in batch.iter().zip(fates) {
            if Headers::find(packet).is_none() {
                *fate = self.other(packet).index();
            }
        }
    }

    /// The exit of a packet that has no IP header.
    pub(crate) fn other(&self, packet: &Packet) -> Exit {
        match (NonIp::of(packet), self.rules.other) {
            (NonIp::Malformed, _) => Exit::Malformed,
            (_, Other::Accept) | (NonIp::Arp, Other::Arp) => self.on(),
            (_, Other::Arp | Other::Drop) => Exit::Other,
        }
    }

    /// Where some are: at first as far as connections need not be changed. Whether the burst is
    /// for [`Pass::piecewise`].
    fn stateful(
        &self,
        books: &mut Books,
        batch: &mut Batch,
        fates: &mut Vec<u8>,
        cx: &mut Cx,
    ) -> bool {
        let mut looks = std::mem::take(&mut books.looks);
        books.late.clear();
        let done = self.connections.read(|connections| {
            if self.look(books, connections, batch, &mut looks) {
                return None;
            }
            for (number, (packet, look)) in batch.iter_mut().zip(&looks).enumerate() {
                let exit = match Headers::plain(packet) {
                    Some(headers) => self.decide(books, connections, look, &headers, packet, cx),
                    None => self.decide_odd(books, connections, look, packet, cx),
                };
                let exit = exit.unwrap_or_else(|ExclusiveAccess| {
                    books.late.push(number as u32);
                    self.on()
                });
                fates.push(exit.index());
            }
            Some((connections.is_due(now(cx)), connections.len() > 0))
        });
        let Some((is_due, is_any)) = done else {
            books.looks = looks;
            return true;
        };
        if is_due || !books.late.is_empty() {
            self.connections.change(|connections| {
                connections.forget(now(cx), EXPIRE);
                self.late(books, connections, &looks, batch, fates, cx);
            });
        }
        if is_any || !books.late.is_empty() {
            books.wait(cx);
        }
        books.looks = looks;
        false
    }

    /// The packets that waited, in their order.
    fn late(
        &self,
        books: &mut Books,
        connections: &mut Connections,
        looks: &[Look],
        batch: &mut Batch,
        fates: &mut [u8],
        cx: &mut Cx,
    ) {
        books.matcher.again();
        let late = std::mem::take(&mut books.late);
        let mut waiting = late.iter().map(|&number| number as usize).peekable();
        let all = batch.iter_mut().zip(looks).zip(fates).enumerate();
        for (_, ((packet, look), fate)) in all.filter(|(n, _)| waiting.next_if_eq(n).is_some()) {
            *fate = self.decide_late(books, connections, look, packet, cx).index();
        }
        books.late = late;
    }

    /// Looks for headers, connections and rules of all packets, each for all at once; or says that
    /// some packet is a fragment, or cut short.
    fn look(
        &self,
        books: &mut Books,
        connections: &Connections,
        batch: &Batch,
        looks: &mut Vec<Look>,
    ) -> bool {
        let Books { asked, matcher, .. } = books;
        let mut is_odd = false;
        looks.clear();
        asked.begin();
        for packet in batch.iter() {
            let looked = match Headers::plain(packet) {
                Some(headers) => asked.ask(packet.bytes(), &headers),
                None => Headers::find(packet).map_or(Looked::Alone, |headers| {
                    is_odd |= headers.is_fragment || headers.is_cut();
                    asked.ask(packet.bytes(), &headers)
                }),
            };
            looks.push(Look { looked, asked: None });
        }
        if is_odd {
            return true;
        }
        asked.look(connections);
        // If all rules are about connections, a packet of one is no other rule's business.
        let is_only = self.rules.stateful() == self.rules.len();
        let mut count = 0;
        matcher.begin();
        for (packet, look) in batch.iter().zip(looks) {
            if is_only && asked.is_known(look.looked) {
                continue;
            }
            if let Some(headers) = Headers::find(packet) {
                matcher.ask(packet.bytes(), &headers);
                look.asked = Some(count);
                count += 1;
            }
        }
        matcher.look();
        false
    }

    #[inline]
    pub(crate) fn on(&self) -> Exit {
        Exit::Out(self.port as u8)
    }

    /// What becomes of a packet, if nothing is to be changed for it but what many may change.
    #[inline]
    fn decide(
        &self,
        books: &mut Books,
        connections: &Connections,
        look: &Look,
        headers: &Headers,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Result<Exit, ExclusiveAccess> {
        let (bytes, now) = (packet.bytes(), now(cx));
        // By reference: a copy would wait for what was just written.
        match (&connections.find((&books.asked, look.looked), bytes, headers, now), look.asked) {
            (Finding::Of(found), asked) => {
                let own = self.own(books, connections, found).ok_or(ExclusiveAccess)?;
                connections.keep(found, bytes, headers, &self.rules.timeouts, now)?;
                let of = Of { connections, found, headers };
                Ok(self.of_connection(books, (of, own), asked, packet, cx))
            }
            // What is no connection's may have become one's by those who wait.
            (Finding::None, Some(asked)) if books.late.is_empty() => {
                self.by_rules(books, asked, packet, cx)
            }
            (Finding::None | Finding::Wait, _) => Err(ExclusiveAccess),
        }
    }

    /// The same where its headers are not plain.
    #[inline(never)]
    fn decide_odd(
        &self,
        books: &mut Books,
        connections: &Connections,
        look: &Look,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Result<Exit, ExclusiveAccess> {
        match Headers::find(packet) {
            Some(headers) => self.decide(books, connections, look, &headers, packet, cx),
            None => Ok(self.other(packet)),
        }
    }

    /// What becomes of a packet by the rules it met, the one of that number that was asked
    /// about; it waits, if it may begin a connection.
    #[inline]
    fn by_rules(
        &self,
        books: &mut Books,
        asked: u32,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Result<Exit, ExclusiveAccess> {
        const SLOW: u8 = CHANGES | STATEFUL | VAGUE;
        let does = books.matcher.counted(asked, SLOW, packet.len());
        if does & STATEFUL != 0 {
            return Err(ExclusiveAccess);
        }
        if does & SLOW != 0 {
            return Ok(self.slowly(books, Some(asked), None, packet, cx));
        }
        Ok(if does & (ACCEPTS | DROPS) == DROPS { Exit::Rule } else { self.on() })
    }

    /// What a connection's rules do together; nothing, if they are all gone.
    #[inline(always)]
    pub(crate) fn own(
        &self,
        books: &Books,
        connections: &Connections,
        found: &Found,
    ) -> Option<u8> {
        let rules = connections.own(found);
        let own = rules.iter().filter_map(|&it| books.matcher.places().does_of(it));
        // Another worker may know rules that are new here.
        let is_new = || rules.iter().any(|it| it.is_behind(self.rules.last_id()));
        own.reduce(|all, does| all | does).or_else(|| is_new().then_some(0))
    }

    /// What becomes of a packet of a connection.
    #[inline(always)]
    fn of_connection(
        &self,
        books: &mut Books,
        (of, own): (Of, u8),
        asked: Option<u32>,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Exit {
        let (Of { connections, found, headers }, matcher) = (of, &mut books.matcher);
        let others = asked.map_or(0, |asked| matcher.stateless_does(asked));
        let does = own & !VAGUE | others;
        if does & (CHANGES | VAGUE) != 0 {
            return self.slowly(books, asked, Some(of), packet, cx);
        }
        for &rule in connections.own(found) {
            if matcher.places().does_of(rule).is_some() {
                matcher.count(rule.slot, packet.len());
            }
        }
        if let Some(asked) = asked {
            matcher.count_stateless(asked, packet.len());
        }
        if does & (ACCEPTS | DROPS) == DROPS {
            return Exit::Rule;
        }
        match connections.exchanged(found) {
            Exchanged::Nothing => {}
            Exchanged::Ends(to) => {
                let is_followed = destination(packet, headers) == Some(packet.dst());
                exchange(packet.bytes_mut(), headers, &to);
                if is_followed {
                    packet.set_dst(to.dst().0);
                }
            }
            Exchanged::More => {
                let mapped = connections.mapped(found);
                rewrite(packet, *headers, std::iter::empty(), mapped.as_ref(), None, self.mtu);
            }
        }
        self.on()
    }

    /// What becomes of a packet that waited.
    fn decide_late(
        &self,
        books: &mut Books,
        connections: &mut Connections,
        look: &Look,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Exit {
        let Some(headers) = Headers::find(packet) else { return self.on() };
        let (bytes, now) = (packet.bytes(), now(cx));
        let found = connections.find_now((&books.asked, look.looked), bytes, &headers, now);
        if let Some(found) = &found {
            if let Some(own) = self.own(books, connections, found) {
                connections.keep_now(found, bytes, &headers, &self.rules.timeouts, now);
                let of = Of { connections, found, headers: &headers };
                return self.of_connection(books, (of, own), look.asked, packet, cx);
            }
            connections.remove(found);
        }
        self.meet(books, look.asked, (packet.bytes(), &headers));
        match self.begun(books, connections, (packet.bytes(), &headers), cx) {
            Ok(begun) => {
                let headers = &headers;
                let of = begun.as_ref().map(|found| Of { connections, found, headers });
                self.by_matched(books, of, *headers, None, packet, cx)
            }
            Err(exit) => exit,
        }
    }

    /// What becomes of a packet, by a look at all rules that are about it.
    fn slowly(
        &self,
        books: &mut Books,
        asked: Option<u32>,
        of: Option<Of>,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Exit {
        let Some(headers) = Headers::find(packet) else { return self.on() };
        self.meet(books, asked, (packet.bytes(), &headers));
        self.by_matched(books, of, headers, None, packet, cx)
    }

    /// Finds the rules that are about a packet.
    pub(crate) fn meet(
        &self,
        books: &mut Books,
        asked: Option<u32>,
        (bytes, headers): (&[u8], &Headers),
    ) {
        let (input, output) = self.interfaces.names(self.port);
        let seen = Seen { bytes, headers, input, output };
        match asked {
            Some(asked) => books.matcher.matching(asked, &seen, &mut books.matched),
            None => books.matcher.matching_alone(&seen, &mut books.matched),
        }
    }

    /// Judges a packet by the rules that are about it and those of its connection, and by
    /// its ends where it is a fragment that has not got them itself.
    pub(crate) fn by_matched(
        &self,
        books: &mut Books,
        of: Option<Of>,
        headers: Headers,
        ends: Option<Ends>,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Exit {
        self.apply(books, of, headers, ends, packet, &mut || cx.random())
    }

    /// The same with other random bits.
    pub(crate) fn apply(
        &self,
        books: &mut Books,
        of: Option<Of>,
        headers: Headers,
        ends: Option<Ends>,
        packet: &mut Packet,
        random: &mut impl FnMut() -> u64,
    ) -> Exit {
        let Books { matcher, matched, applied, unfit, .. } = books;
        let places = matcher.places();
        let is_stateless = |slot: &u32| places.entry(*slot).is_some_and(|it| !it.rule.stateful);
        applied.clear();
        applied.extend(matched.iter().copied().filter(is_stateless));
        if let Some(Of { connections, found, .. }) = of {
            let first = applied.len();
            applied.extend(connections.rules(found, places).map(|(slot, _)| slot));
            // Rules may have moved since the connection began.
            places.sort(&mut applied[first..]);
        }
        applied.iter().for_each(|&slot| matcher.count(slot, packet.len()));
        let places = matcher.places();
        let plans = applied.iter().filter_map(|&slot| Some(&places.entry(slot)?.plan));
        if is_dropped(plans.clone(), random) {
            return Exit::Rule;
        }
        let is_changed = of.is_some_and(|of| of.connections.changes(of.found));
        if is_changed || plans.clone().any(|plan| !plan.is_verdict()) {
            let mapped = of.and_then(|of| of.connections.mapped(of.found));
            let begun = of.and_then(|of| of.connections.beginning(of.found));
            let ends = begun.or(ends);
            *unfit += rewrite(packet, headers, plans, mapped.as_ref(), ends, self.mtu) as u64;
        }
        self.on()
    }

    /// The connection that begins with a packet that belongs to none.
    pub(crate) fn begun(
        &self,
        books: &Books,
        connections: &mut Connections,
        seen: (&[u8], &Headers),
        cx: &mut Cx,
    ) -> Result<Option<Found>, Exit> {
        if !self.may_begin(books, &mut || cx.random())? {
            return Ok(None);
        }
        let (timeouts, now) = (&self.rules.timeouts, now(cx));
        match connections.begin(seen, self.beginners(books), timeouts, || cx.random(), now) {
            Some(Fresh::Begun(found)) => Ok(Some(found)),
            Some(Fresh::Full) => Err(Exit::Full),
            Some(Fresh::NoPort) => Err(Exit::NoPort),
            None => Ok(None),
        }
    }

    /// The stateful rules that are about a packet.
    pub(crate) fn beginners<'b>(
        &self,
        books: &'b Books,
    ) -> impl Iterator<Item = &'b Arc<Entry>> + Clone {
        let Books { matcher, matched, .. } = books;
        let entries = matched.iter().filter_map(|&slot| matcher.places().entry(slot));
        entries.filter(|entry| entry.rule.stateful)
    }

    /// Whether a connection begins with a packet that belongs to none; or where it goes, for what
    /// other rules drop begins nothing.
    pub(crate) fn may_begin(
        &self,
        books: &Books,
        random: &mut impl FnMut() -> u64,
    ) -> Result<bool, Exit> {
        if self.beginners(books).next().is_none() {
            return Ok(false);
        }
        let Books { matcher, matched, .. } = books;
        let entries = matched.iter().filter_map(|&slot| matcher.places().entry(slot));
        let is_own = self.beginners(books).any(|entry| entry.plan.drop.is_some());
        match !is_own && is_dropped(entries.map(|entry| &entry.plan), random) {
            true => Err(Exit::Rule),
            false => Ok(true),
        }
    }
}

/// The time as connections have it.
#[inline]
pub(crate) fn now(cx: &Cx) -> u64 {
    cx.now().0.unsigned_abs()
}

/// The destination of a packet of IPv4, as its header has it.
#[inline]
fn destination(packet: &Packet, headers: &Headers) -> Option<std::net::Ipv4Addr> {
    let header = packet.bytes().get(headers.network..)?;
    castanet_wire::Ipv4Header::from_prefix(header).map(|(ip, _)| ip.dst())
}
