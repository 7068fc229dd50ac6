//! Other programs that call handlers: their commands, and the sockets they come by.

pub(crate) mod broadcast;
pub(crate) mod endpoint;
mod input;
mod input_quota;
mod listener;
mod llrpc;
pub(crate) mod protocol;
pub(crate) mod server;
mod session;

pub use session::converse;
