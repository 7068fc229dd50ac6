//! The route list of Click's `IPRouteTable` and `IP6RouteTable` elements: text forms, commands and
//! errors.

use std::collections::HashMap;
use std::fmt;

use super::table::Table;
use crate::address::Address;

/// The target of a route. With a gateway of zero the destination itself is the next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NextHop<A = u32> {
    /// The gateway's address in host byte order, 0 for none.
    pub gateway: A,
    /// The output.
    pub port: u32,
}

/// One route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<A = u32> {
    /// The prefix's address, in host byte order, without host bits.
    pub address: A,
    /// The prefix's length.
    pub length: u32,
    /// The gateway's address in host byte order, 0 for none.
    pub gateway: A,
    /// The output; only routes to be removed may have none.
    pub port: Option<u32>,
}

impl<A: Address> Route<A> {
    /// Parses `ADDR/MASK [GATEWAY] OUTPUT`, where `-` may stand for no gateway.
    pub fn parse(text: &str) -> Option<Self> {
        Route::parse_words(text, false)
    }

    /// Parses `ADDR/MASK [GATEWAY OUTPUT]`, the form of removals.
    pub fn parse_removal(text: &str) -> Option<Self> {
        Route::parse_words(text, true)
    }

    fn parse_words(text: &str, removal: bool) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let prefix = words.next()?;
        let (address, length) =
            A::parse_prefix(prefix).or_else(|| Some((A::parse(prefix)?, A::BITS)))?;
        let mut word = words.next();
        let gateway = match word {
            Some("-") => Some(A::ZERO),
            Some(text) => A::parse(text),
            None => None,
        };
        if gateway.is_some() {
            word = words.next();
        }
        let port = match word {
            Some(text) => Some(text.parse().ok()?),
            None if removal => None,
            None => return None,
        };
        let gateway = gateway.unwrap_or(A::ZERO);
        let route = Route { address: address.prefix(length), length, gateway, port };
        words.next().is_none().then_some(route)
    }

    /// The route as a line of `table` handlers, with tabs between aligned columns.
    pub fn listing_line(&self) -> String {
        let prefix = format!("{}/{}\t", self.address.shown(), self.length);
        let gateway = format!("{}\t", Gateway(self.gateway));
        let first = if prefix.len() < 17 { "\t" } else { "" };
        let second = if gateway.len() < 9 { "\t" } else { "" };
        format!("{prefix}{first}{gateway}{second}{}", Output(self.port))
    }

    fn next_hop(&self) -> NextHop<A> {
        NextHop { gateway: self.gateway, port: self.port.unwrap_or(0) }
    }

    /// Whether a request to remove `self` matches the route `stored`.
    fn matches(&self, stored: &Route<A>) -> bool {
        self.port.is_none() || (self.gateway, self.port) == (stored.gateway, stored.port)
    }
}

impl<A: Address> fmt::Display for Route<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (gateway, port) = (Gateway(self.gateway), Output(self.port));
        write!(f, "{}/{} {gateway} {port}", self.address.shown(), self.length)
    }
}

struct Gateway<A>(A);

impl<A: Address> fmt::Display for Gateway<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            none if none == A::ZERO => f.write_str("-"),
            address => write!(f, "{}", address.shown()),
        }
    }
}

struct Output(Option<u32>);

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("-1"),
            Some(port) => write!(f, "{port}"),
        }
    }
}

/// The reason why a route command failed; the texts are Click's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteError<A = u32> {
    /// Not `ADDR/MASK [GATEWAY] OUTPUT`.
    Syntax,
    /// Not `ADDR/MASK [GATEWAY OUTPUT]`.
    RemovalSyntax,
    /// The element has no such output.
    BadOutput,
    /// There is another route for the prefix.
    Conflict(Route<A>),
    /// There is no such route.
    NotFound(Route<A>),
    /// A line of `ctrl` that starts with none of `add`, `set` and `remove`.
    BadCommand(String),
}

