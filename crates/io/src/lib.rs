//! Devices behind one trait: how packets come from and go to the world.
#![deny(unsafe_code)] // `sys` opts out, once
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod af_packet;
pub mod af_xdp;
pub mod control;
mod device;
pub mod dpdk;
pub mod elements;
mod error;
mod intake;
pub mod interface;
mod offload;
mod outlet;
pub mod pcap;
mod scratch;
mod socket;
#[allow(unsafe_code)]
mod sys;
pub mod tap;
pub mod text_file;
pub mod traffic;

pub use device::{Device, DeviceStats};
pub use error::IoError;
