//! castanet-io.
