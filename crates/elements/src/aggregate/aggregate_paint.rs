//! `AggregatePaint`: sets the aggregate to the paint.

use super::annotation::set;
use castanet_element::prelude::*;

/// Sets each packet's aggregate annotation to its paint, or to the lower bits of it.
///
/// ```click
/// in -> AggregatePaint(4) -> AggregatePaint(8, INCREMENTAL true) -> f :: AggregateFilter(1 530, 0 all) -> other
/// f[1] -> out
/// > in  1.0.0.1 > 2.0.0.2 udp ; paint 18
/// > in  1.0.0.2 > 2.0.0.2 udp ; paint 3
/// < out 1.0.0.1 > 2.0.0.2 udp ; paint 18
/// < other 1.0.0.2 > 2.0.0.2 udp ; paint 3
/// ```
#[derive(Element)]
#[element(room = "aggregate")]
pub struct AggregatePaint {
    /// Number of bits of the paint to use, the lower ones.
    #[arg(default = 8, range = 1..=8)]
    bits: u32,
    /// Whether the bits are appended to those of the annotation, rather than replace it.
    #[arg(keyword, default = false)]
    incremental: bool,
}

impl PerPacket for AggregatePaint {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let value = u32::from(packet.paint()) % (1 << self.bits);
        set(packet, value, self.incremental.then_some(self.bits));
    }
}
