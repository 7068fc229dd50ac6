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
    let (l, t, n) = (options.blinds, options.processors, options.header_bits);
    let FunctionReport { matches, actions, .. } = function;
    let again = match options.blind_use {
        BlindUse::Again => format!(
            "for two packets with the same blind, which come {l} packets apart, in which of the {n} \
             bits they differ: more of them than l tell more"
        ),
        BlindUse::Once => "no differences of packets: no blind is used twice".to_owned(),
    };
    let mut known = vec![
        "the number of packets and dummies together, and when each of them came".to_owned(),
        format!(
            "which of the {matches} matches each packet has, and that two packets have the same"
        ),
        "the projections above, and the tree: which match is tried after which".to_owned(),
        again,
        "by a brute force of one digest: a match and its blind by exclusive or, and so in which \
         bits of the projection a packet with this blind differs from the match, and in which bits \
         two matches of the projection differ"
            .to_owned(),
        "the values of a match, if it knows these bits of a packet besides: the guesses above are \
         those of a processor that knows nothing about packets"
            .to_owned(),
        format!("its own share of each of {actions} actions, which is a random string"),
    ];
    if !options.has_constant_work {
        known.push(
            "others that measure its work learn something about matches too: it depends on them"
                .to_owned(),
        );
    }
    let hidden = vec![
        "packets, beside the differences above: their header strings are blinded, and the rest of \
         them does not come here"
            .to_owned(),
        "the values of matches, as long as nobody makes the guesses above".to_owned(),
        format!(
            "actions and results, and whether a packet is dropped: all {t} processors together \
             could, {} could not",
            t - 1
        ),
    ];
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
