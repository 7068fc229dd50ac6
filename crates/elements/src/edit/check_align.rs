//! `CheckAlign`: checks the alignment of packets in memory.

use super::align::{Align, AlignArgs};
use castanet_element::prelude::*;

/// Checks the alignment of packets in memory, and passes aligned ones.
///
/// A packet is aligned if its first byte has an address of the given remainder.
/// Others leave by output 1 or, if that is not connected, are dropped. With ASSERT
/// the first of them is reported, and the router asked to stop, as
/// `click-align --assertions` does.
///
/// ```click
/// in -> Align(8, 2) -> c :: CheckAlign(4, 2) -> a;  c[1] -> b
/// other -> Align(8, 1) -> c
/// > in    1.0.0.1 > 2.0.0.2 udp
/// > other 1.0.0.1 > 2.0.0.2 udp ttl 3
/// < a 1.0.0.1 > 2.0.0.2 udp
/// < b 1.0.0.1 > 2.0.0.2 udp ttl 3
/// ```
/// ```click
/// in -> Align(4, 0) -> c :: CheckAlign(4, 1) -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// = c.drops.misaligned 1
/// ```
#[derive(Element)]
#[element(room = "edit", args = CheckAlignArgs, headers = Pass)]
pub struct CheckAlign {
    alignment: Align,
    asserts: bool,
    name: String,
    two_outputs: bool,
}

#[derive(Args)]
pub struct CheckAlignArgs {
    #[arg(flatten)]
    remainder: AlignArgs,
    /// Whether to stop the router at a packet that is not aligned.
    #[arg(keyword, name = "ASSERT", default = false)]
    asserts: bool,
}

/// Exits of `CheckAlign`.
#[derive(Fate)]
pub enum CheckAlignExit {
    /// Packets that are aligned.
    Aligned,
    /// Packets that are not aligned.
    #[optional]
    Elsewhere,
    /// Packets that are not aligned, if output 1 is not connected.
    #[drop]
    Misaligned,
}

impl Build for CheckAlign {
    type Args = CheckAlignArgs;

    fn build(args: CheckAlignArgs, setup: &Setup) -> Result<Self, ArgError> {
        let (name, two_outputs) = (setup.name.to_owned(), setup.outputs > 1);
        let alignment = Align::build(args.remainder, setup)?;
        Ok(CheckAlign { alignment, asserts: args.asserts, name, two_outputs })
    }
}

/// Misaligned packets of a worker.
#[derive(Default, Local)]
pub struct CheckAlignState {
    /// Number of misaligned packets in this burst.
    misaligned: usize,
    /// Whether a misaligned packet has been reported.
    reported: bool,
}

impl PerPacket for CheckAlign {
    type On = on::Any;
    type Local = CheckAlignState;
    type Fate = CheckAlignExit;

    #[inline]
    fn packet(&self, state: &mut CheckAlignState, packet: &mut Packet) -> CheckAlignExit {
        if self.alignment.misalignment(packet) == 0 {
            return CheckAlignExit::Aligned;
        }
        state.misaligned += 1;
        if self.two_outputs { CheckAlignExit::Elsewhere } else { CheckAlignExit::Misaligned }
    }

    fn end_burst(&self, state: &mut CheckAlignState, cx: &mut Cx) {
        let misaligned = std::mem::take(&mut state.misaligned);
        if misaligned > 0 && self.asserts && !std::mem::replace(&mut state.reported, true) {
            let alignment = self.alignment.to_string();
            cx.chatter(&format!("{}: a packet does not start {alignment}", self.name));
            cx.stop();
        }
    }
}
