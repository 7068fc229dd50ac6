//! What of a packet and of a rule fits into a key of `kit::rules`.

use crate::field::{Field, Kind, Layer, Place};
use crate::headers::Headers;
use crate::holds::Seen;
use crate::rule::{Predicate, Rule};
use crate::value::{Condition, Value, mask4, mask6};
use castanet_kit::rules::{Key, Masked, WORDS};
use castanet_wire::{Icmp, Ipv4Header, Ipv6Header, Tcp, bits};

/// Layers with a bit each.
const LAYERS: [Layer; 6] =
    [Layer::Ip4, Layer::Ip6, Layer::Icmp, Layer::Icmp6, Layer::Udp, Layer::Tcp];

/// Where things lie in a key: a word, and how far up in it.
type Spot = (usize, u32);
const LAYER: Spot = (0, 0);
const PROTOCOL: Spot = (0, 8);
const FLAGS: Spot = (0, 16);
const HOPS: Spot = (0, 24);
const CLASS: Spot = (0, 32);
const KIND: Spot = (0, 40);
const CODE: Spot = (0, 48);
const SRC: Spot = (1, 0);
const DST: Spot = (3, 0);
const SPORT: Spot = (5, 0);
const DPORT: Spot = (5, 16);
/// A bit for each option of a kind below 64; that of 0 is for any.
const OPTIONS: Spot = (6, 0);

/// The bit of a layer; 0 for any.
fn layer_bit(layer: Layer) -> u64 {
    LAYERS.iter().position(|it| *it == layer).map_or(0, |at| 1 << at)
}

/// A key while it is filled.
#[derive(Default)]
struct Filling([u64; WORDS]);

impl Filling {
    #[inline]
    fn put(&mut self, (word, shift): Spot, number: u64) {
        self.0[word] |= number << shift;
    }

    /// An address of IPv6, in two words.
    #[inline]
    fn put_wide(&mut self, (word, _): Spot, number: u128) {
        self.0[word] |= (number >> u64::BITS) as u64;
        self.0[word + 1] |= number as u64;
    }
}

/// The key of a packet.
#[inline]
pub(super) fn of_packet(seen: &Seen) -> Key {
    let headers = seen.headers;
    let mut key = Filling::default();
    let ip = seen.bytes.get(headers.network..).unwrap_or_default();
    key.put(LAYER, layer_bit(if headers.is_ip6 { Layer::Ip6 } else { Layer::Ip4 }));
    key.put(LAYER, layer_bit(headers.upper));
    key.put(PROTOCOL, headers.protocol.into());
    if headers.is_ip6 {
        if let Some((ip, _)) = Ipv6Header::from_prefix(ip) {
            key.put(HOPS, ip.hop_limit().into());
            key.put(CLASS, ip.traffic_class().into());
            key.put_wide(SRC, ip.src().to_bits());
            key.put_wide(DST, ip.dst().to_bits());
        }
    } else if let Some((ip, _)) = Ipv4Header::from_prefix(ip) {
        key.put(HOPS, ip.ttl().into());
        key.put(CLASS, ip.tos().into());
        key.put(SRC, ip.src_u32().into());
        key.put(DST, ip.dst_u32().into());
    }
    upper(&mut key, seen.bytes.get(headers.transport..).unwrap_or_default(), headers);
    Key(key.0)
}

#[inline]
fn upper(key: &mut Filling, header: &[u8], headers: &Headers) {
    match headers.upper {
        Layer::Tcp | Layer::Udp => {
            let (src, dst) = castanet_wire::udp::ports(header).unwrap_or_default();
            key.put(SPORT, src.into());
            key.put(DPORT, dst.into());
        }
        Layer::Icmp | Layer::Icmp6 => {
            if let Some((icmp, _)) = Icmp::from_prefix(header) {
                key.put(KIND, icmp.kind().into());
                key.put(CODE, icmp.code().into());
            }
        }
        _ => {}
    }
    if headers.upper == Layer::Tcp {
        let flags = Tcp::from_prefix(header).map_or(0, |(tcp, _)| tcp.flags());
        key.put(FLAGS, flags.into());
        for option in headers.options.iter() {
            let own = if option.kind < 64 { 1 << option.kind } else { 0 };
            key.put(OPTIONS, own | 1);
        }
    }
}

/// The key of a rule: bits that every packet has that the rule is about.
pub(super) fn of_rule(rule: &Rule) -> Masked {
    let mut wanted = Wanted::default();
    rule.matches.iter().for_each(|predicate| wanted.add(predicate));
    match wanted.never {
        // No packet has all bits of both families.
        true => Masked::new(Key([u64::MAX; WORDS]), Key([u64::MAX; WORDS])),
        false => Masked::new(Key(wanted.mask.0), Key(wanted.value.0)),
    }
}

