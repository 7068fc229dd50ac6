//! `PullTee`: copies pulled packets to further outputs.

use super::output_args::{PacketCopier, TeeArgs};
use castanet_element::prelude::*;

/// Copies every pulled packet to all other outputs.
///
/// Output 0 is pulled; the others push.
///
/// ```click
/// in -> Queue -> t :: PullTee(2) -> Unqueue -> out; t[1] -> seen
/// > in   1.0.0.1 > 2.0.0.2 udp
/// < out  1.0.0.1 > 2.0.0.2 udp
/// < seen 1.0.0.1 > 2.0.0.2 udp
/// = t.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "switch", args = TeeArgs, by = PacketCopier<PullTee>, processing = "l/lh")]
pub struct PullTee;
