//! The headers that packets begin with, and the effects of elements on them: facts for checks of a
//! configuration before it runs.

/// The header that a packet's data begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstHeader {
    /// An Ethernet header.
    Ethernet,
    /// A network header: the Ethernet header before it has been stripped.
    Network,
    /// An IPv4 header.
    Ip,
    /// An IPv6 header.
    Ip6,
    /// It is not known.
    Unknown,
}

impl FirstHeader {
    /// The header with which packets of two kinds together begin.
    fn or(self, other: FirstHeader) -> FirstHeader {
        match (self, other) {
            (one, other) if one == other => one,
            (one, other) if one.is_network() && other.is_network() => FirstHeader::Network,
            _ => FirstHeader::Unknown,
        }
    }

    /// Whether it is a network header.
    pub fn is_network(self) -> bool {
        matches!(self, FirstHeader::Network | FirstHeader::Ip | FirstHeader::Ip6)
    }

    /// Its name in messages; `None` if it is not known.
    pub fn name(self) -> Option<&'static str> {
        match self {
            FirstHeader::Ethernet => Some("an Ethernet header"),
            FirstHeader::Network => Some("a network header"),
            FirstHeader::Ip => Some("an IP header"),
            FirstHeader::Ip6 => Some("an IPv6 header"),
            FirstHeader::Unknown => None,
        }
    }
}

/// The network header that an annotation of a packet marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkedHeader {
    /// No header is marked.
    None,
    /// An IPv4 header.
    Ip,
    /// An IPv6 header.
    Ip6,
    /// It is not known.
    Unknown,
}

/// The headers of the packets at one place of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketHeaders {
    /// The header that they begin with.
    pub first: FirstHeader,
    /// The network header that is marked.
    pub marked: MarkedHeader,
}

impl PacketHeaders {
    /// Packets of which nothing is known.
    pub const UNKNOWN: PacketHeaders =
        PacketHeaders { first: FirstHeader::Unknown, marked: MarkedHeader::Unknown };

    /// The headers of packets of two kinds together.
    pub fn or(self, other: PacketHeaders) -> PacketHeaders {
        let marked = if self.marked == other.marked { self.marked } else { MarkedHeader::Unknown };
        PacketHeaders { first: self.first.or(other.first), marked }
    }
}

/// The effect of the elements of a class on the headers of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderEffect {
    /// Packets leave as they came.
    Pass,
    /// Packets leave by output 0 with these headers; by others as they came.
    Gives(FirstHeader, MarkedHeader),
    /// Frames of the interface that the first argument names leave.
    Receive,
    /// Frames go to the interface that the first argument names.
    Send,
    /// The number of bytes in the first argument is removed from the beginning.
    Strip,
    /// The number of bytes in the first argument is put back before the beginning.
    Unstrip,
    /// The Ethernet header and VLAN tags are removed.
    StripFrame,
    /// An Ethernet header is put before the packets of input 0; what leaves by output 0 begins with one.
    Encapsulate,
    /// A network header at OFFSET is marked, in packets that leave by output 0.
    Mark(MarkedHeader),
    /// Nothing is known of the packets that leave.
    Unknown,
}

/// Rooms whose elements pass packets on with the headers that they came with, if they do not say
/// otherwise.
const PASSING_ROOMS: &[&str] = &[
    "aggregate",
    "annotate",
    "classify",
    "ether",
    "ip",
    "ip6",
    "lookup",
    "measure",
    "nat",
    "queue",
    "schedule",
    "script",
    "shape",
    "switch",
    "threads",
    "trace",
    "util",
    "vlan",
];

impl HeaderEffect {
    /// The effect of elements of a room that declare none.
    pub fn of_room(room: Option<&str>) -> HeaderEffect {
        match room.is_some_and(|room| PASSING_ROOMS.contains(&room)) {
            true => HeaderEffect::Pass,
            false => HeaderEffect::Unknown,
        }
    }
}