impl<A: Address> fmt::Display for RouteError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteError::Syntax => f.write_str("expected 'ADDR/MASK [GATEWAY] OUTPUT'"),
            RouteError::RemovalSyntax => f.write_str("expected 'ADDR/MASK [GATEWAY OUTPUT]'"),
            RouteError::BadOutput => f.write_str("bad OUTPUT"),
            RouteError::Conflict(route) => write!(f, "conflict with existing route '{route}'"),
            RouteError::NotFound(route) => write!(f, "route '{route}' not found"),
            RouteError::BadCommand(word) => write!(f, "bad command '{word}'"),
        }
    }
}

impl<A: Address> std::error::Error for RouteError<A> {}

/// The routes of a routing element: in Click's order, with Click's commands.
#[derive(Clone, Debug)]
pub struct Routes<A = u32> {
    /// An output without a gateway has its own number as that of its value.
    table: Table<NextHop<A>, A>,
    /// How many outputs the element has.
    outputs: u32,
    /// In the order of `table` listings. The slot of a replaced route is reused first.
    slots: Vec<Option<Route<A>>>,
    free: Vec<usize>,
    slot_by_prefix: HashMap<(A, u32), usize>,
}

/// The inverse of a command.
enum Undo<A> {
    Remove(Route<A>),
    Restore(Route<A>),
}

impl<A: Address> Routes<A> {
    /// An empty list, for an element with so many outputs.
    pub fn new(outputs: u32) -> Self {
        let (slots, free, slot_by_prefix) = Default::default();
        Routes { table: Self::empty_table(outputs), outputs, slots, free, slot_by_prefix }
    }

    fn empty_table(outputs: u32) -> Table<NextHop<A>, A> {
        Table::with_first((0..outputs).map(|port| NextHop { gateway: A::ZERO, port }))
    }

    /// The next hop of a packet to `address`, if there is a route.
    #[inline]
    pub fn next_hop(&self, address: A) -> Option<NextHop<A>> {
        let number = self.table.lpm().number(address);
        if number < self.outputs {
            return Some(NextHop { gateway: A::ZERO, port: number });
        }
        self.table.value(number).copied()
    }

    /// How many outputs the element has.
    pub fn outputs(&self) -> u32 {
        self.outputs
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.slot_by_prefix.len()
    }

