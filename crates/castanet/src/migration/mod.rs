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

pub(crate) use departure::Departure;
pub(crate) use key::MigrationKey;
pub(crate) use listener::MigrationListener;
pub(crate) use progress::{MovePhase, MoveProgress};
