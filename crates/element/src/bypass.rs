//! The loan to a source that hands packets without descriptors to another element.

use castanet_packet::BurstBytes;
use std::any::Any;

/// The element to which a source hands packets that have no descriptors.
pub struct BypassTarget<'a> {
    /// Its index.
    pub element: usize,
    /// Its node.
    pub node: &'a mut dyn Any,
    /// The elements between the two that handle bytes; `None` if they only count packets.
    pub handler: Option<BytesHandler<'a>>,
}

/// Elements that handle the bytes of packets without descriptors. Packets that do not go on to the element that takes
/// them leave the burst: the source makes packets of these. It answers `false`, and has written to none, if it must make
/// packets of all.
pub type BytesHandler<'a> = &'a mut (dyn FnMut(&mut BurstBytes) -> bool + 'a);
