//! Exits of a `WasmElement`.

use crate::fault::Fault;
use castanet_element::fate::{DROP, Fate, FateKind, FateSpec};

/// The exit of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WasmExit {
    /// The output that the module has chosen.
    Out(u8),
    /// Dropped: the module trapped.
    Trap,
    /// Dropped: the module reached a limit.
    Limit,
    /// Dropped: the module gave a malformed answer.
    Answer,
    /// Dropped: the module is cut off.
    CutOff,
    /// Dropped for a reason of the module.
    Reason(u8),
}

const fn reason(name: &'static str, doc: &'static str) -> FateSpec {
    FateSpec { name, doc, kind: FateKind::Drop }
}

impl Fate for WasmExit {
    const FATES: &'static [FateSpec] = &[
        reason(
            "trap",
            "Packets of a batch in which the module trapped, for example by an access outside of its memory. \
             This is a fault of the module: the log names it.",
        ),
        reason(
            "limit",
            "Packets of a batch in which the module reached a limit of instructions, memory or stack. Raise \
             LIMIT or MEMORY if the module is right.",
        ),
        reason(
            "bad_answer",
            "Packets of a batch that the module answered with an output that is not connected, with bytes \
             outside of the packet's slot, or the like. This is a fault of the module: the log names it.",
        ),
        reason(
            "cut_off",
            "Packets that came while the module was cut off after several faults in a row.",
        ),
    ];
    const OPEN: bool = true;
    #[inline]
    fn index(self) -> u8 {
        match self {
            WasmExit::Out(port) => port,
            WasmExit::Trap => DROP,
            WasmExit::Limit => DROP - 1,
            WasmExit::Answer => DROP - 2,
            WasmExit::CutOff => DROP - 3,
            WasmExit::Reason(n) => DROP - 4 - n,
        }
    }
}

impl From<&Fault> for WasmExit {
    fn from(fault: &Fault) -> Self {
        match fault {
            Fault::Trap(_) => WasmExit::Trap,
            Fault::Limit(_) => WasmExit::Limit,
            Fault::Answer(_) => WasmExit::Answer,
        }
    }
}
