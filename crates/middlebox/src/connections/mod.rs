//! Connections: both directions of what packets of two ends have in common, with
//! the rules that are about them and what these change.

mod fragments;
mod key;
mod listing;
mod mapping;
mod table;
#[cfg(test)]
mod tests;
mod tracked;

pub(crate) use mapping::Mapped;
pub(crate) use table::{Connections, Found, Fresh};
