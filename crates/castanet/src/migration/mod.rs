//! Tenants that move to other instances with their state, and come from them.
//!
//! The instance that a tenant leaves connects to the other one and sends its configuration and, in rounds, the
//! tables of its elements while it goes on. Then the tenant stands still for as long as it takes to send what has
//! changed since and all other state; the other instance goes on with it (*Virtual Routers on the Move*).

mod arrival;
mod channel;
mod departure;
mod key;
mod listener;
mod message;
mod progress;

use crate::control_queue::ControlSender;
use crate::instance::InstanceService;
use castanet_runtime::router::Router;

pub(crate) use departure::Departure;
pub(crate) use key::MigrationKey;
pub(crate) use listener::MigrationListener;
pub(crate) use progress::{MovePhase, MoveProgress};

/// The control thread, as the thread that moves a tenant reaches it.
struct TenantControl {
    tenant: String,
    control: ControlSender<InstanceService>,
}

impl TenantControl {
    /// Has the control thread do something about the tenant.
    ///
    /// # Errors
    /// That of the request, or the control thread does not answer.
    fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&mut InstanceService, &mut Router, &str) -> Result<T, String>
        + Send
        + 'static,
    ) -> Result<T, String> {
        let tenant = self.tenant.clone();
        let answer = self.control.wait(move |service, router| request(service, router, &tenant));
        answer.unwrap_or_else(|| Err("the control thread does not answer".to_owned()))
    }
}
