//! castanet-packet.
