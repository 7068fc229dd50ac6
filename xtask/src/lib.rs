//! Generates the pages of the element manual, and the files of new elements.
#![forbid(unsafe_code)]

pub mod docs;
pub mod new;
