//! Limits of rules: rates of packets, and numbers of connections.

use crate::connections::{addresses, octets};
use crate::field::{FieldLocation, LimitScope};
use crate::match_packet::PacketView;
use crate::rule::Rule;
use crate::value::{Condition, Value, number};
use castanet_element::shared::Shared;
use castanet_kit::lru::Lru;
use castanet_kit::rate::TokenBucket;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// Addresses whose rates a limit knows at a time.
const MOST_ADDRESSES: usize = 65_536;

/// Packets or bytes in a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rate {
    count: u64,
    unit: Unit,
    /// Length of the time in seconds.
    seconds: u64,
    /// Packets or bytes that may come at once; `None` for what is usual.
    burst: Option<u64>,
}

/// The unit of a rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Unit {
    Packet,
    /// So many bytes, of packets from their IP header on.
    Bytes(u64),
}

/// Units of bytes by name.
const BYTES: [(&str, u64); 4] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)];
/// Times by name, in seconds.
const TIMES: [(&str, u64); 4] = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];

impl Rate {
    /// How a rate is written.
    pub(crate) const SYNTAX: &str = "a rate, such as 10/s, 5/m:20 or 2MB/s: packets or B, kB, MB, GB, \
                                     in s, m, h or d, and perhaps how many of them may come at once";
    /// Packets that may come at once where the rule does not say it, as in netfilter.
    const BURST_PACKETS: u64 = 5;
    /// The same of bytes: those of a tenth of a second, and as many as this at least.
    const BURST_BYTES: u64 = 65_536;
    /// The most packets or bytes of a rate, or at once: a token bucket counts in 64 bits.
    const MOST: u64 = 1 << 40;

    /// Parses `COUNT[UNIT]/TIME[:BURST]`; the error says what is expected.
    pub(crate) fn parse(text: &str) -> Result<Rate, String> {
        Rate::read(text).ok_or_else(|| Rate::SYNTAX.to_owned())
    }

    fn read(text: &str) -> Option<Rate> {
        let (rate, burst) = match text.split_once(':') {
            Some((rate, burst)) => (rate, Some(burst)),
            None => (text, None),
        };
        let (count, time) = rate.split_once('/')?;
        let (_, seconds) = TIMES.iter().find(|(name, _)| *name == time)?;
        let (count, unit) = quantity(count)?;
        let burst = match burst {
            Some(text) => Some(quantity(text).filter(|(_, of)| {
                matches!(
                    (of, unit),
                    (Unit::Packet, Unit::Packet) | (Unit::Bytes(_), Unit::Bytes(_))
                )
            })?),
            None => None,
        };
        let burst = match burst {
            Some((count, Unit::Bytes(size))) => Some(count.checked_mul(size)?),
            Some((count, Unit::Packet)) => Some(count),
            None => None,
        };
        let rate = Rate { count, unit, seconds: *seconds, burst };
        let tokens = count.checked_mul(rate.unit_size())?;
        let is_fine = (1..=Rate::MOST).contains(&tokens) && burst != Some(0);
        (is_fine && burst.is_none_or(|it| it <= Rate::MOST)).then_some(rate)
    }

    fn unit_size(&self) -> u64 {
        match self.unit {
            Unit::Packet => 1,
            Unit::Bytes(size) => size,
        }
    }

    /// A full bucket. Its tokens are parts of packets or bytes: as many of each as the time has seconds.
    fn bucket(&self, now: u64) -> TokenBucket {
        let tokens = self.count * self.unit_size();
        let usual = match self.unit {
            Unit::Packet => Rate::BURST_PACKETS,
            Unit::Bytes(_) => Rate::BURST_BYTES.max(tokens / self.seconds / 10),
        };
        TokenBucket::new(tokens, self.burst.unwrap_or(usual) * self.seconds, now)
    }

    /// Tokens that a packet with so many bytes takes.
    fn cost(&self, bytes: usize) -> u64 {
        let count = if self.unit == Unit::Packet { 1 } else { bytes as u64 };
        count * self.seconds
    }
}

/// Parses a number with a unit of bytes, or without.
fn quantity(text: &str) -> Option<(u64, Unit)> {
    for (name, size) in BYTES {
        if let Some(count) = text.strip_suffix(name) {
            return Some((number(count, 48)?, Unit::Bytes(size)));
        }
    }
    Some((number(text, 48)?, Unit::Packet))
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |size: u64| BYTES.iter().find(|(_, it)| *it == size).map_or("", |it| it.0);
        let time = TIMES.iter().find(|(_, seconds)| *seconds == self.seconds).map_or("", |it| it.0);
        let unit = if self.unit == Unit::Packet { "" } else { name(self.unit_size()) };
        write!(f, "{}{unit}/{time}", self.count)?;
        match (self.burst, self.unit) {
            (None, _) => Ok(()),
            (Some(burst), Unit::Packet) => write!(f, ":{burst}"),
            (Some(burst), Unit::Bytes(_)) => {
                let fits = |(_, size): &&(&str, u64)| burst.is_multiple_of(*size);
                let (name, size) = BYTES.iter().find(fits).unwrap_or(&("B", 1));
                write!(f, ":{}{name}", burst / size)
            }
        }
    }
}

