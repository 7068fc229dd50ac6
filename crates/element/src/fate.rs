//! Fates of packets: the outputs of an element and its reasons to drop.

/// The exits of an element; written by `#[derive(Fate)]` on an enum whose
/// variants are outputs and, marked `#[drop]`, reasons to drop.
pub trait Fate: Copy {
    /// All exits, in order.
    const FATES: &'static [FateSpec];
    /// Whether the number of outputs depends on the configuration.
    const OPEN: bool = false;
    /// Output number, or `DROP - n` for the `n`th reason to drop.
    fn index(self) -> u8;
}

/// The index of the first reason to drop.
pub const DROP: u8 = u8::MAX;
/// Reasons to drop that an element can have, those of the runtime included.
pub const REASONS: usize = 16;
/// The index of packets that the element does not take (`type On`).
pub const NOT_TAKEN: u8 = DROP - (REASONS as u8 - 1);
/// One more than the highest output number.
pub const MAX_OUTPUTS: usize = NOT_TAKEN as usize;

/// One exit.
pub struct FateSpec {
    /// Name in lower case.
    pub name: &'static str,
    /// The variant's doc comment.
    pub doc: &'static str,
    /// Its kind.
    pub kind: FateKind,
}

/// Kind of an exit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FateKind {
    /// Must be connected.
    Output,
    /// May be left open; its packets are then dropped and counted.
    Optional,
    /// A reason to drop, counted by name.
    Drop,
}

/// Reason for which packets are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossReason {
    /// Its name, as in the handler `drops`.
    pub name: String,
    /// The sentences about it, on one line.
    pub doc: String,
}

impl LossReason {
    /// A reason that nobody knows.
    pub(crate) fn unknown() -> LossReason {
        LossReason { name: "dropped".into(), doc: String::new() }
    }
}

impl Fate for () {
    const FATES: &'static [FateSpec] =
        &[FateSpec { name: "out", doc: "Every packet.", kind: FateKind::Output }];
    #[inline]
    fn index(self) -> u8 {
        0
    }
}

/// An output by number, for elements whose outputs depend on configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port(u8);

impl Port {
    /// Drops the packet, because no rule sends it anywhere.
    pub const DROP: Port = Port(DROP);
    /// Output `n`; `None` past the last that can be counted.
    pub fn new(n: usize) -> Option<Port> {
        u8::try_from(n).ok().filter(|&n| n < NOT_TAKEN).map(Port)
    }
    /// Output `n`; [`Port::DROP`] past the last that can be counted.
    #[inline]
    pub fn nth(n: u8) -> Port {
        Port(if n < NOT_TAKEN { n } else { DROP })
    }
    /// Output `n`, or 255 to drop, where `n` was made by [`Port::new`] or checked
    /// against the connected outputs when the element was built: nothing is
    /// looked at again.
    #[inline(always)]
    pub fn known(n: u8) -> Port {
        debug_assert!(n < NOT_TAKEN || n == DROP, "{n} is no output");
        Port(n)
    }
    /// Its number; `None` for [`Port::DROP`].
    pub fn number(self) -> Option<usize> {
        (self != Port::DROP).then_some(usize::from(self.0))
    }
}

impl Fate for Port {
    const FATES: &'static [FateSpec] = &[FateSpec {
        name: "unmatched",
        doc: "Packets that no rule, route or setting sends to an output. Add a rule or a default \
              route for those that should go on.",
        kind: FateKind::Drop,
    }];
    const OPEN: bool = true;
    #[inline]
    fn index(self) -> u8 {
        self.0
    }
}

/// The fate of elements that keep every packet they are given (sinks).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Never {}

impl Fate for Never {
    const FATES: &'static [FateSpec] = &[];
    fn index(self) -> u8 {
        match self {}
    }
}

/// The bits that are in all and in any of the indices of these fates.
#[inline]
pub fn bits(fates: &[u8]) -> (u8, u8) {
    let all = fates.iter().fold(u8::MAX, |all, fate| all & fate);
    (all, fates.iter().fold(0, |any, fate| any | fate))
}

/// Sets all fates to [`NOT_TAKEN`], and answers the bits that are set.
pub fn none_taken(fates: &mut [u8]) -> u8 {
    fates.fill(NOT_TAKEN);
    NOT_TAKEN
}

/// The reason to drop of packets for which the pool had no frame.
pub const NO_FRAME: u8 = NOT_TAKEN + 1;
/// The reason to drop of packets that went round the graph without end.
pub const LOOPED: u8 = NOT_TAKEN + 2;
/// The reason to drop of packets in whose burst the element panicked.
pub const PANICKED: u8 = NOT_TAKEN + 3;
/// The reason to drop of kept packets that a handler discarded.
pub const DISCARDED: u8 = NOT_TAKEN + 4;
/// The reason to drop of packets for which the account of the element has no memory.
pub const NO_MEMORY: u8 = NOT_TAKEN + 5;
