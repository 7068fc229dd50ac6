//! castanet-elements.
#![forbid(unsafe_code)]
