//! The translation that the rules of a new connection request, and port allocation for it.

use super::mapping::Offsets;
use crate::field::Layer;
use crate::rewrite::{NatField, RulePlan};
use crate::value::{Value, mask4, mask6};
use castanet_kit::conntrack::Tuple;
use castanet_wire::ip_proto;
use std::net::IpAddr;

/// Maximum number of ports that are tried.
const TRIES: u32 = 1024;
/// Lowest port that is allocated.
const FIRST_PORT: u16 = 1024;

/// The requested translation of a new connection.
pub(super) struct NatRequest<R> {
    from: Tuple,
    /// The translated tuple.
    pub(super) to: Tuple,
    /// Offsets of sequence numbers and other fields.
    pub(super) offsets: Offsets,
    /// Whether source and destination port are allocated at random.
    random_ports: [bool; 2],
    random: R,
}

impl<R: FnMut() -> u64> NatRequest<R> {
    /// Starts with the identity translation.
    pub(super) fn new(from: Tuple, random: R) -> NatRequest<R> {
        NatRequest { from, to: from, offsets: Offsets::default(), random_ports: [false; 2], random }
    }

    /// Adds the NAT changes of a rule.
    pub(super) fn add_plan(&mut self, plan: &RulePlan) {
        for change in &plan.nat_changes {
            match &change.value {
                _ if !self.has(change.layer) => {}
                Some(value) => self.set(change.field, value),
                None => self.set_random(change.field),
            }
        }
    }

    fn has(&self, layer: Layer) -> bool {
        match layer {
            Layer::Ip4 => !self.from.is_ip6(),
            Layer::Ip6 => self.from.is_ip6(),
            Layer::Tcp => self.from.proto == ip_proto::TCP,
            Layer::Udp => self.from.proto == ip_proto::UDP,
            _ => false,
        }
    }

    fn set(&mut self, field: NatField, value: &Value) {
        let number = match value {
            Value::Number(n) => *n,
            _ => 0,
        };
        match field {
            NatField::Src => self.to.src.0 = with_prefix(self.to.src.0, value),
            NatField::Dst => self.to.dst.0 = with_prefix(self.to.dst.0, value),
            NatField::SrcPort => (self.to.src.1, self.random_ports[0]) = (number as u16, false),
            NatField::DstPort => (self.to.dst.1, self.random_ports[1]) = (number as u16, false),
            NatField::Id => self.offsets.fixed_id = Some(number as u16),
            NatField::Label => self.offsets.label = Some(number as u32),
            NatField::Seq | NatField::Ack | NatField::Sack => {}
        }
    }

    fn set_random(&mut self, field: NatField) {
        let random = (self.random)();
        match field {
            NatField::SrcPort => self.random_ports[0] = true,
            NatField::DstPort => self.random_ports[1] = true,
            NatField::Id => (self.offsets.id, self.offsets.fixed_id) = (random as u16, None),
            NatField::Label => self.offsets.label = Some(random as u32 & 0xf_ffff),
            NatField::Seq => self.offsets.seq = random as u32,
            NatField::Ack => self.offsets.ack = random as u32,
            // SACK blocks follow the sequence numbers.
            NatField::Sack | NatField::Src | NatField::Dst => {}
        }
    }

    /// Makes the translated tuple unique: allocates the random ports, or another source port if the
    /// requested tuple is taken. Returns whether a free tuple was found.
    pub(super) fn allocate(&mut self, mut taken: impl FnMut(&Tuple) -> bool) -> bool {
        let from = self.from;
        let mut is_free = |ends: &Tuple| *ends == from || *ends == from.reversed() || !taken(ends);
        if self.random_ports == [false; 2] {
            if self.to == self.from || is_free(&self.to) {
                return true;
            }
            self.random_ports[0] = has_ports(self.from.proto);
        }
        if self.random_ports == [false; 2] {
            return false;
        }
        let (mut at, step) = ((self.random)() as u32, (self.random)() as u32 | 1);
        for _ in 0..TRIES {
            at = at.wrapping_add(step);
            self.set_ports(at);
            if is_free(&self.to) {
                return true;
            }
        }
        false
    }

    /// Derives the ports from a number.
    fn set_ports(&mut self, number: u32) {
        let count = u32::from(u16::MAX - FIRST_PORT) + 1;
        let port = FIRST_PORT + (number % count) as u16;
        // An ICMP identifier is both ports.
        let is_icmp = matches!(self.from.proto, ip_proto::ICMP | ip_proto::ICMPV6);
        if self.random_ports[0] || is_icmp {
            self.to.src.1 = port;
        }
        if self.random_ports[1] && !self.random_ports[0] || is_icmp {
            self.to.dst.1 = port;
        } else if self.random_ports[1] {
            self.to.dst.1 = FIRST_PORT + ((number / count) % count) as u16;
        }
    }
}

fn has_ports(proto: u8) -> bool {
    use ip_proto::{ICMP, ICMPV6, TCP, UDP};
    matches!(proto, TCP | UDP | ICMP | ICMPV6)
}

/// Replaces the prefix of an address.
fn with_prefix(address: IpAddr, value: &Value) -> IpAddr {
    match (address, value) {
        (IpAddr::V4(old), Value::Net4 { address, length }) => {
            IpAddr::V4((old.to_bits() & !mask4(*length) | address).into())
        }
        (IpAddr::V6(old), Value::Net6 { address, length }) => {
            IpAddr::V6((old.to_bits() & !mask6(*length) | address).into())
        }
        (address, _) => address,
    }
}
