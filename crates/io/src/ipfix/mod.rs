//! Export by IPFIX: the addresses of collectors, and an exporter with its socket.

mod collector;
pub mod metrics;
mod session;

pub use collector::CollectorAddress;
pub use session::{Emit, ExportSession};
