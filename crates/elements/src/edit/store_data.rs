//! `StoreData`: writes bytes into packets.

use castanet_element::prelude::*;

/// Writes bytes into each packet, from an offset on.
///
/// With MASK only the bits that are set in it change; bytes of DATA beyond the end
/// of MASK are written whole. Bytes beyond the end of the packet are not written,
/// unless GROW extends the packet. Packets that are not longer than OFFSET are unchanged.
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
/// in -> StoreData(0, \<ff ff>, MASK \<02>) -> StoreData(2, "ABC", GROW true) -> out
/// > in  hex 01 00 00
/// > in  hex 01 00
/// < out hex 03 ff 41 42 43
/// < out hex 03 ff
/// ```
#[derive(Element)]
#[element(room = "edit", args = StoreDataArgs)]
pub struct StoreData(StoreDataArgs);

#[derive(Args)]
pub struct StoreDataArgs {
    /// Offset in the packet, in bytes.
    #[arg(range = ..=1048576)]
    offset: u32,
    /// The bytes to write.
    #[arg]
    data: Data,
    /// The bits of DATA to write; all if empty.
    #[arg(default = Data(Vec::new()))]
    mask: Data,
    /// Whether to extend packets that are too short.
    #[arg(keyword, default = false)]
    grow: bool,
}

impl Build for StoreData {
    type Args = StoreDataArgs;

    fn build(args: StoreDataArgs, _: &Setup) -> Result<Self, ArgError> {
        let (data, mask) = (args.data.0.len(), args.mask.0.len());
        if mask > data {
            return Err(ArgError::new("MASK must be no longer than DATA")
                .help(format!("MASK has {mask} bytes, DATA {data}")));
        }
        Ok(StoreData(args))
    }
}

impl PerPacket for StoreData {
    type On = on::Any;
    type Local = ();
    type Fate = ();
    const BYTE_ACCESS: ByteAccess = ByteAccess::Writes;

    fn byte_length(&self) -> Option<usize> {
        Some(self.0.offset as usize + self.0.data.0.len())
    }

    fn write_bytes(&self, _: &mut (), bytes: &mut BurstBytes) {
        let offset = self.0.offset as usize;
        bytes.iter_mut().for_each(|bytes| self.write(&mut bytes[offset..]));
    }

    fn packet(&self, _: &mut (), packet: &mut Packet) {
        let (offset, data) = (self.0.offset as usize, &self.0.data.0);
        if offset >= packet.len() {
            return;
        }
        if self.0.grow && packet.len() < offset + data.len() {
            packet.put_back(offset + data.len() - packet.len());
        }
        self.write(&mut packet.bytes_mut()[offset..]);
    }
}

impl StoreData {
    /// Writes to the bytes of a packet from the offset on.
    fn write(&self, bytes: &mut [u8]) {
        let targets = bytes.iter_mut().zip(&self.0.data.0);
        let masks = self.0.mask.0.iter().copied().chain(std::iter::repeat(u8::MAX));
        targets
            .zip(masks)
            .for_each(|((target, byte), mask)| *target = *target & !mask | byte & mask);
    }
}
