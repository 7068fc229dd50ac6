//! `StoreData`: other bytes in a packet.

use castanet_engine::prelude::*;

/// Writes bytes into each packet from an offset on.
///
/// With MASK only the bits that are set there change; a byte without one in
/// MASK changes whole. What lies beyond the packet's end is left out, unless GROW
/// makes the packet longer.
///
/// ```click
/// in -> StoreData(1, \<0a0b>) -> out
/// > in  hex 01 02 03 04
/// > in  hex 01 02
/// < out hex 01 0a 0b 04
/// < out hex 01 0a
/// ```
///
/// ```click
/// in -> StoreData(0, \<ff ff>, MASK \<02>) -> StoreData(3, "A", GROW true) -> out
/// > in  hex 01 00
/// < out hex 03 ff 00 41
/// ```
#[derive(Element)]
#[element(room = "edit")]
pub struct StoreData {
    /// Where in the packet.
    #[arg(range = ..=1048576)]
    offset: u32,
    /// The bytes.
    #[arg]
    data: Data,
    /// Which bits of them to write; all if there are none.
    #[arg(default = Data(Vec::new()))]
    mask: Data,
    /// Whether a packet that is too short is made longer.
    #[arg(keyword, default = false)]
    grow: bool,
}

impl PerPacket for StoreData {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let (offset, data) = (self.offset as usize, &self.data.0);
        if self.grow && packet.len() < offset + data.len() {
            packet.put_back(offset + data.len() - packet.len());
        }
        if offset >= packet.len() {
            return;
        }
        let places = packet.bytes_mut()[offset..].iter_mut().zip(data);
        let masks = self.mask.0.iter().copied().chain(std::iter::repeat(u8::MAX));
        places.zip(masks).for_each(|((place, byte), mask)| *place = *place & !mask | byte & mask);
    }
}
