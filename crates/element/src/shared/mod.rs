//! State that several elements or workers share.

mod rw_shared;
mod state;

pub use rw_shared::RwShared;
pub use state::{Shared, SharedState};
