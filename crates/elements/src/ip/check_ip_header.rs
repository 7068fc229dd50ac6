//! `CheckIPHeader`: whether an IPv4 header can be believed.

use super::header_checks::{Checker, Checks, Tally, Verdict};
use castanet_engine::prelude::*;

/// Checks IPv4 headers, marks them, and cuts off the padding of the link.
///
/// Length, version, header length and checksum must be right, and the source
/// must not be one of the bad ones unless the destination is a good one
/// (RFC 1812, 5.3.7). What passes has its network and transport headers
/// marked and its destination annotation set to where the header says. What
/// does not leaves by output 1 or, where that is not connected, is dropped by
/// the name of its fault. Each worker reports the first bad packet.
///
/// Of the older form `CheckIPHeader(BADSRC OFFSET)` with places, the list
/// stands for itself and 0.0.0.0 and 255.255.255.255.
///
/// ```click
/// in -> c :: CheckIPHeader(14, INTERFACES 18.26.4.9/24) -> out;  c[1] -> bad
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp ttl 9 pad 18
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 18.26.4.255 > 2.0.0.2 udp
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 18.26.4.255 > 18.26.4.9 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp ttl 9 ; network 14 dst 2.0.0.2
/// < bad eth 0:0:0:0:0:1 > 0:0:0:0:0:2 18.26.4.255 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 18.26.4.255 > 18.26.4.9 udp
/// ~ c: IP header check failed: bad source address
/// = c.count 2
/// = c.drops 1
/// ```
/// ```click
/// in -> c :: CheckIPHeader(BADSRC 1.0.0.255, VERBOSE true) -> out
/// > in hex 45
/// > in 1::1 > 2::2 udp
/// > in 1.0.0.1 > 2.0.0.2 udp hl 4
/// > in 1.0.0.1 > 2.0.0.2 udp iplen 99
/// > in 1.0.0.1 > 2.0.0.2 udp badsum
/// > in 1.0.0.255 > 2.0.0.2 udp
/// = c.drops.tiny_packet 1
/// = c.drops.bad_version 1
/// = c.drops.bad_header_length 1
/// = c.drops.bad_length 1
/// = c.drops.bad_checksum 1
/// = c.drops.bad_source 1
/// = c.drop_details 1\ttiny packet\n1\tbad IP version\n1\tbad IP header length\n1\tbad IP length\n1\tbad IP checksum\n1\tbad source address
/// ```
#[derive(Element)]
#[element(room = "ip", args = Checks, gives = "ip")]
pub struct CheckIPHeader {
    checker: Checker,
}

impl Build for CheckIPHeader {
    type Args = Checks;
    fn build(args: Checks, setup: &Setup) -> Result<Self, ArgError> {
        Ok(CheckIPHeader { checker: args.checker(true, setup)? })
    }
}

impl PerPacket for CheckIPHeader {
    type On = on::Any;
    type Local = Tally;
    type Fate = Verdict;

    #[inline(always)]
    fn packet(&self, tally: &mut Tally, packet: &mut Packet) -> Verdict {
        self.checker.judge(tally, packet)
    }

    fn after(&self, tally: &mut Tally, cx: &mut Cx) {
        tally.report(&self.checker.name, cx);
    }
}
