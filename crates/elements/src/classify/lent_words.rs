//! Programs that decide by the words of packets without descriptors, which are loaded for a burst.

use castanet_element::packet::{BurstBytes, WordTest};
use castanet_element::wire::Ipv4Header;
use castanet_kit::classify::{Base, Program};

/// The outputs of packets by a program of `Classifier` patterns, and the bits that are set in any; packets that pass `first`
/// have output 0, which `outputs` has before.
#[inline(always)]
pub(super) fn outputs(
    program: &Program,
    first: WordTest,
    bytes: &BurstBytes,
    outputs: &mut [u8],
) -> u8 {
    if first.passes_burst(bytes) {
        return 0;
    }
    let load = |_, offset, first, words: &mut _| bytes.load_words(offset, first, words);
    let bits = program.outputs_of_words(outputs, load);
    bits.unwrap_or_else(|| program.outputs_of_bytes(bytes.iter(), outputs))
}

/// The same by a program of IP patterns; `None`, and nothing is done, if it reads what not all packets have at the same
/// place.
#[inline(always)]
pub(super) fn outputs_of_headers(
    program: &Program,
    bytes: &BurstBytes,
    outputs: &mut [u8],
) -> Option<u8> {
    program.outputs_of_words(outputs, |base, offset, first, words| match base {
        Base::Network => bytes.load_network_words(offset, first, words),
        // Behind headers without options.
        Base::Transport if bytes.is_plain_ipv4() => {
            bytes.load_network_words(Ipv4Header::LEN + offset, first, words)
        }
        _ => false,
    })
}
