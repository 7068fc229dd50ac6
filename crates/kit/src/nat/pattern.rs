//! Patterns of rewriters: fixed addresses and ports, and ranges from which one is selected.

use crate::classify::{Names, known_port};
use crate::conntrack::Tuple4;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many choices are tried before the search fails.
const MAX_TRIES: u64 = 1 << 16;

/// The position in a round robin, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct RoundRobinCursor(Arc<AtomicU32>);

impl RoundRobinCursor {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed).into()
    }

    fn set(&self, next: u64) {
        self.0.store(next as u32, Ordering::Relaxed);
    }

    /// Returns the current index below `all` and advances the cursor.
    pub(super) fn next(&self, all: usize) -> usize {
        let take = |cursor| Some((cursor + 1) % all as u32);
        let cursor = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        cursor.unwrap_or_default() as usize % all
    }
}

/// The numbers from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: u32,
    last: u32,
}

impl Range {
    fn single(n: u32) -> Range {
        Range { first: n, last: n }
    }

    fn count(self) -> u64 {
        u64::from(self.last - self.first) + 1
    }
}

/// The order in which the choices of a range are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchOrder {
    /// The packet's own port first, then from a random start.
    OwnPortFirst,
    Random,
    Sequential,
}

/// A pattern such as `1.0.0.1 1024-65535 - -`.
#[derive(Clone, Debug)]
pub struct Pattern {
    src: Option<Range>,
    src_port: Option<Range>,
    dst: Option<Ipv4Addr>,
    dst_port: Option<u16>,
    /// Whether the pattern has ports in its text.
    names_ports: bool,
    order: SearchOrder,
    cursor: RoundRobinCursor,
}

impl Pattern {
    /// Parses `SADDR DADDR`, `SADDR DADDR SPORT` or `SADDR SPORT DADDR DPORT`. Errors are in
    /// Click's words.
    pub fn parse(words: &[&str], names: &dyn Names) -> Result<Pattern, &'static str> {
        let (src, src_port, dst, dst_port) = match *words {
            [src, dst] => (src, "-", dst, "-"),
            [src, dst, src_port] => (src, src_port, dst, "-"),
            [src, src_port, dst, dst_port] => (src, src_port, dst, dst_port),
            _ => return Err("syntax error"),
        };
        let mut order = SearchOrder::OwnPortFirst;
        let is_set = |word: &str| word != "-";
        let src = is_set(src)
            .then(|| parse_addresses(src, names, &mut order).ok_or("bad source address"));
        let src_port = is_set(src_port)
            .then(|| parse_ports(src_port, names, &mut order).ok_or("bad source port"));
        let dst = is_set(dst).then(|| parse_address(dst, names).ok_or("bad destination address"));
        let dst_port = is_set(dst_port).then(|| {
            let port = parse_port(dst_port, names).filter(|&port| port > 0);
            port.ok_or("bad destination port")
        });
        Ok(Pattern {
            // 0.0.0.0 changes nothing, as in Click.
            src: src.transpose()?.filter(|range| *range != Range::single(0)),
            src_port: src_port.transpose()?,
            dst: dst.transpose()?.filter(|dst| !dst.is_unspecified()),
            dst_port: dst_port.transpose()?,
            names_ports: words.len() > 2,
            order,
            cursor: RoundRobinCursor::default(),
        })
    }

    /// The same pattern with a cursor that it shares with others.
    #[must_use]
    pub fn with_cursor(self, cursor: RoundRobinCursor) -> Pattern {
        Pattern { cursor, ..self }
    }

    /// Whether its text has ports, if only to keep them.
    pub fn has_ports(&self) -> bool {
        self.names_ports
    }

    /// Whether it changes destinations.
    pub(super) fn changes_dst(&self) -> bool {
        self.dst.is_some()
    }

    /// Whether it keeps the source address.
    pub(super) fn keeps_src(&self) -> bool {
        self.src.is_none()
    }

    /// The same pattern for packets with an identifier in place of the source port and no other.
    #[must_use]
    pub(super) fn for_identifier(self) -> Pattern {
        Pattern { dst_port: None, ..self }
    }

    /// How many ports there are to choose from.
    fn ports(&self) -> u64 {
        self.src_port.map_or(1, Range::count)
    }

    /// How many choices there are.
    fn choices(&self) -> u64 {
        self.src.map_or(1, Range::count) * self.ports()
    }

    /// A random choice.
    fn draw(&self, random: &mut dyn FnMut(u32) -> u32) -> u64 {
        random(u32::try_from(self.choices() - 1).unwrap_or(u32::MAX)).into()
    }

    /// Draws what a search draws that finds all choices taken.
    pub(super) fn draw_in_vain(&self, random: &mut dyn FnMut(u32) -> u32) {
        if self.choices() > 1 && self.order != SearchOrder::Sequential {
            self.draw(random);
        }
    }

    /// The rewritten flow; `None` if all choices are taken. `taken` is called with the key of the
    /// replies, and only if the pattern has more than one choice.
    pub fn rewrite(
        &self,
        flow: Tuple4,
        taken: impl Fn(&Tuple4) -> bool,
        random: &mut dyn FnMut(u32) -> u32,
    ) -> Option<Tuple4> {
        let (src, dst) = (flow.src(), flow.dst());
        let dst = (self.dst.unwrap_or(dst.0), self.dst_port.unwrap_or(dst.1));
        let (ports, all) = (self.ports(), self.choices());
        let choice = |n: u64| {
            let pick = |range: Option<Range>, n: u64| range.map(|it| it.first + n as u32);
            let address = pick(self.src, n / ports).map_or(src.0, Ipv4Addr::from_bits);
            let port = pick(self.src_port, n % ports).map_or(src.1, |port| port as u16);
            Tuple4::new((address, port), dst, flow.proto())
        };
        if all == 1 {
            return Some(choice(0));
        }
        let is_free = |n: &u64| !taken(&choice(*n).reversed());
        let mut draw = || self.draw(random);
        // Where addresses vary, too, the flow's own port is tried with a random one.
        let addresses = if all > ports { draw() } else { 0 };
        let range = self.src_port.filter(|_| self.order == SearchOrder::OwnPortFirst);
        let own = range.and_then(|range| {
            let own = u32::from(src.1).checked_sub(range.first).map(u64::from)?;
            (own < ports).then_some(addresses - addresses % ports + own)
        });
        let selected = own.filter(is_free).or_else(|| {
            let start = match self.order {
                SearchOrder::Sequential => self.cursor.get() % all,
                SearchOrder::OwnPortFirst | SearchOrder::Random => draw(),
            };
            (0..all.min(MAX_TRIES)).map(|n| (start + n) % all).find(is_free)
        })?;
        self.cursor.set((selected + 1) % all);
        Some(choice(selected))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |range: Option<Range>, show: &dyn Fn(u32) -> String| match range {
            None => "-".to_owned(),
            Some(Range { first, last }) if first == last => show(first),
            Some(Range { first, last }) => format!("{}-{}", show(first), show(last)),
        };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let dst = or_dash(self.dst.map(|dst| dst.to_string()));
        f.write_str(&range(self.src, &|n| Ipv4Addr::from_bits(n).to_string()))?;
        if !self.names_ports {
            return write!(f, " {dst}");
        }
        let dst_port = or_dash(self.dst_port.map(|port| port.to_string()));
        write!(f, " {} {dst} {dst_port}", range(self.src_port, &|n| n.to_string()))
    }
}

