//! Packets, batches and pools: who owns the bytes.
//!
//! A [`Packet`] is an owned descriptor of 32 bytes whose bytes lie in a
//! frame; a [`Batch`] is an array of packets; a [`Pool`] is where frames come
//! from and go back to. Dropping a packet or a batch gives its frames back,
//! so nothing here can leak or be freed twice.
//!
//! `unsafe` code lives in this crate so that it need not elsewhere. No
//! sequence of safe calls reads or writes outside of a frame, or writes to
//! bytes that another packet can see.

pub mod anno;
mod batch;
mod contents;
mod frame;
mod headers;
mod packet;
mod pool;
mod raw;
mod view;

pub use batch::{BURST, Batch, IntoIter, MAX_BURST};
pub use frame::{DEFAULT_HEADROOM, FrameHeader};
pub use packet::{Packet, PacketType, Partial};
pub use pool::{FrameStore, Pool, PoolConfig, PoolStats};
pub use raw::RawPacket;
pub use view::{ArpPacket, Ether, IcmpPacket, Ipv4, Ipv4Kept, Ipv6, TcpPacket, UdpPacket};
