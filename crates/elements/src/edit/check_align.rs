//! `CheckAlign`: whether a packet starts where in memory it should.

use super::align::{Align, Remainder};
use castanet_engine::prelude::*;

/// Passes packets on whose bytes start at an address of a given remainder.
///
/// Others leave by output 1 or, where that is not connected, are dropped. With
/// ASSERT the first of them is reported, and the router asked to stop: so
/// `click-align --assertions` uses it.
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
#[element(room = "edit", args = Wanted)]
pub struct CheckAlign {
    wanted: Align,
    asserts: bool,
    name: String,
    two_outputs: bool,
}

#[derive(Args)]
pub struct Wanted {
    #[arg(flatten)]
    remainder: Remainder,
    /// Whether to stop the router at a packet that starts elsewhere.
    #[arg(keyword, name = "ASSERT", default = false)]
    asserts: bool,
}

/// Where packets go.
#[derive(Fate)]
pub enum Start {
    /// Packets that start where they should.
    Aligned,
    /// Packets that start elsewhere.
    #[optional]
    Elsewhere,
    /// Packets that start elsewhere, where nobody takes them.
    #[drop]
    Misaligned,
}

impl Build for CheckAlign {
    type Args = Wanted;

    fn build(args: Wanted, setup: &Setup) -> Result<Self, ArgError> {
        let (name, two_outputs) = (setup.name.to_owned(), setup.outputs > 1);
        let wanted = Align::build(args.remainder, setup)?;
        Ok(CheckAlign { wanted, asserts: args.asserts, name, two_outputs })
    }
}

/// How many packets of a burst start elsewhere.
#[derive(Default, Local)]
pub struct Elsewhere {
    seen: usize,
    /// Whether one has been reported.
    reported: bool,
}

impl PerPacket for CheckAlign {
    type On = on::Any;
    type Local = Elsewhere;
    type Fate = Start;

    #[inline]
    fn packet(&self, elsewhere: &mut Elsewhere, packet: &mut Packet) -> Start {
        if self.wanted.off(packet) == 0 {
            return Start::Aligned;
        }
        elsewhere.seen += 1;
        if self.two_outputs { Start::Elsewhere } else { Start::Misaligned }
    }

    fn after(&self, elsewhere: &mut Elsewhere, cx: &mut Cx) {
        let seen = std::mem::take(&mut elsewhere.seen);
        if seen > 0 && self.asserts && !std::mem::replace(&mut elsewhere.reported, true) {
            let wanted = self.wanted.to_string();
            cx.chatter(&format!("{}: a packet does not start {wanted}", self.name));
            cx.stop();
        }
    }
}
