//! The place of an Ethernet address in packets, as an argument.

use castanet_element::prelude::*;
use castanet_element::wire::Ethernet;

/// The offset of an Ethernet address from the start of a packet, in bytes.
#[derive(Clone, Copy)]
pub(super) struct AddressOffset(pub(super) usize);

impl FromArg for AddressOffset {
    const SYNTAX: &'static str = "an offset in bytes, src or dst";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let number = || u32::from_arg(text, names).ok().map(|offset| offset as usize);
        let offset = match text.to_ascii_lowercase().as_str() {
            "src" => Some(Ethernet::SRC),
            "dst" => Some(Ethernet::DST),
            _ => number(),
        };
        offset.map(AddressOffset).ok_or_else(|| {
            ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("type mismatch: bad OFFSET")
                .unplaced()
        })
    }
}
