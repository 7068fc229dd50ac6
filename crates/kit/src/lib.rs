//! castanet-kit.
#![forbid(unsafe_code)]
