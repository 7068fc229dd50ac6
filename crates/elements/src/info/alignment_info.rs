//! `AlignmentInfo`: declares alignments of packets.

use castanet_element::prelude::*;

/// Declares the alignment of packets at elements, for `click-align` and for `Classifier.program`.
///
/// No element of Castanet needs aligned packets. Click's classifier compares aligned words, which its
/// program shows.
///
/// ```click
/// AlignmentInfo(c 4 2)
/// in -> c :: CheckIPHeader -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
///
/// ```click
/// AlignmentInfo(c 4 2)
/// in -> c :: Classifier(-) -> out
/// > in  hex 00
/// < out hex 00
/// = c.program all->[0]\nsafe length 4294967294\nalignment offset 2
/// ```
#[derive(Element)]
#[element(room = "info")]
pub struct AlignmentInfo {
    /// An element's name, then a modulus and an offset for each input.
    #[arg(rest)]
    elements: Vec<Words>,
}

impl Info for AlignmentInfo {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        for argument in self.elements.iter().filter(|it| !it.words.is_empty()) {
            let numbers = argument.words[1..].iter();
            let numbers = numbers.map(|n| u32::from_arg(n, &Names::default()));
            let numbers = numbers.collect::<Result<Vec<u32>, _>>();
            let Some(numbers) = numbers.ok().filter(|numbers| numbers.len().is_multiple_of(2))
            else {
                return Err(ArgError::new(format!(
                    "`{}` is no name with pairs of numbers",
                    argument.text
                ))
                .click("expected 'ELEMENTNAME [MODULUS OFFSET ...]'"));
            };
            if let [modulus, remainder, ..] = numbers[..] {
                facts.alignments.push((argument.words[0].clone(), (modulus, remainder)));
            }
        }
        Ok(())
    }
}
