//! Devices behind one trait: network interfaces, sockets and capture files.
#![deny(unsafe_code)] // `sys` opts out, once
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod af_packet;
pub mod af_xdp;
mod assembler;
pub mod control;
mod decompression;
pub mod descriptors;
mod device;
pub mod dpdk;
pub mod elements;
mod error;
pub mod interface;
pub mod ipfix;
pub mod links;
mod offload;
pub mod pcap;
mod rx_buffer;
mod rx_finisher;
pub mod slots;
mod socket;
#[allow(unsafe_code)]
mod sys;
pub mod tap;
mod tcpdump_filter;
pub mod text_file;
pub mod traffic;
mod tx_batch;

pub use device::{Device, DeviceStats};
pub use error::IoError;
pub use tcpdump_filter::TcpdumpFilter;
