//! How a flow is rewritten: fixed addresses and ports, and ranges from which one is chosen.

use crate::classify::Names;
use crate::flow::Tuple4;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many choices are tried before there is said to be none.
const TRIES: u64 = 1 << 16;

/// Whose turn is next, for all who choose by the same thing.
#[derive(Clone, Debug, Default)]
pub struct Turn(Arc<AtomicU32>);

impl Turn {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed).into()
    }

    fn set(&self, next: u64) {
        self.0.store(next as u32, Ordering::Relaxed);
    }

    /// The next of `all`.
    pub(super) fn next(&self, all: usize) -> usize {
        let take = |turn| Some((turn + 1) % all as u32);
        let turn = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        turn.unwrap_or_default() as usize % all
    }
}

/// Numbers from `first` on, to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: u32,
    last: u32,
}

impl Range {
    fn only(n: u32) -> Range {
        Range { first: n, last: n }
    }

    fn count(self) -> u64 {
        u64::from(self.last - self.first) + 1
    }
}

/// In which order what is in a range is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// First the packet's own port, then as by chance.
    Own,
    Chance,
    Sequence,
}

/// A pattern such as `1.0.0.1 1024-65535 - -`.
#[derive(Clone, Debug)]
pub struct Pattern {
    src: Option<Range>,
    src_port: Option<Range>,
    dst: Option<Ipv4Addr>,
    dst_port: Option<u16>,
    /// Whether it speaks of ports.
    ports: bool,
    order: Order,
    turn: Turn,
}

impl Pattern {
    /// Reads `SADDR DADDR`, `SADDR DADDR SPORT` or `SADDR SPORT DADDR DPORT`; what is wrong is
    /// told in Click's words.
    pub fn parse(words: &[&str], names: &dyn Names) -> Result<Pattern, &'static str> {
        let (src, src_port, dst, dst_port) = match *words {
            [src, dst] => (src, "-", dst, "-"),
            [src, dst, src_port] => (src, src_port, dst, "-"),
            [src, src_port, dst, dst_port] => (src, src_port, dst, dst_port),
            _ => return Err("syntax error"),
        };
        let mut order = Order::Own;
        let given = |word: &str| word != "-";
        let src = given(src).then(|| addresses(src, names, &mut order).ok_or("bad source address"));
        let src_port =
            given(src_port).then(|| ports(src_port, &mut order).ok_or("bad source port"));
        let dst = given(dst).then(|| address(dst, names).ok_or("bad destination address"));
        let dst_port = given(dst_port).then(|| {
            let port = number(dst_port).filter(|&port| port > 0);
            port.ok_or("bad destination port")
        });
        Ok(Pattern {
            // 0.0.0.0 says nothing, as in Click.
            src: src.transpose()?.filter(|range| *range != Range::only(0)),
            src_port: src_port.transpose()?,
            dst: dst.transpose()?.filter(|dst| !dst.is_unspecified()),
            dst_port: dst_port.transpose()?,
            ports: words.len() > 2,
            order,
            turn: Turn::default(),
        })
    }

    /// The same, which takes turns with others.
    #[must_use]
    pub fn with_turn(self, turn: Turn) -> Pattern {
        Pattern { turn, ..self }
    }

    /// Whether it speaks of ports, if only to leave them as they are.
    pub fn has_ports(&self) -> bool {
        self.ports
    }

    /// Whether it changes destinations.
    pub(super) fn changes_dst(&self) -> bool {
        self.dst.is_some()
    }

    /// Whether the sender's address stays.
    pub(super) fn keeps_src(&self) -> bool {
        self.src.is_none()
    }

    /// The same for packets that have an identifier in place of a source port, and no other.
    #[must_use]
    pub(super) fn by_identifier(self) -> Pattern {
        Pattern { dst_port: None, ..self }
    }

    /// What a flow becomes; `None` if all that it may become is `taken`: that is asked with what
    /// replies would look like. What is fixed is not asked about.
    pub fn rewrite(
        &self,
        flow: Tuple4,
        taken: impl Fn(&Tuple4) -> bool,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<Tuple4> {
        let (src, dst) = (flow.src(), flow.dst());
        let dst = (self.dst.unwrap_or(dst.0), self.dst_port.unwrap_or(dst.1));
        let ports = self.src_port.map_or(1, Range::count);
        let all = self.src.map_or(1, Range::count) * ports;
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
        let start = match self.order {
            Order::Sequence => self.turn.get() % all,
            Order::Own | Order::Chance => random() % all,
        };
        let range = self.src_port.filter(|_| self.order == Order::Own);
        let own = range.and_then(|range| {
            let own = u32::from(src.1).checked_sub(range.first).map(u64::from)?;
            (own < ports).then_some(start - start % ports + own)
        });
        let others = (0..all.min(TRIES)).map(|n| (start + n) % all);
        let chosen = own.into_iter().chain(others).find(is_free)?;
        self.turn.set((chosen + 1) % all);
        Some(choice(chosen))
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
        if !self.ports {
            return write!(f, " {dst}");
        }
        let dst_port = or_dash(self.dst_port.map(|port| port.to_string()));
        write!(f, " {} {dst} {dst_port}", range(self.src_port, &|n| n.to_string()))
    }
}

