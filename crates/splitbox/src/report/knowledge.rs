//! Sentences about that which each kind of party can and cannot know.

use super::FunctionReport;
use crate::digest::HashKind;
use crate::setup::{BlindUse, SetupInfo};

/// That which a party can know, and that which it cannot know.
pub(super) type Knowledge = (Vec<String>, Vec<String>);

pub(super) fn entry(info: &SetupInfo) -> Knowledge {
    let options = &info.options;
    let n = options.header_bits;
    let mut known = vec![
        "all packets, with their payload, before the function is applied".to_owned(),
        format!("n, which says that no rule is about anything behind {n} bits of a header string"),
        "t, l, the blinds, and which packets are dummies".to_owned(),
    ];
    let mut hidden = vec![
        "the number of rules, matches, actions and results: its file and its work depend on the \
         policy by nothing but n"
            .to_owned(),
    ];
    match options.hash {
        HashKind::Blake3 => hidden.push(
            "digests of matches, even if it sees them on the network: it does not have the key of \
             the hash"
                .to_owned(),
        ),
        HashKind::Sha1 => known.push(
            "matches that it guesses, if it ever sees digests: SHA-1 has no key, and the entry has \
             the blinds"
                .to_owned(),
        ),
    }
    (known, hidden)
}

pub(super) fn processor(info: &SetupInfo, function: &FunctionReport) -> Knowledge {
    let options = &info.options;
    let (l, n) = (options.blinds / options.lanes.max(1) as u64, options.header_bits);
    let FunctionReport { matches, actions, .. } = function;
    let mut known = vec![
        "the number of packets and dummies together, and the time at which each came".to_owned(),
        format!("which of the {matches} matches each packet has, and so which packets have the same"),
        "the projections above, and the tree: which match is tried after which".to_owned(),
        "by a brute force of one digest: a match and its blind by exclusive or; so the bits of the \
         projection in which a packet with this blind differs from the match, and those in which \
         two matches of the projection differ"
            .to_owned(),
        "the value of a match, if it knows the same bits of a packet from elsewhere: the guesses \
         above are those of a processor that knows nothing about packets"
            .to_owned(),
        format!("its own share of each of the {actions} actions, which is a random string"),
    ];
    let mut hidden = vec![
        "packets, beside their matches and differences: header strings are blinded, and the rest \
         of a packet does not come here"
            .to_owned(),
        "the values of matches, beside those that are found as above".to_owned(),
        "actions and results, and whether a packet is dropped: it takes the shares of all \
         processors"
            .to_owned(),
    ];
    match options.blind_use {
        BlindUse::Again => {
            let of_lane = if options.lanes > 1 { " and of one lane" } else { "" };
            known.push(format!(
                "in which of the {n} bits two packets with one blind differ: packets of an \
                 epoch{of_lane} whose numbers differ by a multiple of {l}"
            ));
            known.push(
                "which packets are dummies, if many packets have one blind: a dummy differs from the \
                 others in bits that all packets have in common"
                    .to_owned(),
            );
        }
        BlindUse::Once => hidden.push("differences of packets: no blind is used twice".to_owned()),
    }
    if options.lanes > 1 {
        known.push(
            "the lane of each packet, which is the worker of the entry that took it: something about \
             the flow, if a device gives all packets of a flow to one worker"
                .to_owned(),
        );
    }
    if !options.has_constant_work {
        known.push(
            "others that measure its time for a packet learn something about the packet's matches"
                .to_owned(),
        );
    }
    (known, hidden)
}

pub(super) fn client() -> Knowledge {
    let known = vec![
        "everything: rules, matches, actions, blinds, the key of the hash, all packets and all \
         results"
            .to_owned(),
    ];
    let hidden = vec!["nothing; keep its file where the policy may be".to_owned()];
    (known, hidden)
}
