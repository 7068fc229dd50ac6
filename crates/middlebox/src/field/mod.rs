//! What rules can look at and change: every field, declared once.

mod table;

pub use table::FIELDS;

use castanet_lang::nearest;
use std::fmt;

/// The headers a field lies in, which a packet must have for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Layer {
    /// Any IP packet.
    Any,
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
    /// ICMP over IPv4.
    Icmp,
    /// ICMPv6.
    Icmp6,
    /// UDP, over either.
    Udp,
    /// TCP, over either.
    Tcp,
}

impl Layer {
    /// As lists and the documentation call it.
    pub const fn word(self) -> &'static str {
        match self {
            Layer::Any => "any",
            Layer::Ip4 => "ip4",
            Layer::Ip6 => "ip6",
            Layer::Icmp => "icmp",
            Layer::Icmp6 => "icmp6",
            Layer::Udp => "udp",
            Layer::Tcp => "tcp",
        }
    }
}

/// Where a field lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Nowhere: every IP packet has it.
    Everywhere,
    /// The interface that the packet came in by.
    In,
    /// The interface that it is to leave by.
    Out,
    /// Which of IPv4 and IPv6 it is.
    Version,
    /// Bits of the layer's header.
    Bits {
        /// The first one, counted from the header's start.
        first: u16,
        /// How many.
        count: u16,
    },
    /// What follows the layer's header.
    Payload,
    /// The protocol that an IP packet carries, behind IPv6's extension headers.
    Upper,
    /// An extension header of that protocol number; any, without one.
    Extension(Option<u8>),
    /// A TCP option of that kind; any, without one.
    Option(Option<u8>),
}

/// What values a field has, and how they are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No value: it is there or not.
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
    /// Bytes in hexadecimal, of which the field begins with.
    Prefix,
    /// All bytes of a TCP option, in hexadecimal or as a number.
    Bytes,
    /// The name of an interface.
    Interface,
}

/// One field.
#[derive(Debug)]
pub struct Spec {
    /// Its name in rules.
    pub name: &'static str,
    /// The headers it lies in.
    pub layer: Layer,
    /// Where it lies.
    pub place: Place,
    /// What values it has.
    pub kind: Kind,
    /// Whether `map` takes it.
    pub maps: bool,
    /// Whether `shuffle` takes it.
    pub shuffles: bool,
    /// What it is, in a sentence.
    pub doc: &'static str,
}

impl Spec {
    /// Whether `mod` takes it.
    pub const fn modifies(&self) -> bool {
        match self.place {
            Place::Bits { .. } | Place::Payload => true,
            Place::Option(Some(_)) => !matches!(self.kind, Kind::Presence),
            _ => false,
        }
    }

    /// Whether it is a TCP option, which `add` and `strip` take.
    pub const fn is_option(&self) -> bool {
        matches!(self.place, Place::Option(_))
    }

    /// Whether a rule may compare its value with `<` and the like.
    pub const fn has_order(&self) -> bool {
        !matches!(
            self.kind,
            Kind::Presence | Kind::Prefix | Kind::Interface | Kind::Version | Kind::Named(_)
        )
    }

    /// How many bits a value has; 0 for those without a fixed width.
    pub const fn bits(&self) -> u16 {
        match (self.place, self.kind) {
            (Place::Bits { count, .. }, _) => count,
            (Place::Upper, _) => 8,
            (Place::Option(Some(kind)), _) => option_bits(kind),
            _ => 0,
        }
    }
}

/// How many bits the value of a TCP option has; 0 if that depends.
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

/// Places in [`BY_NAME`], several for each field.
const PLACES: usize = 512;
/// No field.
const NOBODY: u8 = u8::MAX;

/// The rows of the fields by a hash of their names, each there or in the next free place: files
/// of rules have names by the million.
const BY_NAME: [u8; PLACES] = {
    let mut rows = [NOBODY; PLACES];
    let mut row = 0;
    while row < FIELDS.len() {
        let mut place = place_of(FIELDS[row].name);
        while rows[place] != NOBODY {
            place = (place + 1) % PLACES;
        }
        rows[place] = row as u8;
        row += 1;
    }
    rows
};

const _: () = assert!(FIELDS.len() < NOBODY as usize && FIELDS.len() * 4 <= PLACES);

/// Where a name is looked for first.
const fn place_of(name: &str) -> usize {
    let (name, mut hash, mut at) = (name.as_bytes(), 0_u32, 0);
    while at < name.len() {
        hash = (hash ^ name[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (hash >> 16) as usize % PLACES
}

impl Field {
    /// The field of that name.
    pub fn named(name: &str) -> Option<Field> {
        // Most of what is no name is a number or an address.
        if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
            return None;
        }
        let mut place = place_of(name);
        loop {
            match FIELDS.get(usize::from(BY_NAME[place])) {
                Some(spec) if spec.name == name => {
                    return Some(Field::at(BY_NAME[place].into()));
                }
                Some(_) => place = (place + 1) % PLACES,
                None => return None,
            }
        }
    }

    fn at(row: usize) -> Field {
        let kind = match FIELDS[row].place {
            Place::Option(kind) => kind,
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
    pub fn any_option() -> Field {
        let row = FIELDS.iter().position(|spec| spec.place == Place::Option(None));
        Field { row: row.unwrap_or_default() as u8, kind: None }
    }

    /// What is declared of it.
    #[inline]
    pub fn spec(self) -> &'static Spec {
        &FIELDS[usize::from(self.row)]
    }

    /// Its kind, if it is a TCP option of one.
    #[inline]
    pub fn option_kind(self) -> Option<u8> {
        self.kind
    }

    /// Whether `mod` takes it.
    pub fn modifies(self) -> bool {
        let spec = self.spec();
        spec.modifies() || spec.place == Place::Option(None) && self.kind.is_some()
    }

    /// The name nearest to a word that is none.
    pub fn nearest(word: &str) -> Option<&'static str> {
        nearest(word, FIELDS.iter().map(|spec| spec.name))
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = self.spec();
        match (spec.place, self.kind) {
            (Place::Option(None), Some(kind)) => write!(f, "{} {kind}", spec.name),
            _ => f.write_str(spec.name),
        }
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
