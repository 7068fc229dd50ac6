//! Elements that choose an output, by handler, hash, random number or rotation, or that copy
//! packets to several outputs.

pub mod bypass;
pub mod hash_switch;
mod hash_words;
pub mod hub;
pub mod input_switch;
pub mod ip_rr_switch;
mod output_args;
pub mod pull_tee;
pub mod random_sample;
pub mod random_switch;
pub mod round_robin_switch;
pub mod static_switch;
pub mod stride_switch;
pub mod suppressor;
#[allow(clippy::module_inception)] // the element is called what the room is
pub mod switch;
pub mod tee;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_batch::<bypass::Bypass>(),
    per_packet::<hash_switch::HashSwitch>(),
    per_batch::<hub::Hub>(),
    per_batch::<input_switch::InputSwitch>(),
    per_packet::<ip_rr_switch::IPRRSwitch>(),
    per_batch::<output_args::PacketCopier<pull_tee::PullTee>>(),
    per_batch::<random_sample::RandomSample>().with_checksums(Checksums::Pass),
    per_batch::<random_switch::RandomSwitch>(),
    per_packet::<round_robin_switch::RoundRobinSwitch>().with_checksums(Checksums::Pass),
    per_packet::<static_switch::StaticSwitch>().with_checksums(Checksums::Pass),
    per_packet::<stride_switch::StrideSwitch>(),
    per_batch::<suppressor::Suppressor>(),
    per_packet::<switch::Switch>().with_checksums(Checksums::Pass),
    per_batch::<output_args::PacketCopier<tee::Tee>>().with_checksums(Checksums::Pass),
];
