//! Primitives of the IP languages: from parsed words to tests on header words.

use super::error::RuleError;
use super::names::{ANY_TRANSPORT, PROTOCOLS, TCP_OR_UDP};
use super::pattern::{Base, Expr, Form, Id, Pattern, Test, Word};

const ICMP: u32 = 1;
const TCP: u32 = 6;
const UDP: u32 = 17;
const DCCP: u32 = 33;

/// Bits of a header that can be compared with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// The transport protocol whose header has the field; `None` for the IP header.
    pub(crate) protocol: Option<u32>,
    /// The first bit.
    pub(crate) bit: u32,
    /// The number of bits, at most 32, all in one word.
    pub(crate) bits: u32,
    pub(crate) name: &'static str,
}

const fn ip_field(bit: u32, bits: u32, name: &'static str) -> Field {
    Field { protocol: None, bit, bits, name }
}

pub(crate) const VERS: Field = ip_field(0, 4, "ip vers");
pub(crate) const HL: Field = ip_field(4, 4, "ip hl");
pub(crate) const TOS: Field = ip_field(8, 8, "ip tos");
pub(crate) const DSCP: Field = ip_field(8, 6, "ip dscp");
pub(crate) const LEN: Field = ip_field(16, 16, "ip len");
pub(crate) const ID: Field = ip_field(32, 16, "ip id");
pub(crate) const TTL: Field = ip_field(64, 8, "ip ttl");
const PROTO: Field = ip_field(72, 8, "ip proto");
pub(crate) const TCP_WIN: Field =
    Field { protocol: Some(TCP), bit: 112, bits: 16, name: "tcp win" };
pub(crate) const ICMP_TYPE: Field =
    Field { protocol: Some(ICMP), bit: 0, bits: 8, name: "icmp type" };

/// The least significant two bits of the traffic class are ECN's (RFC 3168, section 5).
const ECN: u32 = 0b11;
/// The fragment offset, and the same with the more-fragments flag, in the word at 4.
const FRAGMENT_OFFSET: u32 = 0x1FFF;
const FRAGMENT: u32 = 0x3FFF;

/// The property that a primitive tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Host,
    Net,
    Ether,
    Proto,
    Port,
    TcpOpt,
    Frag,
    Unfrag,
    Ect,
    Ce,
    Field(Field),
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Host => "ip host",
            Kind::Net => "ip net",
            Kind::Ether => "ether host",
            Kind::Proto => "proto",
            Kind::Port => "port",
            Kind::TcpOpt => "tcp opt",
            Kind::Frag => "ip frag",
            Kind::Unfrag => "ip unfrag",
            Kind::Ect => "ip ect",
            Kind::Ce => "ip ce",
            Kind::Field(field) => field.name,
        }
    }
}

/// The value that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    None,
    Int(u32),
    Host(u32),
    Net(u32, u32),
    Ether([u8; 6]),
    Proto(u32),
    Port(u32),
    Flags(u32),
    IcmpType(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Src,
    Dst,
    Both,
    Either,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    Greater,
    Less,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Ip,
    Ether,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    Int(u32),
    Address(u32),
    Ether([u8; 6]),
}

/// A primitive as parsed. Parts that it leaves open are inherited from the previous primitive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Primitive {
    /// The offset of its first word.
    pub(crate) offset: usize,
    pub(crate) kind: Option<Kind>,
    pub(crate) data: Data,
    pub(crate) relation: Relation,
    pub(crate) negated: bool,
    pub(crate) direction: Option<Direction>,
    pub(crate) protocol: Option<u32>,
    pub(crate) header: Option<Header>,
    pub(crate) mask: Option<Mask>,
}

/// `lo..=hi` under a mask, or the opposite; `Always` if the result is the same for all packets.
#[derive(Clone, Copy)]
enum Bound {
    Within { mask: u32, lo: u32, hi: u32, negated: bool, is_limit: bool },
    Always(bool),
}

impl Bound {
    fn value(mask: u32, value: u32, negated: bool) -> Bound {
        Bound::Within { mask, lo: value, hi: value, negated, is_limit: false }
    }

    /// Whether the bound is the opposite of a test, so that it has to hold for both ends of a packet
    /// where the test has to hold for one.
    fn is_negated(&self) -> bool {
        matches!(self, Bound::Within { negated: true, .. } | Bound::Always(false))
    }
}

