//! What keeps the house in order: the manual's pages and new elements.
#![forbid(unsafe_code)]

pub mod docs;
pub mod new;
