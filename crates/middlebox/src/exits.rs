//! Where packets go from a `Middlebox`.

use castanet_engine::element::{DROP, Fate, FateKind, FateSpec};

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// On, by the output of its input's number.
    Out(u8),
    /// Nowhere: a rule drops it.
    Rule,
}

impl Fate for Exit {
    const FATES: &'static [FateSpec] = &[FateSpec {
        name: "rule",
        doc: "Packets that a rule drops and none accepts.",
        kind: FateKind::Drop,
    }];
    const OPEN: bool = true;
    #[inline]
    fn index(self) -> u8 {
        match self {
            Exit::Out(port) => port,
            Exit::Rule => DROP,
        }
    }
}