impl Primitive {
    pub(crate) fn at(offset: usize) -> Self {
        Primitive {
            offset,
            kind: None,
            data: Data::None,
            relation: Relation::Equal,
            negated: false,
            direction: None,
            protocol: None,
            header: None,
            mask: None,
        }
    }

    fn error(&self, message: String) -> RuleError {
        RuleError::new(self.offset, message)
    }

    fn kind_error(&self, message: &str) -> RuleError {
        let name = self.kind.map_or("<none>", Kind::name);
        self.error(format!("'{name}': {message}"))
    }

    /// Completes the primitive from `previous`, checks it and adds its tests to `pattern`.
    pub(crate) fn finish(
        &mut self,
        previous: &Primitive,
        pattern: &mut Pattern,
    ) -> Result<Id, RuleError> {
        let has_direction = self.direction.is_some();
        self.infer_kind(previous)?;
        let ether = match self.header {
            None => matches!(self.data, Data::Ether(_)),
            Some(header) => header == Header::Ether,
        };
        if ether && self.kind == Some(Kind::Host) {
            self.kind = Some(Kind::Ether);
        }
        let kind = self.kind.ok_or_else(|| self.error("partial directive".into()))?;
        if ether && kind != Kind::Ether {
            let message = match kind {
                Kind::Net => "address missing",
                _ => "ip only",
            };
            return Err(self.kind_error(message));
        }
        if matches!(kind, Kind::Host | Kind::Net | Kind::Ether | Kind::Port) {
            self.direction = self.direction.or(Some(Direction::Either));
        } else if has_direction {
            let warning = self.kind_error("'src' or 'dst' ignored");
            pattern.warnings.push(warning);
        }
        self.compile(kind, pattern)
    }

    /// Click's rules for omitted parts: the kind follows from the data and the previous primitive.
    fn infer_kind(&mut self, previous: &Primitive) -> Result<(), RuleError> {
        if self.kind.is_some() {
            return Ok(());
        }
        let kind = match self.data {
            Data::Host(_) => Kind::Host,
            Data::Net(..) => Kind::Net,
            Data::Ether(_) => Kind::Ether,
            Data::Flags(_) => Kind::TcpOpt,
            Data::Proto(_) => Kind::Proto,
            Data::Port(_) => Kind::Port,
            Data::IcmpType(_) => Kind::Field(ICMP_TYPE),
            Data::Int(_) => match previous.kind {
                Some(kind @ (Kind::Field(_) | Kind::Proto | Kind::Port)) => kind,
                _ => {
                    return Err(self
                        .error("specify header field or 'port'".into())
                        .help("a number alone repeats the field of the primitive before it"));
                }
            },
            Data::None if self.protocol.is_some() => Kind::Proto,
            Data::None => return Err(self.error("partial directive".into())),
        };
        match kind {
            Kind::Host | Kind::Net | Kind::Ether | Kind::TcpOpt => {
                self.direction = self.direction.or(previous.direction)
            }
            Kind::Port => {
                self.direction = self.direction.or(previous.direction);
                self.protocol = self.protocol.or(previous.protocol);
            }
            Kind::Field(field) => self.protocol = self.protocol.or(field.protocol),
            _ => {}
        }
        self.kind = Some(kind);
        Ok(())
    }

