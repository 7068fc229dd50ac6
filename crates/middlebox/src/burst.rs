//! What becomes of a burst of packets.

use crate::books::Books;
use crate::connections::{Exchanged, Found, Fresh, Looked, exchange};
use crate::exits::Exit;
use crate::headers::Headers;
use crate::holds::Seen;
use crate::interfaces::Interfaces;
use crate::judge::{is_dropped, rewrite};
use crate::matcher::{ACCEPTS, CHANGES, DROPS, STATEFUL, VAGUE};
use crate::rules::Rules;
use castanet_engine::prelude::*;

/// What is known of a packet of a burst before its turn comes. Not its headers: to find those
/// of most packets again costs less than to keep them.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    looked: Looked,
    /// Its number among those whose rules were looked up, if it is one.
    asked: Option<u32>,
}

/// The rules that packets of an input pass.
pub(crate) struct Pass<'m> {
    pub(crate) rules: &'m Rules,
    pub(crate) interfaces: &'m Interfaces,
    pub(crate) mtu: usize,
    pub(crate) port: usize,
}

impl Pass<'_> {
    /// Lets a burst pass.
    pub(crate) fn burst(&self, books: &mut Books, mut batch: Batch, cx: &mut Cx) {
        let mut fates = std::mem::take(&mut books.fates);
        fates.clear();
        match self.rules.stateful() {
            0 => self.stateless(books, &mut batch, &mut fates, cx),
            _ => self.stateful(books, &mut batch, &mut fates, cx),
        }
        cx.route(batch, &fates);
        books.fates = fates;
        books.wait(cx);
    }

    /// Where no rule is about connections.
    fn stateless(&self, books: &mut Books, batch: &mut Batch, fates: &mut Vec<u8>, cx: &mut Cx) {
        books.matcher.begin();
        batch.iter().for_each(|packet| books.matcher.ask_any(packet));
        books.matcher.look();
        for (number, packet) in batch.iter_mut().enumerate() {
            let exit = self.by_rules(books, number as u32, packet, cx);
            fates.push(exit.index());
        }
    }

    /// Where some are.
    fn stateful(&self, books: &mut Books, batch: &mut Batch, fates: &mut Vec<u8>, cx: &mut Cx) {
        let mut looks = std::mem::take(&mut books.looks);
        self.look(books, batch, &mut looks, cx);
        for (packet, look) in batch.iter_mut().zip(&looks) {
            let exit = match Headers::plain(packet) {
                Some(headers) => self.decide(books, look, &headers, packet, cx),
                None => self.decide_odd(books, look, packet, cx),
            };
            fates.push(exit.index());
        }
        books.looks = looks;
    }

    /// Looks for headers, connections and rules of all packets, each for all at once.
    fn look(&self, books: &mut Books, batch: &Batch, looks: &mut Vec<Look>, cx: &Cx) {
        let Books { connections, matcher, .. } = books;
        looks.clear();
        connections.expire(now(cx));
        connections.begin_burst();
        for packet in batch.iter() {
            let looked = match Headers::plain(packet) {
                Some(headers) => connections.ask_four(packet.bytes(), &headers),
                None => Headers::find(packet)
                    .map_or(Looked::Alone, |headers| connections.ask(packet.bytes(), &headers)),
            };
            looks.push(Look { looked, asked: None });
        }
        connections.look();
        // If all rules are about connections, a packet of one is no other rule's business.
        let is_only = self.rules.stateful() == self.rules.len();
        let mut count = 0;
        matcher.begin();
        for (packet, look) in batch.iter().zip(looks) {
            if is_only && connections.is_known(look.looked) {
                continue;
            }
            if let Some(headers) = Headers::find(packet) {
                matcher.ask(packet.bytes(), &headers);
                look.asked = Some(count);
                count += 1;
            }
        }
        matcher.look();
    }

    #[inline]
    fn on(&self) -> Exit {
        Exit::Out(self.port as u8)
    }

    /// What becomes of a packet whose headers are not plain.
    #[inline(never)]
    fn decide_odd(&self, books: &mut Books, look: &Look, packet: &mut Packet, cx: &mut Cx) -> Exit {
        match Headers::find(packet) {
            Some(headers) => self.decide(books, look, &headers, packet, cx),
            None => self.on(),
        }
    }

    /// What becomes of a packet.
    #[inline]
    fn decide(
        &self,
        books: &mut Books,
        look: &Look,
        headers: &Headers,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Exit {
        let found = books.connections.find(look.looked, packet.bytes(), headers, now(cx));
        // By reference: a copy would wait for what was just written.
        match (&found, look.asked) {
            (Some(found), _) => self.of_connection(books, look, (headers, found), packet, cx),
            (None, Some(asked)) => self.by_rules(books, asked, packet, cx),
            (None, None) => self.slowly(books, None, None, packet, cx),
        }
    }

    /// What becomes of a packet by the rules it met, the one of that number that was asked
    /// about.
    #[inline]
    fn by_rules(&self, books: &mut Books, asked: u32, packet: &mut Packet, cx: &mut Cx) -> Exit {
        const SLOW: u8 = CHANGES | STATEFUL | VAGUE;
        let does = books.matcher.counted(asked, SLOW, packet.len());
        if does & SLOW != 0 {
            return self.slowly(books, Some(asked), None, packet, cx);
        }
        if does & (ACCEPTS | DROPS) == DROPS { Exit::Rule } else { self.on() }
    }

    /// What becomes of a packet of a connection.
    #[inline]
    fn of_connection(
        &self,
        books: &mut Books,
        look: &Look,
        (headers, found): (&Headers, &Found),
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Exit {
        let Books { connections, matcher, .. } = books;
        let own = connections.own(found).iter().map(|&it| matcher.places.does_of(it));
        let Some(own) = own.flatten().reduce(|all, does| all | does) else {
            // Its rules are all gone.
            connections.remove(found);
            return self.slowly(books, look.asked, None, packet, cx);
        };
        connections.keep(found, packet.bytes(), headers, &self.rules.timeouts, now(cx));
        let others = look.asked.map_or(0, |asked| matcher.stateless_does(asked));
        let does = own & !VAGUE | others;
        if does & (CHANGES | VAGUE) != 0 {
            return self.slowly(books, look.asked, Some(found), packet, cx);
        }
        for &rule in connections.own(found) {
            if matcher.places.does_of(rule).is_some() {
                matcher.places.count(rule.slot, packet.len());
            }
        }
        if let Some(asked) = look.asked {
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
                rewrite(packet, *headers, std::iter::empty(), mapped.as_ref(), self.mtu);
            }
        }
        self.on()
    }

    /// What becomes of a packet, by a look at all rules that are about it.
    fn slowly(
        &self,
        books: &mut Books,
        asked: Option<u32>,
        found: Option<&Found>,
        packet: &mut Packet,
        cx: &mut Cx,
    ) -> Exit {
        let Some(headers) = Headers::find(packet) else { return self.on() };
        let (input, output) = self.interfaces.names(self.port);
        let seen = Seen { bytes: packet.bytes(), headers: &headers, input, output };
        match asked {
            Some(asked) => books.matcher.matching(asked, &seen, &mut books.matched),
            None => books.matcher.matching_alone(&seen, &mut books.matched),
        }
        let found = match found {
            Some(found) => Some(*found),
            None => match self.begun(books, packet, &headers, cx) {
                Ok(begun) => begun,
                Err(exit) => return exit,
            },
        };
        let Books { connections, matcher, matched, applied, unfit, .. } = books;
        let places = &mut matcher.places;
        let is_stateless = |slot: &u32| places.entry(*slot).is_some_and(|it| !it.rule.stateful);
        applied.clear();
        applied.extend(matched.iter().copied().filter(is_stateless));
        if let Some(found) = &found {
            applied.extend(connections.rules(found, places).map(|(slot, _)| slot));
        }
        applied.iter().for_each(|&slot| places.count(slot, packet.len()));
        let plans = applied.iter().filter_map(|&slot| Some(&places.entry(slot)?.plan));
        if is_dropped(plans.clone(), || cx.random()) {
            return Exit::Rule;
        }
        if plans.clone().any(|plan| !plan.is_verdict()) {
            let mapped = found.as_ref().and_then(|found| connections.mapped(found));
            *unfit += rewrite(packet, headers, plans, mapped.as_ref(), self.mtu) as u64;
        }
        self.on()
    }

    /// The connection that begins with a packet that belongs to none.
    fn begun(
        &self,
        books: &mut Books,
        packet: &Packet,
        headers: &Headers,
        cx: &mut Cx,
    ) -> Result<Option<Found>, Exit> {
        let Books { connections, matcher, matched, .. } = books;
        let places = &matcher.places;
        let entries = matched.iter().filter_map(|&slot| places.entry(slot));
        let stateful = entries.clone().filter(|entry| entry.rule.stateful);
        if stateful.clone().next().is_none() {
            return Ok(None);
        }
        // What other rules drop begins nothing.
        let plans = entries.map(|entry| &entry.plan);
        let is_own = stateful.clone().any(|entry| entry.plan.drop.is_some());
        if !is_own && is_dropped(plans, || cx.random()) {
            return Err(Exit::Rule);
        }
        let (seen, known) = ((packet.bytes(), headers), (places, &self.rules.timeouts));
        let now = now(cx);
        match connections.begin(seen, stateful, known, || cx.random(), now) {
            Some(Fresh::Begun(found)) => Ok(Some(found)),
            Some(Fresh::Full) => Err(Exit::Full),
            Some(Fresh::NoPort) => Err(Exit::NoPort),
            None => Ok(None),
        }
    }
}

/// The time as connections have it.
#[inline]
fn now(cx: &Cx) -> u64 {
    cx.now().0.unsigned_abs()
}

/// The destination of a packet of IPv4, as its header has it.
#[inline]
fn destination(packet: &Packet, headers: &Headers) -> Option<std::net::Ipv4Addr> {
    let header = packet.bytes().get(headers.network..)?;
    castanet_wire::Ipv4Header::from_prefix(header).map(|(ip, _)| ip.dst())
}
