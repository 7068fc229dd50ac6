//! `Search`: searches packets for bytes, and strips what precedes them.

use castanet_element::packet::anno;
use castanet_element::prelude::*;

/// Searches packets for a pattern of bytes, and strips the bytes up to its end.
///
/// The number of stripped bytes is added to an annotation of two bytes, so that `UnstripAnno`
/// can restore them. Packets without the pattern leave by the second output.
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
    /// The bytes to search for.
    #[arg]
    pattern: Data,
    /// The two annotation bytes to which the number of stripped bytes is added.
    #[arg(default = AnnoAt(anno::PAINT2))]
    anno: AnnoAt<2>,
    /// Whether to add the number of stripped bytes to the annotation.
    #[arg(keyword, default = true)]
    set_anno: bool,
    /// Whether to strip the pattern itself, too.
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
pub enum SearchExit {
    /// Packets with the pattern.
    Found,
    /// Packets without it.
    #[optional]
    Without,
}

impl PerPacket for Search {
    type On = on::Any;
    type Local = ();
    type Fate = SearchExit;

    fn packet(&self, _: &mut (), packet: &mut Packet) -> SearchExit {
        let pattern = &self.pattern.0;
        let at = packet.bytes().windows(pattern.len()).position(|bytes| bytes == pattern);
        let Some(at) = at else { return SearchExit::Without };
        let off = if self.strip_after { at + pattern.len() } else { at };
        packet.pull_front(off);
        if self.set_anno {
            let before = packet.anno_u16(self.anno.0);
            let off = u16::try_from(off).unwrap_or(u16::MAX);
            packet.set_anno_u16(self.anno.0, before.saturating_add(off));
        }
        SearchExit::Found
    }
}