    fn compile(&mut self, kind: Kind, pattern: &mut Pattern) -> Result<Id, RuleError> {
        match kind {
            Kind::Host | Kind::Net => self.compile_host(kind, pattern),
            Kind::Ether => self.compile_ether(pattern),
            Kind::Proto => self.compile_proto(pattern),
            Kind::Port => self.compile_port(pattern),
            Kind::TcpOpt => self.compile_flags(pattern),
            Kind::Frag | Kind::Unfrag => {
                if self.data != Data::None || self.mask.is_some() {
                    return Err(self.kind_error("value not supported"));
                }
                let unfragmented = (kind == Kind::Unfrag) != self.negated;
                self.kind = Some(Kind::Frag);
                self.negated = unfragmented;
                let test = Test::equal(Base::Network, 4, FRAGMENT, 0);
                let head = self.head(pattern, false);
                let id = pattern.test(test, !unfragmented);
                Ok(pattern.and(head, id))
            }
            Kind::Ce => {
                if self.data != Data::None || self.mask.is_some() {
                    return Err(self.kind_error("value not supported"));
                }
                let negated = self.negated;
                self.kind = Some(Kind::Field(TOS));
                Ok(self.field(pattern, TOS, Bound::value(ECN, ECN, negated)))
            }
            Kind::Ect => self.compile_ect(pattern),
            Kind::Field(field) => {
                let value = match self.data {
                    Data::Int(value) => value,
                    Data::IcmpType(value) if field == ICMP_TYPE => value,
                    _ => return Err(self.kind_error("value missing")),
                };
                let full = u32::MAX >> (32 - field.bits);
                let bound = self.bound(full, value, pattern)?;
                Ok(self.field(pattern, field, bound))
            }
        }
    }

    fn compile_ect(&mut self, pattern: &mut Pattern) -> Result<Id, RuleError> {
        let bound = match self.data {
            Data::Int(value) => self.bound(ECN, value, pattern)?,
            Data::None if self.mask.is_none() => Bound::value(ECN, 0, !self.negated),
            _ => return Err(self.kind_error("value missing")),
        };
        self.kind = Some(Kind::Field(TOS));
        Ok(self.field(pattern, TOS, bound))
    }

    fn compile_host(&mut self, kind: Kind, pattern: &mut Pattern) -> Result<Id, RuleError> {
        let (address, mask) = match (kind, self.data) {
            (Kind::Host, Data::Host(address)) => (address, u32::MAX),
            (Kind::Net, Data::Net(address, mask)) => (address, mask),
            _ => {
                let example = if kind == Kind::Host { "host 10.0.0.1" } else { "net 10.0.0.0/8" };
                return Err(self
                    .kind_error("address missing")
                    .help(format!("such as '{example}'")));
            }
        };
        if self.relation != Relation::Equal {
            return Err(self.kind_error("operator not supported"));
        }
        let mask = match self.mask {
            None => mask,
            Some(Mask::Int(mask) | Mask::Address(mask)) => mask,
            Some(Mask::Ether(_)) => return Err(self.kind_error("bad mask")),
        };
        self.kind = Some(Kind::Host);
        let head = self.head(pattern, false);
        let (negated, address) = (self.negated, address & mask);
        let id = self.either(pattern, negated, |pattern, src| {
            let offset = if src { 12 } else { 16 };
            pattern.test(Test::equal(Base::Network, offset, mask, address), negated)
        });
        Ok(pattern.and(head, id))
    }

    fn compile_ether(&mut self, pattern: &mut Pattern) -> Result<Id, RuleError> {
        let Data::Ether(address) = self.data else {
            return Err(self.kind_error("address missing"));
        };
        if self.relation != Relation::Equal {
            return Err(self.kind_error("operator not supported"));
        }
        let mask = match self.mask {
            None => [0xFF; 6],
            Some(Mask::Ether(mask)) => mask,
            Some(_) => return Err(self.kind_error("bad mask")),
        };
        let (value, mask) = (six(address), six(mask));
        let head = self.head(pattern, false);
        let negated = self.negated;
        let id = self.either(pattern, negated, |pattern, src| {
            // The address takes one word and half of the next: at 8 and 12 for the source,
            // 0 and 4 for the destination, relative to two bytes before the header.
            let (first, shift) = if src { (8, 16) } else { (0, 0) };
            let part = |n: u64, upper: bool| ((n << shift) >> if upper { 32 } else { 0 }) as u32;
            let upper = Test::equal(Base::Link, first, part(mask, true), part(value & mask, true));
            let lower =
                Test::equal(Base::Link, first + 4, part(mask, false), part(value & mask, false));
            let a = pattern.test(upper, negated);
            let b = pattern.test(lower, negated);
            pattern.push(if negated { Expr::Or(a, b) } else { Expr::And(a, b) })
        });
        Ok(pattern.and(head, id))
    }

