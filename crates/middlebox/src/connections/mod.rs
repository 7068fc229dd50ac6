//! Connections: both directions of what packets of two ends have in common, with
//! the rules that are about them and what these change.
//!
//! All workers have the same connections. They read them at the same time, look up a burst's
//! packets ([`Asked`], which each has to itself) and note what came; who begins or ends a
//! connection changes them, while nobody reads.

mod asked;
mod key;
mod listing;
mod mapping;
mod own;
mod shelf;
mod side;
mod table;
#[cfg(test)]
mod tests;
mod tracked;
mod wish;

pub(crate) use asked::{Asked, Looked};
pub(crate) use key::Ends;
pub(crate) use mapping::{Mapped, exchange};
pub(crate) use table::{Connections, Exchanged, Finding, Found, Fresh, quotes};
