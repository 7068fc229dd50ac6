//! Kinds of IP packets: IP version and transport protocol.

use crate::field::Layer;

/// A kind: the IP version, and the transport protocol; [`Layer::Any`] for all other protocols.
type Kind = (u8, Layer);

/// Every kind. Each ICMP belongs to one IP version.
const ALL: [Kind; 8] = [
    (4, Layer::Any),
    (4, Layer::Icmp),
    (4, Layer::Udp),
    (4, Layer::Tcp),
    (6, Layer::Any),
    (6, Layer::Icmp6),
    (6, Layer::Udp),
    (6, Layer::Tcp),
];

/// A set of kinds, a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NONE: Kinds = Kinds(0);
    pub(super) const ALL: Kinds = Kinds(u8::MAX);

    /// The kinds for which the predicate is true.
    pub(super) fn of(is: impl Fn(u8, Layer) -> bool) -> Kinds {
        let bits = ALL.iter().enumerate().filter(|(_, (version, upper))| is(*version, *upper));
        Kinds(bits.fold(0, |bits, (at, _)| bits | 1 << at))
    }

    /// The kinds of packets with a header of this layer.
    pub(super) fn with(layer: Layer) -> Kinds {
        Kinds::of(|version, upper| match layer {
            Layer::Any => true,
            Layer::Ip4 => version == 4,
            Layer::Ip6 => version == 6,
            layer => upper == layer,
        })
    }

    pub(super) fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    pub(super) fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    pub(super) fn not(self) -> Kinds {
        Kinds(!self.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn is_within(self, other: Kinds) -> bool {
        self.0 & !other.0 == 0
    }

    /// The name of the set, if it has one.
    pub(super) fn name(self) -> Option<&'static str> {
        use Layer::{Icmp, Icmp6, Ip4, Ip6, Tcp, Udp};
        let is = |layer: &Layer| self.is_within(Kinds::with(*layer));
        [Tcp, Udp, Icmp, Icmp6, Ip4, Ip6].into_iter().find(is).map(protocol)
    }
}

/// The usual name of a layer's protocol.
pub(super) fn protocol(layer: Layer) -> &'static str {
    match layer {
        Layer::Any => "IP",
        Layer::Ip4 => "IPv4",
        Layer::Ip6 => "IPv6",
        Layer::Icmp => "ICMP",
        Layer::Icmp6 => "ICMPv6",
        Layer::Udp => "UDP",
        Layer::Tcp => "TCP",
    }
}
