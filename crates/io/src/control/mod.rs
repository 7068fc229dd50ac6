//! Clients that call handlers from outside the process: their commands and their sockets.

mod client;
pub(crate) mod endpoint;
mod input;
mod input_quota;
mod instance;
mod listener;
mod llrpc;
pub(crate) mod protocol;
pub mod remote;
pub(crate) mod server;
mod session;

pub use client::{ControlAnswer, ControlClient};
pub use instance::{DeferredAnswer, InstanceRequest, InstanceSocket, RequestKind};
pub use session::converse;
