//! `SpinlockInfo`: names locks of paths.

use castanet_element::args::SPINLOCK;
use castanet_element::prelude::*;

/// Gives names to locks, for use in the arguments of `PathSpinlock`.
///
/// A name holds in the compound of the element and inside it. `PathSpinlock`
/// says why no lock is needed.
///
/// ```click
/// SpinlockInfo(one, "two")
/// in -> PathSpinlock(one) -> PathSpinlock(two) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "threads")]
pub struct SpinlockInfo {
    /// Names of locks, one each.
    #[arg(rest)]
    names: Vec<Words>,
}

impl Info for SpinlockInfo {
    fn declare(&self, facts: &mut Facts) -> Result<(), ArgError> {
        for name in &self.names {
            let [word] = name.words.as_slice() else {
                let error = ArgError::new(format!("`{}` is no name of a lock", name.text));
                return Err(error.click("bad NAME").help("one word"));
            };
            facts.names.declare(word.clone(), format!("{SPINLOCK}{word}"));
        }
        Ok(())
    }
}