/// The limits of a rule, with what they have counted; shared by all workers.
#[derive(Debug)]
pub struct RuleLimits {
    meters: Vec<RateMeter>,
    counts: Vec<CountLimit>,
}

/// A limit of the connections of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CountLimit {
    pub(crate) scope: LimitScope,
    /// The connections that there may be.
    pub(crate) most: u64,
}

/// A limit of a rate.
#[derive(Debug)]
struct RateMeter {
    scope: LimitScope,
    rate: Rate,
    /// Whether it matches packets within the rate, not those beyond.
    is_within: bool,
    /// A bucket for each address; one for all has the address 0.0.0.0.
    buckets: Shared<Lru<IpAddr, TokenBucket>>,
}

impl RuleLimits {
    /// The limits of a rule; `None` if it has none.
    pub(crate) fn of(rule: &Rule) -> Option<RuleLimits> {
        let mut limits = RuleLimits { meters: Vec::new(), counts: Vec::new() };
        for predicate in &rule.matches {
            match (predicate.field.spec().location, &predicate.test) {
                (FieldLocation::Rate(scope), Some((condition, Value::Rate(rate)))) => {
                    limits.meters.push(RateMeter {
                        scope,
                        rate: *rate,
                        is_within: *condition == Condition::AtMost,
                        buckets: Shared::default(),
                    });
                }
                (FieldLocation::ConnectionCount(scope), Some((condition, Value::Number(n)))) => {
                    let most = if *condition == Condition::Less { n.saturating_sub(1) } else { *n };
                    limits.counts.push(CountLimit { scope, most });
                }
                _ => {}
            }
        }
        (!limits.meters.is_empty() || !limits.counts.is_empty()).then_some(limits)
    }

    /// The limits of the rule's connections.
    pub(crate) fn counts(&self) -> &[CountLimit] {
        &self.counts
    }

    /// Whether a packet that satisfies all else of the rule is within the rates, or beyond them, as
    /// the rule demands. The packet counts, unless it is only tested.
    pub(crate) fn allow(&self, packet: &PacketView) -> bool {
        self.meters.iter().all(|meter| meter.allows(packet))
    }
}

impl RateMeter {
    fn allows(&self, packet: &PacketView) -> bool {
        let key = self.scope.address(packet).unwrap_or(ALL);
        // Of a fragment, `bytes` has the headers alone.
        let cost = self.rate.cost(octets(packet.bytes, packet.headers));
        let is_within = self.buckets.with(|buckets| match packet.is_counted {
            true => self.take(buckets, key, cost, packet.now),
            false => {
                let held = buckets.peek(&key).cloned();
                let mut bucket = held.unwrap_or_else(|| self.rate.bucket(packet.now));
                bucket.fill(packet.now);
                bucket.contains(cost)
            }
        });
        is_within == self.is_within
    }

    /// Takes tokens from the bucket of an address; whether it had them.
    fn take(
        &self,
        buckets: &mut Lru<IpAddr, TokenBucket>,
        key: IpAddr,
        cost: u64,
        now: u64,
    ) -> bool {
        if let Some(bucket) = buckets.get_mut(&key) {
            bucket.fill(now);
            return bucket.remove_if(cost);
        }
        let mut bucket = self.rate.bucket(now);
        let is_within = bucket.remove_if(cost);
        buckets.insert(key, bucket, MOST_ADDRESSES);
        is_within
    }
}

/// The address under which a limit counts what is of no single address.
pub(crate) const ALL: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

impl LimitScope {
    /// The address of a packet by which a limit counts it; `None` if it counts all packets together.
    fn address(self, packet: &PacketView) -> Option<IpAddr> {
        let (src, dst) = addresses(packet.bytes, packet.headers)?;
        self.of_ends(src, dst)
    }

    /// The address of two by which a limit counts; `None` if it counts all together.
    pub(crate) fn of_ends(self, src: IpAddr, dst: IpAddr) -> Option<IpAddr> {
        match self {
            LimitScope::Rule => None,
            LimitScope::Source => Some(src),
            LimitScope::Destination => Some(dst),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_written_as_they_are_read() {
        for text in ["10/s", "5/m:20", "2MB/s", "1500B/d:3kB", "7GB/h:1500B", "1/h:1"] {
            assert_eq!(Rate::parse(text).map(|rate| rate.to_string()), Ok(text.to_owned()));
        }
        for wrong in ["", "10", "10/", "/s", "0/s", "10/w", "5/s:", "5/s:0", "5/s:3kB", "2MB/s:7"] {
            assert!(Rate::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Rate::parse("281474976710655GB/s").is_err(), "more than 64 bits");
    }

    #[test]
    fn a_slow_rate_is_exact() {
        let rate = Rate::parse("2/m:3").expect("is a rate");
        const SECOND: u64 = 1_000_000_000;
        let mut bucket = rate.bucket(0);
        let taken = (0..600).filter(|&second| {
            bucket.fill(second * SECOND);
            bucket.remove_if(rate.cost(60))
        });
        // Three at once, then one every thirty seconds.
        assert_eq!(taken.collect::<Vec<u64>>()[..6], [0, 1, 2, 30, 60, 90]);
    }
}
