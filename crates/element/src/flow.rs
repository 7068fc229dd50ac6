//! Push and pull ports.

/// Whether packets are pushed or pulled through a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// The upstream element decides when.
    Push,
    /// The downstream element decides when.
    Pull,
    /// As the neighbour does.
    Agnostic,
}

impl Flow {
    /// The word that Click uses.
    pub fn word(self) -> &'static str {
        match self {
            Flow::Push => "push",
            Flow::Pull => "pull",
            Flow::Agnostic => "agnostic",
        }
    }
}
