//! The exits of rewriters.

use castanet_element::fate::{DROP, FateKind, FateSpec};
use castanet_element::prelude::*;

const REASONS: [FateSpec; 7] = [
    FateSpec {
        name: "unmapped",
        doc: "Packets that match no mapping, and for which the input makes none. Give the input a \
              pattern if its packets are to open mappings.",
        kind: FateKind::Drop,
    },
    FateSpec {
        name: "exhausted",
        doc: "Packets for whose flow no free address or port, or no room for a mapping, was left. \
              Widen the range of ports, raise MAPPING_CAPACITY, or shorten the timeouts.",
        kind: FateKind::Drop,
    },
    FateSpec {
        name: "not_rewritten",
        doc: "Packets of other protocols, later fragments, and truncated packets.",
        kind: FateKind::Drop,
    },
    FateSpec {
        name: "tiny_fragment",
        doc: "Fragments that split the headers of their packet, and all other fragments of \
              that packet, with FRAGMENTS.",
        kind: FateKind::Drop,
    },
    FateSpec {
        name: "overlapping_fragment",
        doc: "Fragments that overlap or contradict other fragments of their packet, and all \
              other fragments of that packet, with FRAGMENTS.",
        kind: FateKind::Drop,
    },
    FateSpec {
        name: "lone_fragment",
        doc: "Fragments whose packet's first fragment did not come in time, with FRAGMENTS. Look \
              for loss before this router.",
        kind: FateKind::Drop,
    },
    FateSpec {
        name: "excess_fragment",
        doc: "Fragments that did not fit into the queue, or were evicted from it for newer \
              ones, with FRAGMENTS.",
        kind: FateKind::Drop,
    },
];

/// Exits of the rewriters of addresses: an output, or a reason to drop.
#[derive(Clone, Copy)]
pub struct AddressRewriterExit(pub(super) u8);

/// Exits of the rewriters of ports and identifiers, which do not rewrite every packet.
#[derive(Clone, Copy)]
pub struct RewriterExit(pub(super) u8);

impl Fate for AddressRewriterExit {
    const FATES: &'static [FateSpec] = REASONS.split_at(2).0;
    const OPEN: bool = true;
    #[inline]
    fn index(self) -> u8 {
        self.0
    }
}

impl Fate for RewriterExit {
    const FATES: &'static [FateSpec] = &REASONS;
    const OPEN: bool = true;
    #[inline]
    fn index(self) -> u8 {
        self.0
    }
}

/// Exits of `ICMPRewriter`.
#[derive(Clone, Copy)]
pub struct ICMPRewriterExit(u8);

impl Fate for ICMPRewriterExit {
    const FATES: &'static [FateSpec] = REASONS.split_at(1).0;
    const OPEN: bool = true;
    #[inline]
    fn index(self) -> u8 {
        self.0
    }
}

impl ICMPRewriterExit {
    /// The output for messages that quote no rewritten packet, if it is connected.
    pub(crate) const OTHERS: ICMPRewriterExit = ICMPRewriterExit(1);
    /// The reason to drop these messages if it is not.
    pub(crate) const UNMAPPED: ICMPRewriterExit = ICMPRewriterExit(UNMAPPED);

    /// An output, which must be connected.
    pub(crate) fn output(n: u8) -> ICMPRewriterExit {
        ICMPRewriterExit(n)
    }
}

pub(super) const UNMAPPED: u8 = DROP;
pub(super) const EXHAUSTED: u8 = DROP - 1;
pub(super) const NOT_REWRITTEN: u8 = DROP - 2;
pub(super) const TINY: u8 = DROP - 3;
pub(super) const OVERLAPPING: u8 = DROP - 4;
pub(super) const LONE: u8 = DROP - 5;
pub(super) const EXCESS: u8 = DROP - 6;

/// Whether a fate is a reason to drop.
pub(super) fn is_reason(fate: u8) -> bool {
    fate >= EXCESS
}
