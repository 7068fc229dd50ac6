//! Generates the element manual, the site of the documentation, and the files of new elements;
//! finds the files that tests read.
#![forbid(unsafe_code)]

pub mod docs;
pub mod files;
pub mod handlers_page;
pub mod new;
pub mod site;
