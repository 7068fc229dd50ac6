//! The fields that rules can match and change, each declared once.

mod table;

pub use castanet_wire::headers::Layer;
pub use table::FIELDS;

use crate::ct_state::CtState;
use castanet_lang::nearest;
use std::fmt;

/// Location of a field in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldLocation {
    /// No data: every IP packet has the field.
    Everywhere,
    /// The input interface.
    In,
    /// The output interface.
    Out,
    /// The IP version.
    Version,
    /// Bits of the layer's header.
    Bits {
        /// The first bit, counted from the start of the header.
        first: u16,
        /// Number of bits.
        count: u16,
    },
    /// Bits of the Ethernet header in front of the IP header.
    Ethernet {
        /// The first bit, counted from the start of the header.
        first: u16,
        /// Number of bits.
        count: u16,
    },
    /// Bits of the control information of the first VLAN tag.
    Vlan {
        /// The first bit, counted from the start of the control information.
        first: u16,
        /// Number of bits.
        count: u16,
    },
    /// The payload of the layer.
    Payload,
    /// The protocol that an IP packet carries, behind IPv6's extension headers.
    Upper,
    /// An extension header of that protocol number; any, without one.
    Extension(Option<u8>),
    /// A TCP option of that kind; any, without one.
    Option(Option<u8>),
    /// The state of the packet's connection.
    ConnectionState,
    /// The chains that the packet is sent to.
    Chain,
    /// The rate of the packets that the rule matches otherwise.
    Rate(LimitScope),
    /// The number of connections that the rule has begun.
    ConnectionCount(LimitScope),
}

/// The packets or connections of a rule that a limit counts together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LimitScope {
    /// All of them.
    Rule,
    /// Those with the same source address.
    Source,
    /// Those with the same destination address.
    Destination,
}

/// Kind of the values of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No value: the field is present or absent.
    Presence,
    /// A number.
    Number,
    /// A number that is computed from the rest of the packet.
    Checksum,
    /// One bit: alone, it means that the bit is set.
    Flag,
    /// One value of a wider field: alone, it means that this is the value.
    Named(u8),
    /// A protocol, by name or number.
    Protocol,
    /// `ip4` or `ip6`.
    Version,
    /// An IPv4 address or prefix.
    Address4,
    /// An IPv6 address or prefix.
    Address6,
    /// The address of an Ethernet station.
    Station,
    /// Bytes in hexadecimal, of which the field begins with.
    Prefix,
    /// All bytes of a TCP option, in hexadecimal or as a number.
    Bytes,
    /// The name of an interface.
    Interface,
    /// A state of connections.
    State,
    /// The name of a chain.
    Chain,
    /// Packets or bytes in a time.
    Rate,
}

/// Declaration of a field.
#[derive(Debug)]
pub struct FieldSpec {
    /// Its name in rules.
    pub name: &'static str,
    /// The header that it belongs to.
    pub layer: Layer,
    /// Location in the packet.
    pub location: FieldLocation,
    /// Kind of its values.
    pub kind: Kind,
    /// Whether `map` takes it.
    pub maps: bool,
    /// Whether `shuffle` takes it.
    pub shuffles: bool,
    /// Description, one sentence.
    pub doc: &'static str,
}

impl FieldSpec {
    /// Whether `mod` takes it.
    pub(crate) const fn modifies(&self) -> bool {
        match self.location {
            FieldLocation::Bits { .. } | FieldLocation::Payload => true,
            FieldLocation::Option(Some(_)) => !matches!(self.kind, Kind::Presence),
            _ => false,
        }
    }

    /// Whether it is a TCP option, which `add` and `strip` take.
    pub const fn is_option(&self) -> bool {
        matches!(self.location, FieldLocation::Option(_))
    }

    /// Whether a rule may compare its value with `<` and the like.
    pub(crate) const fn has_order(&self) -> bool {
        !matches!(
            self.kind,
            Kind::Presence
                | Kind::Prefix
                | Kind::Interface
                | Kind::Version
                | Kind::Named(_)
                | Kind::State
                | Kind::Chain
        )
    }

    /// Whether a match with it has a value.
    pub(crate) const fn needs_value(&self) -> bool {
        matches!(self.kind, Kind::Interface | Kind::State | Kind::Chain) || self.is_limit()
    }

    /// Whether it is a limit, which a packet is at most within or beyond, and which counts the packets
    /// that the rest of the rule matches.
    pub(crate) const fn is_limit(&self) -> bool {
        matches!(self.location, FieldLocation::Rate(_) | FieldLocation::ConnectionCount(_))
    }

