//! Other programs that call handlers: their commands, and the sockets they come by.

mod backlog;
pub(crate) mod broadcast;
mod input;
mod listener;
mod llrpc;
pub(crate) mod place;
pub(crate) mod protocol;
pub(crate) mod server;
mod session;

pub use session::converse;
