//! Arguments about annotations: where they lie, and times to put there.

use super::{AddressKind, ArgError, FromArg, Names};
use castanet_packet::{Packet, anno};
use castanet_wire::Timestamp;

/// A place of `SIZE` bytes among a packet's annotations, by name (`PAINT`) or
/// as an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnoAt<const SIZE: usize>(pub usize);

impl<const SIZE: usize> FromArg for AnnoAt<SIZE> {
    const SYNTAX: &'static str = "an annotation such as PAINT, or an offset below 48";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        if let Some(named) = anno::by_name(text) {
            return (named.size == SIZE).then_some(AnnoAt(named.offset)).ok_or_else(|| {
                let (name, has) = (named.name, named.size);
                let fits = anno::ALL.iter().filter(|a| a.size == SIZE).map(|a| a.name);
                ArgError::new(format!("{name} has {has} bytes, not {SIZE}"))
                    .click("annotation has wrong size")
                    .help(format!("one of {}", fits.collect::<Vec<_>>().join(", ")))
            });
        }
        let declared = names.resolve(text, AddressKind::Anno);
        if let Some((offset, size)) = declared.as_deref().and_then(|at| at.split_once('/')) {
            let offset = offset.parse().ok().filter(|_| size.parse() == Ok(SIZE));
            return offset.map(AnnoAt).ok_or_else(|| {
                ArgError::new(format!("{text} has {size} bytes, not {SIZE}"))
                    .click("annotation has wrong size")
            });
        }
        let wrong = || ArgError::new(format!("`{text}` is not {}", Self::SYNTAX));
        let offset = usize::from_arg(text, names).map_err(|_| {
            let near = castanet_lang::nearest(text, anno::ALL.iter().map(|a| a.name));
            let error = wrong().click("syntax error");
            near.map_or(error.clone(), |name| error.help(format!("did you mean {name}?")))
        })?;
        let fits = offset <= anno::SIZE && SIZE <= anno::SIZE - offset;
        fits.then_some(AnnoAt(offset)).ok_or_else(|| wrong().click("annotation out of range"))
    }
}

impl AnnoAt<1> {
    /// The byte there.
    #[inline]
    pub fn get(self, packet: &Packet) -> u8 {
        if self.0 == anno::PAINT { packet.paint() } else { rare(self, packet) }
    }
    /// Sets the byte there.
    #[inline]
    pub fn set(self, packet: &mut Packet, value: u8) {
        if self.0 == anno::PAINT {
            packet.set_paint(value)
        } else {
            packet.set_anno_u8(self.0, value)
        }
    }
}

/// A byte that is not the paint.
#[cold]
fn rare(at: AnnoAt<1>, packet: &Packet) -> u8 {
    packet.anno_u8(at.0)
}

impl FromArg for Timestamp {
    const SYNTAX: &'static str = "a time in seconds, such as 1000000000.5";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let wrong = || ArgError::new(format!("`{text}` is not {}", Self::SYNTAX));
        text.parse().map_err(|_| wrong().click("invalid timestamp"))
    }
}
