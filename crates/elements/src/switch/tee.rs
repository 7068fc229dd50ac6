//! `Tee`: copies packets to all outputs.

use super::output_args::{PacketCopier, TeeArgs};
use castanet_element::prelude::*;

/// Copies every packet to all outputs.
///
/// Copies of packets of more than 256 bytes share their bytes until an element writes to one of them.
///
/// ```click
/// in -> t :: Tee(2) -> a;  t[1] -> b
/// > in 1.0.0.1 > 2.0.0.2 udp
/// < a  1.0.0.1 > 2.0.0.2 udp
/// < b  1.0.0.1 > 2.0.0.2 udp
/// = t.drops.unmatched 0
/// ```
#[derive(Element)]
#[element(room = "switch", args = TeeArgs, by = PacketCopier<Tee>, processing = "h/h", alias = "Duplicate")]
pub struct Tee;
