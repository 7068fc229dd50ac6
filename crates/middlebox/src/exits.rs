//! Where packets go from a `Middlebox`.

use castanet_engine::element::{DROP, Fate, FateKind, FateSpec};

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// On, by the output of its input's number.
    Out(u8),
    /// Nowhere: a rule drops it.
    Rule,
    /// Nowhere: its connection finds no room.
    Full,
    /// Nowhere: its connection finds no port.
    NoPort,
}

const fn reason(name: &'static str, doc: &'static str) -> FateSpec {
    FateSpec { name, doc, kind: FateKind::Drop }
}

impl Fate for Exit {
    const FATES: &'static [FateSpec] = &[
        reason("rule", "Packets that a rule drops and none accepts."),
        reason("full", "Packets whose connection finds no room in the table."),
        reason("no_port", "Packets whose connection finds no port that nobody has."),
    ];
    const OPEN: bool = true;
    #[inline]
    fn index(self) -> u8 {
        match self {
            Exit::Out(port) => port,
            Exit::Rule => DROP,
            Exit::Full => DROP - 1,
            Exit::NoPort => DROP - 2,
        }
    }
}
