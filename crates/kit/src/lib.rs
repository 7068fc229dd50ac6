//! The algorithms behind the elements: they know bytes and numbers, but no packets, graphs or clocks.
#![forbid(unsafe_code)]

pub mod aggregates;
pub mod anonymize;
pub mod arp;
pub mod chance;
pub mod classify;
pub mod delays;
pub mod ewma;
pub mod fragment;
pub mod icmp_error;
pub mod ip_field;
pub mod ip_flows;
pub mod ip_header;
mod ipv4;
pub mod lpm;
pub mod options;
pub mod prefixes;
pub mod ranges;
pub mod rate;
pub mod red;
pub mod script;
pub mod stride;
pub mod text;
pub mod units;
