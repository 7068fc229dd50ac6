//! Elements that choose an output by the contents or the length of the packet.

pub mod check_length;
pub mod classifier;
pub mod ip_classifier;
pub mod ip_filter;
pub mod ip_rules;
mod lent_words;
mod rule_file;

use castanet_element::class::*;
use castanet_element::prelude::*;
use castanet_kit::classify::Program;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<check_length::CheckLength>(),
    per_packet::<classifier::Classifier>(),
    per_packet::<ip_rules::IpRules<ip_classifier::IPClassifier>>(),
    per_packet::<ip_rules::IpRules<ip_filter::IPFilter>>().with_resources(rule_file::resources),
];

/// Warns of outputs that no packet can reach.
fn warn_of_unused(program: &Program, setup: &Setup) {
    for output in program.unused(setup.outputs) {
        (setup.warn)(format!("output {output} matches no packets"));
    }
}