fn parse_number(text: &str) -> Option<u16> {
    // `FromStr` accepts a sign, too.
    text.starts_with(|c: char| c.is_ascii_digit()).then(|| text.parse().ok())?
}

fn parse_address(text: &str, names: &dyn Names) -> Option<Ipv4Addr> {
    text.parse().ok().or_else(|| names.address(text).map(Ipv4Addr::from_bits))
}

/// Strips the suffix that sets the order of a range.
fn strip_order<'a>(text: &'a str, order: &mut SearchOrder) -> &'a str {
    if let Some(range) = text.strip_suffix('#') {
        *order = SearchOrder::Sequential;
        return range;
    }
    let Some(range) = text.strip_suffix('?') else { return text };
    if *order == SearchOrder::OwnPortFirst {
        *order = SearchOrder::Random;
    }
    range
}

/// A port by its number or its name.
fn parse_port(text: &str, names: &dyn Names) -> Option<u16> {
    let named = || names.port(text, None).or_else(|| known_port(text));
    parse_number(text).or_else(named).or_else(|| names.service(text, None))
}

fn parse_ports(text: &str, names: &dyn Names, order: &mut SearchOrder) -> Option<Range> {
    if let Some(port) = parse_port(text, names) {
        return (port > 0).then(|| Range::single(port.into()));
    }
    let (first, last) = strip_order(text, order).split_once('-')?;
    let (first, last) = (parse_number(first)?.into(), parse_number(last)?.into());
    (first <= last).then_some(Range { first, last })
}

fn parse_addresses(text: &str, names: &dyn Names, order: &mut SearchOrder) -> Option<Range> {
    if let Some(address) = parse_address(text, names) {
        return Some(Range::single(address.to_bits()));
    }
    let text = strip_order(text, order);
    if let Some((first, last)) = text.split_once('-') {
        let (first, last) =
            (parse_address(first, names)?.to_bits(), parse_address(last, names)?.to_bits());
        return (first <= last).then_some(Range { first, last });
    }
    let (address, mask) = parse_prefix(text, names)?;
    let (first, last) = (address & mask, address | !mask);
    (address != 0 && mask != 0).then_some(match last - first {
        0 | 1 => Range { first, last },
        // Without the network address and the broadcast address.
        _ => Range { first: first + 1, last: last - 1 },
    })
}

fn parse_prefix(text: &str, names: &dyn Names) -> Option<(u32, u32)> {
    let Some((base, length)) = text.split_once('/') else {
        return names
            .prefix(text)
            .or_else(|| Some((parse_address(text, names)?.to_bits(), u32::MAX)));
    };
    let mask = match length.parse::<u32>() {
        Ok(length) => u32::MAX.checked_shl(u32::BITS.checked_sub(length)?).unwrap_or(0),
        Err(_) => length.parse::<Ipv4Addr>().ok()?.to_bits(),
    };
    (mask.leading_ones() == mask.count_ones())
        .then_some((parse_address(base, names)?.to_bits(), mask))
}
