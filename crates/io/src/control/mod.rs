//! Other programs that call handlers: their commands, and the sockets they come by.

pub(crate) mod protocol;
pub(crate) mod server;
