//! `ClickyInfo`: styles for Clicky, without effect.

use castanet_element::prelude::*;

/// Holds styles for Clicky, Click's graphical interface; has no effect.
///
/// ```click
/// ClickyInfo(STYLE #c { fill: blue })
/// in -> c :: Counter -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "info")]
pub struct ClickyInfo {
    /// Styles, in Clicky's language.
    #[arg(rest)]
    #[allow(dead_code)]
    style: Vec<Words>,
}

impl Info for ClickyInfo {
    fn declare(&self, _: &mut Facts) -> Result<(), ArgError> {
        Ok(())
    }
}