    /// Number of bits of a value; 0 without a fixed width.
    pub const fn bits(&self) -> u16 {
        match (self.location, self.kind) {
            (
                FieldLocation::Bits { count, .. }
                | FieldLocation::Ethernet { count, .. }
                | FieldLocation::Vlan { count, .. },
                _,
            ) => count,
            (FieldLocation::Upper, _) => 8,
            (FieldLocation::ConnectionState, _) => CtState::BITS,
            (FieldLocation::ConnectionCount(_), _) => 32,
            (FieldLocation::Option(Some(kind)), _) => option_bits(kind),
            _ => 0,
        }
    }
}

/// Number of bits of the value of a TCP option; 0 if it varies.
const fn option_bits(kind: u8) -> u16 {
    use castanet_wire::tcp;
    match kind {
        tcp::OPTION_MSS => 16,
        tcp::OPTION_WINDOW_SCALE => 8,
        tcp::OPTION_TIMESTAMPS => 64,
        _ => 0,
    }
}

/// A field, as rules name it: a row of [`FIELDS`], and for `tcp-opt KIND` the kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Field {
    row: u8,
    kind: Option<u8>,
}

/// Size of [`BY_NAME`], several slots per field.
const MAX_SLOTS: usize = 512;
/// No field.
const NOBODY: u8 = u8::MAX;

/// Hash table from names to rows of [`FIELDS`], with linear probing: files of rules have names by
/// the million.
const BY_NAME: [u8; MAX_SLOTS] = {
    let mut rows = [NOBODY; MAX_SLOTS];
    let mut row = 0;
    while row < FIELDS.len() {
        let mut place = place_of(FIELDS[row].name);
        while rows[place] != NOBODY {
            place = (place + 1) % MAX_SLOTS;
        }
        rows[place] = row as u8;
        row += 1;
    }
    rows
};

const _: () = assert!(FIELDS.len() < NOBODY as usize && FIELDS.len() * 4 <= MAX_SLOTS);

/// Returns the first slot of a name.
const fn place_of(name: &str) -> usize {
    let (name, mut hash, mut at) = (name.as_bytes(), 0_u32, 0);
    while at < name.len() {
        hash = (hash ^ name[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (hash >> 16) as usize % MAX_SLOTS
}

impl Field {
    /// The field of that name.
    pub fn named(name: &str) -> Option<Field> {
        // Most words that are no names are numbers or addresses.
        if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
            return None;
        }
        let mut place = place_of(name);
        loop {
            match FIELDS.get(usize::from(BY_NAME[place])) {
                Some(spec) if spec.name == name => {
                    return Some(Field::at(BY_NAME[place].into()));
                }
                Some(_) => place = (place + 1) % MAX_SLOTS,
                None => return None,
            }
        }
    }

    fn at(row: usize) -> Field {
        let kind = match FIELDS[row].location {
            FieldLocation::Option(kind) => kind,
            _ => None,
        };
        Field { row: row as u8, kind }
    }

    /// Every field.
    pub fn all() -> impl Iterator<Item = Field> {
        (0..FIELDS.len()).map(Field::at)
    }

    /// The TCP option of a kind, by its own name if it has one.
    pub fn option(kind: u8) -> Field {
        let own = Field::all().find(|field| field.kind == Some(kind));
        own.unwrap_or(Field { kind: Some(kind), ..Field::any_option() })
    }

    /// Any TCP option.
    pub(crate) fn any_option() -> Field {
        let row = FIELDS.iter().position(|spec| spec.location == FieldLocation::Option(None));
        Field { row: row.unwrap_or_default() as u8, kind: None }
    }

    /// Returns the declaration.
    #[inline]
    pub fn spec(self) -> &'static FieldSpec {
        &FIELDS[usize::from(self.row)]
    }

    /// Returns the option kind, if the field is one TCP option.
    #[inline]
    pub(crate) fn option_kind(self) -> Option<u8> {
        self.kind
    }

    /// Whether `mod` takes it.
    pub(crate) fn modifies(self) -> bool {
        let spec = self.spec();
        spec.modifies() || spec.location == FieldLocation::Option(None) && self.kind.is_some()
    }

    /// Returns the name nearest to an unknown word.
    pub fn nearest(word: &str) -> Option<&'static str> {
        nearest(word, FIELDS.iter().map(|spec| spec.name))
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = self.spec();
        match (spec.location, self.kind) {
            (FieldLocation::Option(None), Some(kind)) => write!(f, "{} {kind}", spec.name),
            _ => f.write_str(spec.name),
        }
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
