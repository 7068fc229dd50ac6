//! Connections: both directions of what packets of two ends have in common, with
//! the rules that are about them and what these change.

mod fragments;
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

pub(crate) use mapping::{Mapped, exchange};
pub(crate) use table::{Connections, Exchanged, Found, Fresh, Looked};
