//! What a `GTPTable` knows, for those who read its handlers.

use castanet_engine::prelude::*;
use castanet_kit::gtp_tunnels::Tunnels;

/// The tunnels.
#[derive(Default, Local)]
#[local(methods)]
pub struct Shown {
    pub(super) tunnels: Link<Tunnels>,
}

#[handlers]
impl Shown {
    /// Tunnels by which packets have come.
    #[read]
    fn count(&self) -> usize {
        self.tunnels.with(|tunnels| tunnels.count().0)
    }

    /// Of these, those of which is known which tunnel leads back.
    #[read]
    fn resolved(&self) -> usize {
        self.tunnels.with(|tunnels| tunnels.count().1)
    }

    /// Forgets all tunnels.
    #[write]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.tunnels.with(Tunnels::clear);
        Ok(())
    }
}
