//! `AlignmentInfo`: declares alignments, without effect.

use castanet_element::prelude::*;

/// Declares the alignment of packets at elements, for `click-align`; has no effect.
///
/// No element of Castanet needs aligned packets.
///
/// ```click
/// AlignmentInfo(c 4 2)
/// in -> c :: CheckIPHeader -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "info")]
pub struct AlignmentInfo {
    /// An element's name, then a modulus and an offset for each input.
    #[arg(rest)]
    elements: Vec<Words>,
}

impl Info for AlignmentInfo {
    fn declare(&self, _: &mut Facts) -> Result<(), ArgError> {
        for argument in self.elements.iter().filter(|it| !it.words.is_empty()) {
            let numbers = &argument.words[1..];
            let all_are = numbers.iter().all(|n| u32::from_arg(n, &Names::default()).is_ok());
            if !all_are || numbers.len() % 2 == 1 {
                return Err(ArgError::new(format!(
                    "`{}` is no name with pairs of numbers",
                    argument.text
                ))
                .click("expected 'ELEMENTNAME [MODULUS OFFSET ...]'"));
            }
        }
        Ok(())
    }
}