/// Bits that a rule wants.
#[derive(Default)]
struct Wanted {
    mask: Filling,
    value: Filling,
    /// Whether it wants what no packet has.
    never: bool,
}

impl Wanted {
    /// Wants these bits to be that.
    fn want(&mut self, spot: Spot, mask: u64, value: u64) {
        let (old_mask, old) = (self.mask.0[spot.0], self.value.0[spot.0]);
        let both = old_mask & mask << spot.1;
        self.never |= (old ^ value << spot.1) & both != 0;
        self.mask.put(spot, mask);
        self.value.put(spot, value & mask);
    }

    fn add(&mut self, predicate: &Predicate) {
        let (field, negated) = (predicate.field, predicate.negated);
        let spec = field.spec();
        if negated && predicate.is_about_layer() {
            return;
        }
        let layer = layer_bit(spec.layer);
        self.want(LAYER, layer, layer);
        match &predicate.test {
            None => self.add_alone(field, negated),
            Some((Condition::Equal, value)) if !negated => self.add_equal(field, value),
            Some((Condition::Unequal, value)) if negated => self.add_equal(field, value),
            _ => {}
        }
    }

    /// A flag or an option that must be there, or not.
    fn add_alone(&mut self, field: Field, negated: bool) {
        let spec = field.spec();
        match (spec.place, spec.kind) {
            (Place::Bits { first, .. }, Kind::Flag) if spec.layer == Layer::Tcp => {
                let bit = flag_bit(first);
                self.want(FLAGS, bit, if negated { 0 } else { bit });
            }
            (Place::Option(_), _) => {
                let kind = field.option_kind().unwrap_or(0);
                if kind < 64 {
                    self.want(OPTIONS, 1 << kind, u64::from(!negated) << kind);
                }
            }
            _ => {}
        }
    }

    fn add_equal(&mut self, field: Field, value: &Value) {
        let number = match value {
            Value::Number(n) => *n,
            _ => 0,
        };
        match (field.spec().name, value) {
            ("ip-saddr", Value::Net4 { address, length }) => {
                self.want(SRC, mask4(*length).into(), (*address).into());
            }
            ("ip-daddr", Value::Net4 { address, length }) => {
                self.want(DST, mask4(*length).into(), (*address).into());
            }
            ("ip6-saddr", Value::Net6 { address, length }) => self.wide(SRC, *length, *address),
            ("ip6-daddr", Value::Net6 { address, length }) => self.wide(DST, *length, *address),
            ("ip-proto" | "ip6-proto", _) => self.want(PROTOCOL, 0xff, number),
            ("ip-ttl" | "ip6-hop-limit", _) => self.want(HOPS, 0xff, number),
            ("ip-dscp" | "ip6-dscp", _) => self.want(CLASS, 0xfc, number << 2),
            ("ip-ecn" | "ip6-ecn", _) => self.want(CLASS, 3, number),
            ("ip6-traffic-class", _) => self.want(CLASS, 0xff, number),
            ("icmp-type" | "icmp6-type", _) => self.want(KIND, 0xff, number),
            ("icmp-code" | "icmp6-code", _) => self.want(CODE, 0xff, number),
            ("tcp-sport" | "udp-sport", _) => self.want(SPORT, 0xffff, number),
            ("tcp-dport" | "udp-dport", _) => self.want(DPORT, 0xffff, number),
            ("tcp-flags", _) => self.want(FLAGS, 0xff, number),
            ("net-proto", _) => {
                let layer = layer_bit(if number == 6 { Layer::Ip6 } else { Layer::Ip4 });
                self.want(LAYER, layer, layer);
            }
            _ => self.add_valued(field, number),
        }
    }

    /// A flag with a value, or an option, which must be there to have one.
    fn add_valued(&mut self, field: Field, number: u64) {
        let spec = field.spec();
        match (spec.place, spec.kind, field.option_kind()) {
            (Place::Bits { first, .. }, Kind::Flag, _) if spec.layer == Layer::Tcp => {
                let bit = flag_bit(first);
                self.want(FLAGS, bit, if number == 0 { 0 } else { bit });
            }
            (Place::Option(_), _, Some(kind)) if kind < 64 => {
                self.want(OPTIONS, 1 << kind, 1 << kind);
            }
            _ => {}
        }
    }

    fn wide(&mut self, (word, _): Spot, length: u8, address: u128) {
        let mask = mask6(length);
        self.want((word, 0), (mask >> u64::BITS) as u64, (address >> u64::BITS) as u64);
        self.want((word + 1, 0), mask as u64, address as u64);
    }
}

/// The bit of TCP's flags that begins at a bit of the header.
fn flag_bit(first: u16) -> u64 {
    let mut flags = [0; Tcp::LEN];
    bits::set(&mut flags, first.into(), 1, 1);
    u64::from(flags[Tcp::FLAGS])
}
