//! The elements, one file each. Start with [`basic::counter`].
#![forbid(unsafe_code)]
#![allow(missing_docs)] // the manual says it; tests/manual.rs checks it

pub mod arp;
pub mod basic;
pub mod encap;
pub mod ether;
pub mod flow;
mod fusions;
pub mod icmp;
mod icmp6_errors;
mod icmp_errors;
pub mod ip;
pub mod ip6;
mod ip_checks;
mod ip_rules;
mod limit;
mod mappings;
pub mod neighbours;
mod outfile;
mod pinged;
pub mod queue;
mod routes;
pub mod source;
pub mod tcp;
mod translation;
mod transport;
pub mod udp;
mod vlan_tags;

use castanet_engine::class::{Class, Library};

pub use fusions::FUSIONS;

/// The rooms, in the order of the manual.
pub static ROOMS: &[(&str, &[Class])] = &[
    ("source", source::CLASSES),
    ("queue", queue::CLASSES),
    ("flow", flow::CLASSES),
    ("basic", basic::CLASSES),
    ("ether", ether::CLASSES),
    ("arp", arp::CLASSES),
    ("ip", ip::CLASSES),
    ("ip6", ip6::CLASSES),
    ("icmp", icmp::CLASSES),
    ("udp", udp::CLASSES),
    ("tcp", tcp::CLASSES),
];

/// Every class of this crate, by name.
pub fn library() -> Library {
    let mut library = Library::default();
    ROOMS.iter().flat_map(|(_, classes)| classes.iter()).for_each(|class| library.add(class));
    library.fuse(FUSIONS);
    library
}
