//! Exits of a `Middlebox`.

use castanet_element::fate::{DROP, Fate, FateKind, FateSpec};
use castanet_kit::fragment_tracker::Refusal;

/// The exit of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Forwarded, by the output with the number of the input.
    Out(u8),
    /// Dropped by a rule.
    Rule,
    /// Dropped: the connection table is full.
    Full,
    /// Dropped: no port is free for its connection.
    NoPort,
    /// Dropped: malformed headers.
    Malformed,
    /// Dropped: neither IPv4 nor IPv6.
    Other,
    /// Dropped fragment, with the reason.
    Fragment(Refusal),
}

const fn reason(name: &'static str, doc: &'static str) -> FateSpec {
    FateSpec { name, doc, kind: FateKind::Drop }
}

impl Fate for Exit {
    const FATES: &'static [FateSpec] = &[
        reason(
            "rule",
            "Packets that a rule drops and none accepts. Add a rule that accepts them if they should pass.",
        ),
        reason(
            "full",
            "Packets whose connection finds no room in the table. Raise CONNECTIONS, or drop more new \
             connections by rules.",
        ),
        reason(
            "no_port",
            "Packets whose connection finds no free port. Translate to more ports or addresses.",
        ),
        reason(
            "malformed",
            "Packets that should have an IP header and have none, or whose headers are cut short.",
        ),
        reason("other", "Packets that are neither IPv4 nor IPv6, where `other` drops them."),
        reason(
            "tiny_fragment",
            "Fragments that cut the headers of their packet in two, and all others of that packet.",
        ),
        reason(
            "overlapping_fragment",
            "Fragments that overlap or contradict others of their packet, and all others of that packet.",
        ),
        reason(
            "lone_fragment",
            "Fragments whose packet's first fragment did not come in time. Look for loss before this \
             router.",
        ),
        reason("excess_fragment", "Fragments that found no room to wait, or made room for others."),
    ];
    const OPEN: bool = true;
    #[inline]
    fn index(self) -> u8 {
        match self {
            Exit::Out(port) => port,
            Exit::Rule => DROP,
            Exit::Full => DROP - 1,
            Exit::NoPort => DROP - 2,
            Exit::Malformed | Exit::Fragment(Refusal::Invalid) => DROP - 3,
            Exit::Other => DROP - 4,
            Exit::Fragment(Refusal::Tiny) => DROP - 5,
            Exit::Fragment(Refusal::Overlap) => DROP - 6,
            Exit::Fragment(Refusal::NoFirst) => DROP - 7,
            Exit::Fragment(Refusal::Excess) => DROP - 8,
            Exit::Fragment(Refusal::Denied(index)) => index,
        }
    }
}

impl From<Refusal> for Exit {
    fn from(refusal: Refusal) -> Self {
        Exit::Fragment(refusal)
    }
}

impl Exit {
    /// The drop code for later fragments of a packet whose first fragment leaves here; `None` if it
    /// is forwarded.
    pub(crate) fn denial(self) -> Option<u8> {
        (!matches!(self, Exit::Out(_))).then(|| self.index())
    }
}
