//! Generates the element manual, the site of the documentation, and the files of new elements;
//! finds the files that tests read.
#![forbid(unsafe_code)]

#[cfg(feature = "docs")]
pub mod docs;
pub mod files;
#[cfg(feature = "docs")]
pub mod handlers_page;
#[cfg(feature = "docs")]
pub mod new;
#[cfg(feature = "docs")]
pub mod site;
