//! `AnnotationInfo`: names annotation bytes.

use castanet_element::args::ANNO;
use castanet_element::packet::anno::{self, Anno};
use castanet_element::prelude::*;

/// Gives names to annotation bytes, for use in the arguments of other elements.
///
/// Each has an offset and a size in bytes, 1 unless given. It is an error if annotations
/// that CHECK_OVERLAP names have bytes in common.
///
/// ```click
/// AnnotationInfo(COLOUR 16, MINE 40 2, CHECK_OVERLAP COLOUR MINE PACKET_NUMBER)
/// in -> Paint(7, ANNO COLOUR) -> Paint2(3, MINE) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; paint 7
/// ```
#[derive(Element)]
#[element(room = "info")]
pub struct AnnotationInfo {
    /// A name, an offset and a size.
    #[arg(rest)]
    annotations: Vec<Words>,
    /// Names of annotations that must have no byte in common.
    #[arg(keyword, default = Vec::new())]
    check_overlap: Vec<String>,
}

/// Parses a name, an offset and a size.
fn parse_annotation(words: &[String]) -> Option<(String, usize, usize)> {
    let number = |text: &String| usize::from_arg(text, &Names::default()).ok();
    let (name, offset, size) = match words {
        [name, offset] => (name, number(offset)?, 1),
        [name, offset, size] => (name, number(offset)?, number(size)?),
        _ => return None,
    };
    let fits = size > 0 && offset < anno::SIZE && size <= anno::SIZE - offset;
    fits.then(|| (name.clone(), offset, size))
}

impl Info for AnnotationInfo {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        for argument in self.annotations.iter().filter(|it| !it.words.is_empty()) {
            let (name, offset, size) = parse_annotation(&argument.words).ok_or_else(|| {
                ArgError::new(format!("`{}` is no annotation", argument.text))
                    .click("expected 'NAME OFFSET [SIZE]'")
                    .help("a name, an offset below 48 and a size, as in `MINE 40 2`")
            })?;
            if anno::by_name(&name).is_some() {
                return Err(ArgError::new(format!("`{name}` is an annotation already"))
                    .click(format!("annotation name '{name}' already defined")));
            }
            facts.names.declare(name, format!("{ANNO}{offset}/{size}"));
        }
        let names = Names::new(&facts.names.visible(), None);
        let mut all: Vec<(&str, Anno)> = Vec::new();
        for name in &self.check_overlap {
            let anno = Anno::from_arg(name, &names).map_err(|e| e.at("CHECK_OVERLAP"))?;
            all.push((name, anno));
        }
        for (n, (name, a)) in all.iter().enumerate() {
            for (other, b) in &all[n + 1..] {
                if a.offset < b.offset + b.size && b.offset < a.offset + a.size {
                    return Err(ArgError::new(format!("annotations {name} and {other} overlap")));
                }
            }
        }
        Ok(())
    }
}
