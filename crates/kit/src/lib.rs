//! The algorithms behind the elements: they know bytes and numbers, but no packets, graphs or clocks.
#![forbid(unsafe_code)]

pub mod arp;
pub mod classify;
pub mod ewma;
pub mod fragment;
pub mod icmp_error;
pub mod ip_header;
mod ipv4;
pub mod lpm;
pub mod options;
pub mod prefixes;
pub mod rate;
pub mod script;
pub mod text;
pub mod units;
