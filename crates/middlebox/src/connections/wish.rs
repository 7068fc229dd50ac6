//! What the rules of a new connection wish its ends to become, and what they can.

use super::key::Ends;
use super::mapping::Shifts;
use crate::field::Layer;
use crate::rewrite::{End, Plan};
use crate::value::{Value, mask4, mask6};
use castanet_wire::ip_proto;
use std::net::IpAddr;

/// How many ports are tried before there is none.
const TRIES: u32 = 1024;
/// The first port that is given to connections.
const FIRST_PORT: u16 = 1024;

/// What the ends of a new connection are to become.
pub(super) struct Wish<R> {
    from: Ends,
    /// Both ends.
    pub(super) ends: Ends,
    /// By how much numbers are shifted.
    pub(super) shifts: Shifts,
    /// Which ports, source and destination, may be any.
    free: [bool; 2],
    random: R,
}

impl<R: FnMut() -> u64> Wish<R> {
    /// That nothing changes.
    pub(super) fn new(from: Ends, random: R) -> Wish<R> {
        Wish { from, ends: from, shifts: Shifts::default(), free: [false; 2], random }
    }

    /// What a rule wishes.
    pub(super) fn follow(&mut self, plan: &Plan) {
        for turn in &plan.turns {
            match &turn.value {
                _ if !self.has(turn.layer) => {}
                Some(value) => self.set(turn.end, value),
                None => self.shuffle(turn.end),
            }
        }
    }

    fn has(&self, layer: Layer) -> bool {
        match layer {
            Layer::Ip4 => !self.from.is_ip6,
            Layer::Ip6 => self.from.is_ip6,
            Layer::Tcp => self.from.proto == ip_proto::TCP,
            Layer::Udp => self.from.proto == ip_proto::UDP,
            _ => false,
        }
    }

    fn set(&mut self, end: End, value: &Value) {
        let number = match value {
            Value::Number(n) => *n,
            _ => 0,
        };
        match end {
            End::Src => self.ends.src.0 = moved(self.ends.src.0, value),
            End::Dst => self.ends.dst.0 = moved(self.ends.dst.0, value),
            End::SrcPort => (self.ends.src.1, self.free[0]) = (number as u16, false),
            End::DstPort => (self.ends.dst.1, self.free[1]) = (number as u16, false),
            End::Id => self.shifts.fixed_id = Some(number as u16),
            End::Label => self.shifts.label = Some(number as u32),
            End::Seq | End::Ack | End::Sack => {}
        }
    }

    fn shuffle(&mut self, end: End) {
        let random = (self.random)();
        match end {
            End::SrcPort => self.free[0] = true,
            End::DstPort => self.free[1] = true,
            End::Id => (self.shifts.id, self.shifts.fixed_id) = (random as u16, None),
            End::Label => self.shifts.label = Some(random as u32 & 0xf_ffff),
            End::Seq => self.shifts.seq = random as u32,
            End::Ack => self.shifts.ack = random as u32,
            // They follow sequence numbers by themselves.
            End::Sack | End::Src | End::Dst => {}
        }
    }

    /// Sees to it that nobody else has these ends: by other ports where they are
    /// free, or where somebody has them. Whether there are some.
    pub(super) fn settle(&mut self, mut taken: impl FnMut(&Ends) -> bool) -> bool {
        let from = self.from;
        let mut is_free = |ends: &Ends| *ends == from || *ends == from.reversed() || !taken(ends);
        if self.free == [false; 2] {
            if self.ends == self.from || is_free(&self.ends) {
                return true;
            }
            self.free[0] = has_ports(self.from.proto);
        }
        if self.free == [false; 2] {
            return false;
        }
        let (mut at, step) = ((self.random)() as u32, (self.random)() as u32 | 1);
        for _ in 0..TRIES {
            at = at.wrapping_add(step);
            self.choose(at);
            if is_free(&self.ends) {
                return true;
            }
        }
        false
    }

    /// Chooses ports by a number.
    fn choose(&mut self, number: u32) {
        let count = u32::from(u16::MAX - FIRST_PORT) + 1;
        let port = FIRST_PORT + (number % count) as u16;
        // An identifier of ICMP stands for both.
        let is_icmp = matches!(self.from.proto, ip_proto::ICMP | ip_proto::ICMPV6);
        if self.free[0] || is_icmp {
            self.ends.src.1 = port;
        }
        if self.free[1] && !self.free[0] || is_icmp {
            self.ends.dst.1 = port;
        } else if self.free[1] {
            self.ends.dst.1 = FIRST_PORT + ((number / count) % count) as u16;
        }
    }
}

fn has_ports(proto: u8) -> bool {
    use ip_proto::{ICMP, ICMPV6, TCP, UDP};
    matches!(proto, TCP | UDP | ICMP | ICMPV6)
}

/// An address with a prefix put in.
fn moved(address: IpAddr, value: &Value) -> IpAddr {
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
