//! `Search`: where a pattern ends.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;

/// Looks for bytes in each packet, and takes off what lies before their end.
///
/// How many bytes were taken off is added to an annotation of two bytes, for `UnstripAnno` to
/// bring them back. Packets without the pattern leave by the second output.
///
/// ```click
/// in -> s :: Search(\<0d0a>) -> out;  s[1] -> without
/// in2 -> Search(BC, STRIP_AFTER false, SET_ANNO false) -> out2
/// > in  hex 41 42 0d 0a 43
/// > in  hex 41 42
/// < out hex 43
/// < without hex 41 42
/// > in2 hex 41 42 43 44
/// < out2 hex 42 43 44
/// ```
#[derive(Element, Args)]
#[element(room = "edit", args = Search, processing = "h/h")]
pub struct Search {
    /// The bytes to look for.
    #[arg]
    pattern: Data,
    /// The two annotation bytes to count in.
    #[arg(default = AnnoAt(anno::PAINT2))]
    anno: AnnoAt<2>,
    /// Whether to count in an annotation what is taken off.
    #[arg(keyword, default = true)]
    set_anno: bool,
    /// Whether the pattern itself is taken off, too.
    #[arg(keyword, default = true)]
    strip_after: bool,
}

impl Build for Search {
    type Args = Search;

    fn build(args: Self, _: &Setup) -> Result<Self, ArgError> {
        match args.pattern.0.is_empty() {
            true => Err(ArgError::new("there is nothing to look for").at("PATTERN")),
            false => Ok(args),
        }
    }
}

#[derive(Fate)]
pub enum Way {
    /// Packets with the pattern.
    Found,
    /// Packets without it.
    #[optional]
    Without,
}

impl PerPacket for Search {
    type On = on::Any;
    type Local = ();
    type Fate = Way;

    fn packet(&self, _: &mut (), packet: &mut Packet) -> Way {
        let pattern = &self.pattern.0;
        let at = packet.bytes().windows(pattern.len()).position(|bytes| bytes == pattern);
        let Some(at) = at else { return Way::Without };
        let off = if self.strip_after { at + pattern.len() } else { at };
        packet.pull_front(off);
        if self.set_anno {
            let before = packet.anno_u16(self.anno.0);
            let off = u16::try_from(off).unwrap_or(u16::MAX);
            packet.set_anno_u16(self.anno.0, before.saturating_add(off));
        }
        Way::Found
    }
}