    fn compile_proto(&mut self, pattern: &mut Pattern) -> Result<Id, RuleError> {
        let number = match self.data {
            Data::Int(n) | Data::Proto(n) => Some(n),
            _ => None,
        };
        if let (Some(a), Some(b)) = (number, self.protocol)
            && a != b
        {
            return Err(self.kind_error("specified twice"));
        }
        if number.is_none() && self.data != Data::None {
            return Err(self.kind_error("value missing"));
        }
        let Some(number) = number.or(self.protocol) else {
            return Err(self.kind_error("value missing").help("such as 'ip proto tcp'"));
        };
        self.protocol = None;
        if matches!(number, TCP_OR_UDP | ANY_TRANSPORT) {
            if self.relation != Relation::Equal || self.mask.is_some() {
                return Err(self.kind_error("operator or mask not supported"));
            }
            self.protocol = (!self.negated).then_some(number);
            return Ok(protocol(pattern, number, self.negated)
                .unwrap_or_else(|| pattern.push(Expr::Const(!self.negated, Word::FIRST))));
        }
        let bound = self.bound(0xFF, number, pattern)?;
        let mut form = Form::Value;
        if let Bound::Within { mask: 0xFF, negated: false, is_limit: false, .. } = bound {
            self.protocol = Some(number);
            form = Form::ValueTwice;
        }
        Ok(compare(pattern, Base::Network, PROTO, bound, form))
    }

    fn compile_port(&mut self, pattern: &mut Pattern) -> Result<Id, RuleError> {
        let (Data::Int(number) | Data::Port(number)) = self.data else {
            return Err(self.kind_error("value missing").help("such as 'dst port 80'"));
        };
        let carrier = *self.protocol.get_or_insert(TCP_OR_UDP);
        if !matches!(carrier, TCP | UDP | DCCP | TCP_OR_UDP) {
            return Err(self.kind_error(&format!("bad protocol {carrier}")));
        }
        let bound = self.bound(0xFFFF, number, pattern)?;
        let head = self.head(pattern, true);
        let id = self.either(pattern, bound.is_negated(), |pattern, src| {
            let bit = if src { 0 } else { 16 };
            compare(pattern, Base::Transport, ip_field(bit, 16, "port"), bound, Form::Value)
        });
        Ok(pattern.and(head, id))
    }

    fn compile_flags(&mut self, pattern: &mut Pattern) -> Result<Id, RuleError> {
        let (Data::Int(flags) | Data::Flags(flags)) = self.data else {
            return Err(self.kind_error("value missing").help("such as 'tcp opt syn'"));
        };
        if *self.protocol.get_or_insert(TCP) != TCP {
            return Err(self.kind_error("bad protocol").help("only TCP has these flags"));
        }
        if self.relation != Relation::Equal || self.negated || self.mask.is_some() {
            return Err(self
                .kind_error("operator or mask not supported")
                .help("write 'not' before it, or test tcp[13]"));
        }
        if flags > 0xFF {
            return Err(self.kind_error(&format!("value {flags} out of range")));
        }
        let head = self.head(pattern, true);
        let id = pattern.test(Test::equal(Base::Transport, 12, flags << 16, flags << 16), false);
        Ok(pattern.and(head, id))
    }

    fn field(&self, pattern: &mut Pattern, field: Field, bound: Bound) -> Id {
        let base = if field.protocol.is_some() { Base::Transport } else { Base::Network };
        let head = self.head(pattern, field.protocol.is_some());
        let id = compare(pattern, base, field, bound, Form::Value);
        pattern.and(head, id)
    }

    /// Tests of the transport protocol and, for transport headers, against later fragments.
    fn head(&self, pattern: &mut Pattern, transport: bool) -> Option<Id> {
        let mut head = self.protocol.and_then(|number| protocol(pattern, number, false));
        if transport {
            let first = pattern.test(Test::equal(Base::Network, 4, FRAGMENT_OFFSET, 0), false);
            head = Some(pattern.and(head, first));
        }
        head
    }

    /// Tests of source, destination or both, by De Morgan if each test is a negation.
    fn either(
        &self,
        pattern: &mut Pattern,
        negated: bool,
        mut test: impl FnMut(&mut Pattern, bool) -> Id,
    ) -> Id {
        match self.direction {
            Some(Direction::Src) => test(pattern, true),
            Some(Direction::Dst) => test(pattern, false),
            direction => {
                let (a, b) = (test(pattern, true), test(pattern, false));
                let both = (direction == Some(Direction::Both)) != negated;
                pattern.push(if both { Expr::And(a, b) } else { Expr::Or(a, b) })
            }
        }
    }