fn number(text: &str) -> Option<u16> {
    // `FromStr` would take a sign too.
    text.starts_with(|c: char| c.is_ascii_digit()).then(|| text.parse().ok())?
}

fn address(text: &str, names: &dyn Names) -> Option<Ipv4Addr> {
    text.parse().ok().or_else(|| names.address(text).map(Ipv4Addr::from_bits))
}

/// A range's text without the sign of its order.
fn ordered<'a>(text: &'a str, order: &mut Order) -> &'a str {
    if let Some(range) = text.strip_suffix('#') {
        *order = Order::Sequence;
        return range;
    }
    let Some(range) = text.strip_suffix('?') else { return text };
    if *order == Order::Own {
        *order = Order::Chance;
    }
    range
}

fn ports(text: &str, order: &mut Order) -> Option<Range> {
    if let Some(port) = number(text) {
        return (port > 0).then(|| Range::only(port.into()));
    }
    let (first, last) = ordered(text, order).split_once('-')?;
    let (first, last) = (number(first)?.into(), number(last)?.into());
    (first <= last).then_some(Range { first, last })
}

fn addresses(text: &str, names: &dyn Names, order: &mut Order) -> Option<Range> {
    if let Some(address) = address(text, names) {
        return Some(Range::only(address.to_bits()));
    }
    let text = ordered(text, order);
    if let Some((first, last)) = text.split_once('-') {
        let (first, last) = (address(first, names)?.to_bits(), address(last, names)?.to_bits());
        return (first <= last).then_some(Range { first, last });
    }
    let (address, mask) = prefix(text, names)?;
    let (first, last) = (address & mask, address | !mask);
    (address != 0 && mask != 0).then_some(match last - first {
        0 | 1 => Range { first, last },
        // Without those of the network itself and of all its hosts.
        _ => Range { first: first + 1, last: last - 1 },
    })
}

fn prefix(text: &str, names: &dyn Names) -> Option<(u32, u32)> {
    let Some((base, length)) = text.split_once('/') else {
        return names.prefix(text).or_else(|| Some((address(text, names)?.to_bits(), u32::MAX)));
    };
    let mask = match length.parse::<u32>() {
        Ok(length) => u32::MAX.checked_shl(u32::BITS.checked_sub(length)?).unwrap_or(0),
        Err(_) => length.parse::<Ipv4Addr>().ok()?.to_bits(),
    };
    (mask.leading_ones() == mask.count_ones()).then_some((address(base, names)?.to_bits(), mask))
}
