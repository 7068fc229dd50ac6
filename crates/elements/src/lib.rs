//! The elements, one file each. Start with [`measure::counter`].
#![forbid(unsafe_code)]
#![allow(missing_docs)] // the manual says it; tests/manual.rs checks it

pub mod aggregate;
pub mod annotate;
pub mod arp;
pub mod classify;
pub mod edit;
pub mod ether;
pub mod families;
mod fusions;
pub mod icmp;
pub mod info;
pub mod ip;
pub mod ip6;
pub mod lookup;
pub mod measure;
pub mod nat;
pub mod queue;
pub mod schedule;
pub mod script;
pub mod shape;
pub mod source;
pub mod switch;
pub mod tcp;
pub mod threads;
pub mod trace;
pub mod tunnel;
pub mod udp;
pub mod util;
pub mod vlan;

use castanet_element::class::{Class, Library};

pub use fusions::FUSIONS;

/// The rooms, in the order of the manual.
pub static ROOMS: &[(&str, &[Class])] = &[
    ("source", source::CLASSES),
    ("queue", queue::CLASSES),
    ("shape", shape::CLASSES),
    ("schedule", schedule::CLASSES),
    ("threads", threads::CLASSES),
    ("classify", classify::CLASSES),
    ("switch", switch::CLASSES),
    ("lookup", lookup::CLASSES),
    ("ether", ether::CLASSES),
    ("vlan", vlan::CLASSES),
    ("arp", arp::CLASSES),
    ("ip", ip::CLASSES),
    ("ip6", ip6::CLASSES),
    ("icmp", icmp::CLASSES),
    ("tcp", tcp::CLASSES),
    ("udp", udp::CLASSES),
    ("tunnel", tunnel::CLASSES),
    ("nat", nat::CLASSES),
    ("annotate", annotate::CLASSES),
    ("edit", edit::CLASSES),
    ("measure", measure::CLASSES),
    ("aggregate", aggregate::CLASSES),
    ("trace", trace::CLASSES),
    ("script", script::CLASSES),
    ("info", info::CLASSES),
    ("util", util::CLASSES),
];

/// Every class of this crate, by name.
pub fn library() -> Library {
    let mut library = Library::default();
    ROOMS.iter().flat_map(|(_, classes)| classes.iter()).for_each(|class| library.add(class));
    library.fuse(FUSIONS);
    library
}