    /// Relation, value and mask as a range of a field whose bits are `full`.
    fn bound(&self, full: u32, value: u32, pattern: &mut Pattern) -> Result<Bound, RuleError> {
        let mask = match self.mask {
            None => full,
            Some(Mask::Int(mask)) if mask & !full == 0 => mask,
            Some(Mask::Int(_)) => {
                return Err(self.kind_error(&format!("mask out of range, bound 0x{full:X}")));
            }
            Some(_) => return Err(self.kind_error("bad mask")),
        };
        if self.relation == Relation::Equal {
            if value > full {
                return Err(self.kind_error(&format!("out of range, bound {full}")));
            }
            return Ok(Bound::value(mask, value & mask, self.negated));
        }
        let less = self.relation == Relation::Less;
        let always = match less {
            true if value > mask => Some(!self.negated),
            true if value == 0 => Some(self.negated),
            false if value >= mask => Some(self.negated),
            _ => None,
        };
        if let Some(holds) = always {
            pattern.warnings.push(self.error(format!(
                "relation '{} {value}' is always {holds} (range 0-{mask})",
                self.relation_text()
            )));
            return Ok(Bound::Always(holds));
        }
        // As in Click, 'x < n' is 'not x > n - 1': so 'port < n' is true if both ports are less,
        // while 'port > n' is true if one of them is greater.
        let limit = if less { value - 1 } else { value };
        let negated = self.negated != less;
        Ok(Bound::Within { mask, lo: limit + 1, hi: mask, negated, is_limit: true })
    }

    fn relation_text(&self) -> &'static str {
        match (self.relation, self.negated) {
            (Relation::Equal, false) => "=",
            (Relation::Equal, true) => "!=",
            (Relation::Greater, false) => ">",
            (Relation::Greater, true) => "<=",
            (Relation::Less, false) => "<",
            (Relation::Less, true) => ">=",
        }
    }
}

fn six(bytes: [u8; 6]) -> u64 {
    bytes.iter().fold(0, |n, &b| n << 8 | u64::from(b))
}

/// The test that the IP protocol is (`negated`: is not) `number`; `None` if any will do.
fn protocol(pattern: &mut Pattern, number: u32, negated: bool) -> Option<Id> {
    let test = |number: u32| Test::equal(Base::Network, 8, 0x00FF_0000, number << 16);
    match number {
        ANY_TRANSPORT => None,
        TCP_OR_UDP => {
            let (a, b) = (pattern.test(test(TCP), negated), pattern.test(test(UDP), negated));
            Some(pattern.push(if negated { Expr::And(a, b) } else { Expr::Or(a, b) }))
        }
        _ => Some(pattern.test(test(number), negated)),
    }
}

/// The test that `field` is within `bound`; `form` is that of a bound with one value.
fn compare(pattern: &mut Pattern, base: Base, field: Field, bound: Bound, form: Form) -> Id {
    let shift = 32 - (field.bit % 32 + field.bits);
    let offset = (field.bit / 32 * 4) as u16;
    let (mask, lo, hi, negated, is_limit) = match bound {
        Bound::Always(holds) => return pattern.push(Expr::Const(holds, Word { base, offset })),
        Bound::Within { mask, lo, hi, negated, is_limit } => (mask, lo, hi, negated, is_limit),
    };
    let form = if is_limit { Form::Limit { shift: shift as u8 } } else { form };
    // The opposite of 'greater' is again a range, and both are false for short packets.
    let (lo, hi, negated) = match negated && lo != hi && hi == mask {
        true => (0, lo - 1, false),
        false => (lo, hi, negated),
    };
    let test = Test { base, offset, mask: mask << shift, lo: lo << shift, hi: hi << shift };
    pattern.test_in_form(test, negated, form)
}

/// A protocol in the languages' syntax.
pub(crate) fn protocol_text(number: u32) -> String {
    let name = PROTOCOLS.iter().find(|&&(_, n)| n == number);
    name.map_or_else(|| format!("ip proto {number}"), |&(name, _)| name.into())
}
