//! `AggregateLength`: sets the aggregate to the packet length.

use super::annotation::set;
use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Sets each packet's aggregate annotation to its length.
///
/// The extra length annotation is added. With IP the length counts from the IP header;
/// packets without one leave by the second output.
///
/// ```click
/// in -> a :: AggregateLength(IP true) -> f :: AggregateFilter(1 60, 0 all) -> other
/// a[1] -> none;  f[1] -> sixty
/// > in    hex 01 02
/// > in    1.0.0.1 > 2.0.0.2 udp len 60
/// > in    1.0.0.1 > 2.0.0.2 udp len 59
/// < none  hex 01 02
/// < sixty 1.0.0.1 > 2.0.0.2 udp len 60
/// < other 1.0.0.1 > 2.0.0.2 udp len 59
/// ```
#[derive(Element)]
#[element(room = "aggregate")]
pub struct AggregateLength {
    /// Whether to count from the IP header on.
    #[arg(keyword, default = false)]
    ip: bool,
}

#[derive(Fate)]
pub enum AggregateLengthExit {
    /// Packets with an aggregate.
    Marked,
    /// With IP, packets without a network header.
    #[optional]
    Without,
}

impl PerPacket for AggregateLength {
    type On = on::Any;
    type Local = ();
    type Fate = AggregateLengthExit;

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> AggregateLengthExit {
        let len = match (self.ip, packet.network_offset()) {
            (false, _) => packet.len(),
            (true, Some(_)) => packet.network_bytes().len(),
            (true, None) => return AggregateLengthExit::Without,
        };
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let extra = packet.anno_u32(anno::EXTRA_LENGTH);
        set(packet, len.saturating_add(extra), None);
        AggregateLengthExit::Marked
    }
}
