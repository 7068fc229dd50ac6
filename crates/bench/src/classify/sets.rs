//! Sets of rules, and packets that they are about.

use crate::traffic::Rng;
use std::net::Ipv4Addr;

/// A set of rules.
pub(crate) struct Set {
    /// Name in the table.
    pub(crate) case: &'static str,
    /// Number of rules.
    pub(crate) count: usize,
    /// Kind of its rules.
    pub(super) kind: Kind,
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Addresses, protocol, destination port: one mask.
    Tuples { stateful: bool },
    /// Prefixes with this number of different pairs of lengths.
    Masks(usize),
    /// As ClassBench's access lists: nested prefixes, ports exact, any and in ranges.
    AccessList,
    /// TCP options and their values.
    Options,
    /// One rule that translates addresses and ports.
    Nat,
}

/// All sets with at most `most` rules.
pub(crate) fn sets(most: usize) -> Vec<Set> {
    let mut sets = Vec::new();
    let mut add = |case, count, kind| {
        if count <= most {
            sets.push(Set { case, count, kind });
        }
    };
    for count in [10, 100, 1000, 10_000, 100_000, 1_000_000] {
        add("5-tuples", count, Kind::Tuples { stateful: false });
    }
    for masks in [1, 4, 16, 26, 40, 64, 100, 200] {
        add("masks", 10_000, Kind::Masks(masks));
    }
    for count in [1000, 10_000, 100_000] {
        add("access-list", count, Kind::AccessList);
    }
    add("tcp-options", 100, Kind::Options);
    add("stateful", 100_000, Kind::Tuples { stateful: true });
    add("nat", 1, Kind::Nat);
    sets
}

/// Random numbers that depend on the rule's number alone.
fn numbers(of: usize) -> Rng {
    let mut numbers = Rng((of as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    numbers.next();
    numbers
}

/// A host that packets may come from and go to.
fn address(number: u64) -> u32 {
    let top = 1 + (number >> 24) as u32 % 120;
    top << 24 | number as u32 & 0x00ff_ffff
}

/// Fields that a rule of a set tests.
pub(super) struct RuleFields {
    pub(super) src: u32,
    pub(super) dst: u32,
    pub(super) lengths: (u32, u32),
    pub(super) port: u16,
    pub(super) random: u64,
}

fn subject(n: usize) -> RuleFields {
    let mut numbers = numbers(n);
    let (src, dst) = (address(numbers.next()), address(numbers.next()));
    let (port, random) = ((numbers.next() >> 17) as u16 | 1, numbers.next());
    RuleFields { src, dst, lengths: (32, 32), port, random }
}

pub(super) fn prefix(address: u32, length: u32) -> String {
    let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
    format!("{}/{length}", Ipv4Addr::from(address & mask))
}

impl Set {
    /// All rules, as commands.
    pub(crate) fn text(&self) -> String {
        (0..self.count).fold(String::new(), |text, n| text + &self.rule(n) + "\n")
    }

    pub(super) fn about(&self, n: usize) -> RuleFields {
        let mut subject = subject(n);
        match self.kind {
            Kind::Masks(masks) => {
                let mask = (n % masks) as u32;
                subject.lengths = (8 + mask * 7 % 25, 8 + (mask / 25 * 3 + mask) % 25);
            }
            Kind::AccessList => {
                // Many rules are about few networks.
                let mut network = numbers(n / 40);
                let share = |own: u32, common: u64| address(common) & 0xffff_0000 | own & 0xffff;
                subject.src = share(subject.src, network.next());
                subject.dst = share(subject.dst, network.next());
                let lengths = [32, 32, 24, 28, 16, 30, 27, 20, 32, 0];
                let pick = |bits: u64| lengths[bits as usize % lengths.len()];
                let (src, dst) = (pick(subject.random >> 8), pick(subject.random >> 16));
                // A rule for any source is for few destinations, and the other way round.
                let narrow =
                    |length: u32, other: u32| if other < 20 { length.max(28) } else { length };
                subject.lengths = (narrow(src, dst), narrow(dst, narrow(src, dst)));
            }
            _ => {}
        }
        subject
    }

    /// A rule as a command; `n` may be greater than the size of the set.
    pub(crate) fn rule(&self, n: usize) -> String {
        let RuleFields { src, dst, lengths, port, random } = self.about(n);
        let ends = || {
            let (src, dst) = (prefix(src, lengths.0), prefix(dst, lengths.1));
            format!("ip-saddr {src} ip-daddr {dst}")
        };
        match self.kind {
            Kind::Tuples { stateful } => {
                let add = if stateful { "add-stateful" } else { "add" };
                format!("{add} ip-proto udp {} udp-dport {port} accept", ends())
            }
            Kind::Masks(_) => format!("add ip-proto udp {} udp-dport {port} accept", ends()),
            Kind::AccessList => {
                let ports = match random >> 40 & 7 {
                    0..4 => format!(" udp-dport {port}"),
                    4 => " udp-dport >= 1024".to_owned(),
                    5 => format!(" udp-dport >= {} udp-dport <= {}", port & !15, port | 15),
                    _ => String::new(),
                };
                format!("add ip-proto udp {}{ports} accept", ends())
            }
            Kind::Options => {
                let size = 500 + n;
                match n % 5 {
                    0 => format!("add tcp-opt-mss {size} tcp-opt-wscale accept"),
                    1 => format!("add tcp-syn tcp-opt-mss {size} accept"),
                    2 => format!("add ! tcp-opt-sackp tcp-opt-mss {size} accept"),
                    3 => format!("add tcp-opt {} accept", 40 + n),
                    _ => format!("add tcp-opt-wscale {n} tcp-opt-timestamp accept"),
                }
            }
            Kind::Nat => "add-stateful ip-proto udp ip-saddr 1.0.0.0/8 map ip-saddr 200.0.0.1 \
                          shuffle udp-sport"
                .to_owned(),
        }
    }

    /// A packet of a flow that matches a rule.
    pub(crate) fn packet(&self, flow: usize) -> String {
        let RuleFields { src, dst, port, random, .. } = self.about(flow % self.count);
        let sport = 1024 + (flow / self.count + random as usize) % 60_000;
        let (src, dst) = (Ipv4Addr::from(src), Ipv4Addr::from(dst));
        match self.kind {
            Kind::Options => {
                let (size, scale) = (500 + flow % 150, flow % 15);
                let ports = (1024 + flow % 60_000, 80);
                let options = format!("mss{size};wscale{scale};sackok;ts1:{flow}");
                format!("{src}:{} > {dst}:{} tcp syn tcpopt {options}", ports.0, ports.1)
            }
            Kind::Nat => {
                let client = Ipv4Addr::from(1 << 24 | flow as u32 & 0x00ff_ffff);
                format!("{client}:{sport} > {dst}:53 udp len 60")
            }
            _ => format!("{src}:{sport} > {dst}:{port} udp len 60"),
        }
    }
}
