//! Generates the pages of the element manual, and the files of new elements; finds the files that
//! tests read.
#![forbid(unsafe_code)]

pub mod docs;
pub mod files;
pub mod new;
