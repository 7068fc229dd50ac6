//! castanet-engine.
#![forbid(unsafe_code)]
