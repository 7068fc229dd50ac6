//! The capacity of the rings of a `Pipeliner`.

use castanet_element::prelude::*;

/// Maximum number of bursts in a ring.
#[derive(Clone)]
pub(super) struct RingCapacity(pub(super) usize);

impl FromArg for RingCapacity {
    const SYNTAX: &'static str = "a number from 4 on, or 0 for 1024";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        match usize::from_arg(text, names)? {
            0 => Ok(RingCapacity(1024)),
            1..=3 => Err(ArgError::new("a ring of less than 4 bursts")
                .click("Pipeliner ring size must be at least 4")),
            bursts => Ok(RingCapacity(bursts)),
        }
    }
}
