//! State and handlers of `GTPTable`.

use castanet_element::prelude::*;
use castanet_kit::gtp_tunnels::Tunnels;

/// Link to the table of tunnels, for the handlers.
#[derive(Default, Local)]
#[local(methods)]
pub struct GTPTableState {
    pub(super) tunnels: Shared<Tunnels>,
}

#[handlers]
impl GTPTableState {
    /// Number of tunnels from which packets have arrived.
    #[read]
    fn count(&self) -> usize {
        self.tunnels.with(|tunnels| tunnels.count().0)
    }

    /// Number of these tunnels whose return tunnel is known.
    #[read]
    fn resolved(&self) -> usize {
        self.tunnels.with(|tunnels| tunnels.count().1)
    }

    /// Removes all tunnels.
    #[write]
    fn clear(&mut self, _: &str) -> Result<(), ArgError> {
        self.tunnels.with(Tunnels::clear);
        Ok(())
    }
}
