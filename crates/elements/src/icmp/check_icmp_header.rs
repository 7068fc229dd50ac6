//! `CheckICMPHeader`: whether an ICMP header can be believed.

use crate::ip::transport::{Checker, Checks, Fault, Faults, Protocol, Verdict};
use castanet_engine::prelude::*;
use castanet_engine::wire::checksum::Sum;
use castanet_engine::wire::{Icmp, ip_proto};

/// Checks length and checksum of ICMP packets.
///
/// Errors must quote at least an IPv4 header; timestamps and information
/// messages have one length. What fails leaves by output 1 or is dropped.
/// Fragments pass. Each worker reports its first bad packet.
///
/// ```click
/// in -> c :: CheckICMPHeader -> out
/// > in  1.0.0.1 > 2.0.0.2 icmp type echo "data"
/// > in  1.0.0.1 > 2.0.0.2 udp
/// > in  1.0.0.1 > 2.0.0.2 icmp type unreachable
/// > in  1.0.0.1 > 2.0.0.2 icmp type echo badcheck
/// < out 1.0.0.1 > 2.0.0.2 icmp type echo "data"
/// ~ ICMP header check failed: not ICMP
/// = c.drops 3
/// = c.drops.bad_protocol 1
/// = c.drops.bad_length 1
/// = c.drops.bad_checksum 1
/// = c.drop_details 1\tnot ICMP\n1\tbad packet length\n1\tbad ICMP checksum
/// ```
/// ```click
/// in -> c :: CheckICMPHeader(VERBOSE true) -> out;  c[1] -> bad
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < bad 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "icmp", args = Checks)]
pub struct CheckICMPHeader {
    checker: Checker,
}

impl Build for CheckICMPHeader {
    type Args = Checks;
    fn build(args: Checks, setup: &Setup) -> Result<Self, ArgError> {
        Ok(CheckICMPHeader { checker: Checker::new(&args, setup) })
    }
}

impl Protocol for CheckICMPHeader {
    const NUMBER: u8 = ip_proto::ICMP;
    const NAME: &'static str = "ICMP";
    const WORDS: [&'static str; 3] = ["not ICMP", "bad packet length", "bad ICMP checksum"];

    fn check(_: Sum, segment: &[u8]) -> Result<(), Fault> {
        let (icmp, payload) = Icmp::from_prefix(segment).ok_or(Fault::Length)?;
        if !icmp.length_ok(payload.len()) {
            return Err(Fault::Length);
        }
        if icmp.checksum_ok(payload) { Ok(()) } else { Err(Fault::Checksum) }
    }
}

impl PerPacket for CheckICMPHeader {
    type On = on::Ipv4;
    type Local = Faults<Self>;
    type Fate = Verdict;

    #[inline]
    fn packet(&self, bad: &mut Faults<Self>, ip: Ipv4) -> Verdict {
        self.checker.judge(bad, ip.packet())
    }

    fn after(&self, bad: &mut Faults<Self>, cx: &mut Cx) {
        bad.report(cx);
    }
}
