//! `CheckICMPHeader`: checks the length and checksum of ICMP packets.

use crate::ip::transport::{Fault, TransportCheck, TransportCheckArgs, TransportProtocol};
use castanet_element::prelude::*;
use castanet_element::wire::checksum::{self, Sum};
use castanet_element::wire::{Icmp, ip_proto};

/// Checks the length and checksum of ICMP packets.
///
/// Errors must quote at least an IPv4 header; timestamp and information
/// messages have a fixed length. Invalid packets leave by output 1, or are
/// dropped if it is not connected. Fragments pass. Each worker reports its
/// first invalid packet.
///
/// ```click
/// in -> c :: CheckICMPHeader -> out
/// > in  hex 00010203
/// > in  1.0.0.1 > 2.0.0.2 icmp type echo "data"
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.1 > 2.0.0.2 icmp type unreachable
/// > in  1.0.0.1 > 2.0.0.2 icmp type echo badcheck
/// < out 1.0.0.1 > 2.0.0.2 icmp type echo "data"
/// ~ c :: CheckICMPHeader: ICMP header check failed: not ICMP
/// = c.count 1
/// = c.drops 4
/// = c.drops.bad_protocol 2
/// = c.drops.bad_length 1
/// = c.drops.bad_checksum 1
/// = c.drop_details 2\tnot ICMP\n1\tbad packet length\n1\tbad ICMP checksum
/// ```
/// ```click
/// in -> c :: CheckICMPHeader(VERBOSE true) -> out;  c[1] -> bad
/// > in  hex 00010203
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < bad hex 00010203
/// < bad 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "icmp", args = CheckICMPHeaderArgs, by = TransportCheck<CheckICMPHeader>, headers = Pass, gives = "ip")]
pub struct CheckICMPHeader;

#[derive(Args)]
pub struct CheckICMPHeaderArgs {
    /// Whether to report every invalid packet, not only the first.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// Whether to count by fault; ignored, because the element always does.
    #[arg(keyword, default = false)]
    details: bool,
}

impl From<CheckICMPHeaderArgs> for TransportCheckArgs {
    fn from(CheckICMPHeaderArgs { verbose, details }: CheckICMPHeaderArgs) -> Self {
        TransportCheckArgs { verbose, checksum: true, details }
    }
}

impl TransportProtocol for CheckICMPHeader {
    type Args = CheckICMPHeaderArgs;
    const NUMBER: u8 = ip_proto::ICMP;
    const NAME: &'static str = "ICMP";
    const FAULT_TEXTS: [&'static str; 3] = ["not ICMP", "bad packet length", "bad ICMP checksum"];

    fn check(_: impl FnOnce() -> Sum, segment: &[u8], checksum: bool) -> Result<(), Fault> {
        let (icmp, payload) = Icmp::from_prefix(segment).ok_or(Fault::Length)?;
        if !icmp.length_ok(payload.len()) {
            return Err(Fault::Length);
        }
        // Header and payload in one go take fewer instructions than one after the other.
        if !checksum || checksum::of(segment) == 0 { Ok(()) } else { Err(Fault::Checksum) }
    }

    fn check_start(segment: &[u8]) -> Result<(), Fault> {
        let (icmp, payload) = Icmp::from_prefix(segment).ok_or(Fault::Length)?;
        if icmp.length_ok(payload.len()) { Ok(()) } else { Err(Fault::Length) }
    }
}
