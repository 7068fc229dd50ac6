//! `Counter`: packets and bytes.

use castanet_engine::prelude::*;

/// Counts packets and bytes, and passes every packet on unchanged.
///
/// Each worker counts for itself and a read adds the workers up: no cache
/// line is shared and no count is lost.
///
/// ```click
/// in -> c :: Counter -> out
/// > in  1.0.0.1 > 2.0.0.2 udp len 60
/// > in  1.0.0.1 > 2.0.0.2 udp len 40
/// < out 1.0.0.1 > 2.0.0.2 udp len 60
/// < out 1.0.0.1 > 2.0.0.2 udp len 40
/// = c.count 2
/// = c.byte_count 100
/// ! c.reset
/// = c.count 0
/// ```
#[derive(Element)]
pub struct Counter;

/// What one worker has seen since the last reset.
#[derive(Default, Local)]
#[write(reset, reset_counts)]
pub struct Tally {
    /// Packets.
    #[read]
    count: u64,
    /// Bytes.
    #[read]
    byte_count: u64,
}

impl PerPacket for Counter {
    type On = on::Any;
    type Local = Tally;
    type Fate = ();

    #[inline]
    fn packet(&self, tally: &mut Tally, packet: &mut Packet) {
        tally.count += 1;
        tally.byte_count += packet.len() as u64;
    }
}
