//! The one-line rule language, and the `Middlebox` element that executes it.
#![forbid(unsafe_code)]

mod active_rules;
pub mod analysis;
mod burst;
pub mod chains;
mod config_line;
mod connections;
pub mod ct_state;
mod execute;
mod exit;
mod export;
pub mod field;
mod file;
mod fragments;
mod fuzz;
pub mod headers;
mod interfaces;
pub mod language;
pub mod limits;
mod listing;
mod match_packet;
mod matched;
mod matcher;
mod metrics;
#[allow(missing_docs)] // the manual says it
pub mod middlebox;
mod middlebox_args;
mod named_sets;
#[cfg(test)]
mod nftables_tests;
mod packet_log;
mod packet_test;
mod page;
mod per_batch;
pub mod placement;
mod portable_connections;
mod reject;
mod reload;
pub mod rewrite;
pub mod rule;
mod rule_set;
mod state;
#[cfg(test)]
mod tests;
pub mod value;
pub mod value_set;
mod verdict;

pub use active_rules::ActiveRules;
pub use file::execute_setting;
pub use fuzz::fuzz_entry;
pub use match_packet::PacketView;
pub use matcher::{Matcher, Tables};
pub use page::page;
pub use rule_set::{Change, Entry, NonIpPolicy, RuleSet, Timeouts};

use castanet_element::class::{Class, per_batch};

/// Every class of this crate.
pub static CLASSES: &[Class] = &[per_batch::<middlebox::Middlebox>()
    .with_resources(middlebox_args::resources)
    .with_rw_shared_state()];