    /// Whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.slot_by_prefix.is_empty()
    }

    /// Adds an element's arguments. Returns how many of them repeat the prefix of an earlier one;
    /// as in Click, the earlier one stays.
    ///
    /// Each error has the index of its argument.
    pub fn configure(
        &mut self,
        arguments: &[Route<A>],
    ) -> Result<usize, Vec<(usize, RouteError<A>)>> {
        let mut errors = Vec::new();
        let mut bulk = Vec::with_capacity(arguments.len());
        let before = self.len() + arguments.len();
        for (i, route) in arguments.iter().enumerate() {
            if route.port.is_none_or(|port| port >= self.outputs) {
                errors.push((i, RouteError::BadOutput));
            } else if !self.slot_by_prefix.contains_key(&(route.address, route.length)) {
                self.slot_by_prefix.insert((route.address, route.length), self.slots.len());
                self.slots.push(Some(*route));
                bulk.push(*route);
            }
        }
        let present = self.table.iter().map(|(a, l, hop)| (a, l, *hop));
        let added = bulk.iter().map(|r| (r.address, r.length, r.next_hop()));
        let routes: Vec<_> = present.chain(added).collect();
        self.table = Self::empty_table(self.outputs).filled(routes);
        if errors.is_empty() { Ok(before - self.len()) } else { Err(errors) }
    }

    /// Adds a route for a prefix that has none.
    pub fn add(&mut self, route: Route<A>) -> Result<(), RouteError<A>> {
        match self.find(&route) {
            Some(old) => Err(RouteError::Conflict(old)),
            None => {
                self.store(route);
                Ok(())
            }
        }
    }

    /// Adds a route or replaces the one with its prefix, which is returned.
    pub fn set(&mut self, route: Route<A>) -> Option<Route<A>> {
        self.store(route)
    }

    /// Removes a route; without an output, any route with its prefix.
    pub fn remove(&mut self, route: &Route<A>) -> Result<Route<A>, RouteError<A>> {
        let old = self.find(route).filter(|old| route.matches(old));
        let old = old.ok_or(RouteError::NotFound(*route))?;
        if let Some(slot) = self.slot_by_prefix.remove(&(route.address, route.length)) {
            self.slots[slot] = None;
            self.free.push(slot);
        }
        self.table.remove(route.address, route.length);
        Ok(old)
    }

    /// Runs the lines of a `ctrl` handler, each `add`, `set` or `remove` and a route. If one fails,
    /// the previous ones are undone.
    pub fn ctrl(&mut self, text: &str) -> Result<(), RouteError<A>> {
        let mut done = Vec::new();
        for line in text.lines() {
            match self.command(line) {
                Ok(undo) => done.extend(undo),
                Err(error) => {
                    for undo in done.into_iter().rev() {
                        match undo {
                            Undo::Remove(route) => drop(self.remove(&route)),
                            Undo::Restore(route) => drop(self.set(route)),
                        }
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Runs one line of `ctrl`; blank lines do nothing.
    fn command(&mut self, line: &str) -> Result<Option<Undo<A>>, RouteError<A>> {
        let line = line.trim_start();
        let (word, rest) = line.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((line, ""));
        match word {
            "" => Ok(None),
            "add" => {
                let route = self.with_output(Route::parse(rest))?;
                self.add(route)?;
                Ok(Some(Undo::Remove(route)))
            }
            "set" => {
                let route = self.with_output(Route::parse(rest))?;
                Ok(Some(self.set(route).map_or(Undo::Remove(route), Undo::Restore)))
            }
            "remove" => {
                let route = Route::parse_removal(rest).ok_or(RouteError::RemovalSyntax)?;
                if route.port.is_some_and(|port| port >= self.outputs) {
                    return Err(RouteError::BadOutput);
                }
                Ok(Some(Undo::Restore(self.remove(&route)?)))
            }
            word => Err(RouteError::BadCommand(word.into())),
        }
    }

    /// The text of the `lookup` handler: the output, -1 for none, and the gateway if any.
    pub fn lookup_text(&self, address: A) -> String {
        match self.next_hop(address) {
            None => "-1".into(),
            Some(NextHop { gateway, port }) if gateway == A::ZERO => port.to_string(),
            Some(NextHop { gateway, port }) => format!("{port} {}", gateway.shown()),
        }
    }

    /// All routes in the order of the listing.
    pub fn iter(&self) -> impl Iterator<Item = &Route<A>> {
        self.slots.iter().flatten()
    }

    /// The text of the `table` handler.
    pub fn listing(&self) -> String {
        self.iter().map(|route| route.listing_line() + "\n").collect()
    }

    /// The route with exactly this prefix.
    fn find(&self, route: &Route<A>) -> Option<Route<A>> {
        let prefix = (route.address, route.length);
        self.slot_by_prefix.get(&prefix).and_then(|&slot| self.slots[slot])
    }

    /// A parsed route, if its output exists.
    fn with_output(&self, route: Option<Route<A>>) -> Result<Route<A>, RouteError<A>> {
        let route = route.ok_or(RouteError::Syntax)?;
        match route.port {
            Some(port) if port < self.outputs => Ok(route),
            _ => Err(RouteError::BadOutput),
        }
    }

    fn store(&mut self, mut route: Route<A>) -> Option<Route<A>> {
        route.address = route.address.prefix(route.length);
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(route);
        self.table.insert(route.address, route.length, route.next_hop());
        let old = self.slot_by_prefix.insert((route.address, route.length), slot)?;
        self.free.push(old);
        self.slots[old].take()
    }
}
