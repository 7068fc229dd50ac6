//! castanet-lang.
#![forbid(unsafe_code)]
