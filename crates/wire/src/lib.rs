//! castanet-wire.
#![forbid(unsafe_code)]
