//! A process of its own for a tenant: its parent's side, and the messages between the two.
//!
//! The parent starts this program again as `castanet tenants process` (`start` of the process module),
//! passes it a [`ProcessDescription`] and its ends of slot channels over a socket, and hears of its state
//! by lines ([`ProcessMessage`]). Its handlers are called over another socket ([`handler_calls`]). The process
//! confines itself before its first packet.

mod cgroup;
mod cgroup_places;
mod child;
mod description;
mod handler_calls;
mod message;
mod probe;
mod protection;
mod status;
mod supervisor;

pub use cgroup::Limits;
pub use cgroup_places::CgroupPlaces;
pub use child::words as exit_words;
pub(crate) use child::{Launch, channel_name};
pub use description::{Inheritance, MOST_CHANNELS, ProcessDescription};
pub use handler_calls::handler_calls;
pub use message::{ProcessMessage, printable};
pub use probe::{ProbeReport, probe};
pub use protection::Protection;
pub use status::{ProcessState, ProcessStatus};
pub(crate) use supervisor::Supervisor;
