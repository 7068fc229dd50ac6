//! Protocol formats: header views with named offsets, checksums, pcap files
//! and packets as text.
//!
//! A header type is a plain array of bytes. Viewing a slice as a header
//! ([`Ipv4Header::from_prefix`] and its equivalents) checks only the length;
//! after that no accessor can fail. A view does *not* validate the fields: the
//! caller checks versions and lengths.
#![forbid(unsafe_code)]

#[macro_use]
mod field;

pub mod arp;
pub mod bits;
pub mod bpdu;
pub mod checksum;
pub mod crc32;
pub mod ether_type;
pub mod ethernet;
pub mod extension;
pub mod geneve;
pub mod gre;
pub mod gtp;
pub mod gtp_tunnel;
pub mod headers;
pub mod icmp;
pub mod icmp6;
pub mod ip_proto;
pub mod ipfix;
pub mod ipv4;
pub mod ipv6;
pub mod mac;
pub mod names;
pub mod nd;
pub mod number;
pub mod options;
pub mod pcap;
pub mod print;
pub mod sketch;
pub mod splitbox;
pub mod summary;
pub mod tcp;
pub mod tcpdump;
pub mod timestamp;
pub mod transport;
pub mod udp;
pub mod vlan;
pub mod vxlan;

pub use arp::Arp;
pub use ethernet::Ethernet;
pub use extension::Fragment6;
pub use geneve::Geneve;
pub use gre::{Gre, GreHeader};
pub use gtp::Gtp;
pub use headers::Headers;
pub use icmp::Icmp;
pub use ipv4::Ipv4Header;
pub use ipv6::Ipv6Header;
pub use mac::MacAddr;
pub use tcp::Tcp;
pub use timestamp::Timestamp;
pub use udp::Udp;
pub use vlan::Vlan;
pub use vxlan::Vxlan;
