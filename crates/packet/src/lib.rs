//! Packets, batches and pools: ownership of packet memory.
//!
//! A [`Packet`] is an owned descriptor of 32 bytes whose bytes lie in a
//! frame; a [`Batch`] is an array of packets; a [`Pool`] allocates frames and
//! takes them back. Dropping a packet or a batch returns its frames to their
//! pools, so that no frame leaks or is freed twice.
//!
//! This crate has the `unsafe` code of packets, so that no other crate needs it. No
//! sequence of safe calls reads or writes outside of a frame, or writes to
//! bytes that another packet can see.

pub mod anno;
mod batch;
mod burst_bytes;
mod burst_summary;
mod contents;
mod division;
mod frame;
mod headers;
mod heap_account;
mod packet;
mod pool;
mod prefetch;
mod queue;
mod raw;
mod view;
mod word_test;

pub use batch::{BURST, Batch, Clones, IntoIter, MAX_BURST, PacketTotals};
pub use burst_bytes::BurstBytes;
pub use burst_summary::BurstSummary;
pub use division::Exits;
pub use frame::{DEFAULT_HEADROOM, FrameHeader};
pub use heap_account::{AccountAllocator, HeapAccount, HeapPayment};
pub use packet::{Packet, PacketType, PartialChecksums};
pub use pool::{FrameStore, Pool, PoolConfig, PoolStats};
pub use prefetch::prefetch;
pub use queue::PacketQueue;
pub use raw::RawPacket;
pub use view::{ArpPacket, Ether, IcmpPacket, Ipv4, Ipv6, PinnedIpv4, TcpPacket, UdpPacket};
pub use word_test::WordTest;
