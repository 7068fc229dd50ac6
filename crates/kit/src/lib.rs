//! The algorithms behind the elements: they know bytes and numbers, but no packets, graphs or clocks.
#![forbid(unsafe_code)]

pub mod classify;
pub mod lpm;
pub mod text;
