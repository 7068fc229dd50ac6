//! The algorithms of the elements. They work on bytes and numbers, and know no packets, graphs or
//! clocks.
#![forbid(unsafe_code)]

pub mod address;
pub mod aggregates;
pub mod anonymize;
pub mod arp;
pub mod balance;
pub mod classify;
pub mod conntrack;
pub mod cow_vec;
pub mod cpu_shares;
pub mod delays;
pub mod ewma;
pub mod fragment;
pub mod fragment6;
pub mod fragment_tracker;
pub mod gtp_tunnels;
pub mod icmp6_error;
pub mod icmp_error;
pub mod ip6_header;
pub mod ip_field;
pub mod ip_flows;
pub mod ip_header;
pub mod ipfix;
pub mod lpm;
pub mod lru;
pub mod mac_table;
pub mod nat;
pub mod nat6;
pub mod options;
pub mod parallel;
pub mod ping;
pub mod prefixes;
pub mod ranges;
pub mod rate;
pub mod reassembly;
pub mod red;
pub mod rng;
pub mod rules;
pub mod script;
pub mod seed;
pub mod siit;
pub mod stride;
pub mod text;
pub mod tick_bucket;
pub mod units;
