//! `CheckUDPHeader`: whether a UDP header can be believed.

use crate::ip::transport::{Checker, Checks, Fault, Faults, Protocol, Verdict};
use castanet_engine::prelude::*;
use castanet_engine::wire::checksum::Sum;
use castanet_engine::wire::{Udp, ip_proto};

/// Checks length and checksum of UDP packets.
///
/// The length must fit the IP packet; a checksum of zero is none. What fails
/// leaves by output 1 or is dropped. Fragments pass. Each worker reports its
/// first bad packet.
///
/// ```click
/// in -> c :: CheckUDPHeader -> out
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data"
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data" nocheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp ulen 99
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp badcheck
/// < out 1.0.0.1:1 > 2.0.0.2:2 udp "data"
/// < out 1.0.0.1:1 > 2.0.0.2:2 udp "data" nocheck
/// ~ UDP header check failed: not UDP
/// = c.drops 3
/// = c.drops.bad_protocol 1
/// = c.drops.bad_length 1
/// = c.drops.bad_checksum 1
/// = c.drop_details 1\tnot UDP\n1\tbad packet length\n1\tbad UDP checksum
/// ```
/// ```click
/// in -> c :: CheckUDPHeader(VERBOSE true) -> out;  c[1] -> bad
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp
/// < bad 1.0.0.1:1 > 2.0.0.2:2 tcp
/// ```
#[derive(Element)]
#[element(room = "udp", args = Checks)]
pub struct CheckUDPHeader {
    checker: Checker,
}

impl Build for CheckUDPHeader {
    type Args = Checks;
    fn build(args: Checks, setup: &Setup) -> Result<Self, ArgError> {
        Ok(CheckUDPHeader { checker: Checker::new(&args, setup) })
    }
}

impl Protocol for CheckUDPHeader {
    const NUMBER: u8 = ip_proto::UDP;
    const NAME: &'static str = "UDP";
    const WORDS: [&'static str; 3] = ["not UDP", "bad packet length", "bad UDP checksum"];

    fn check(pseudo: Sum, segment: &[u8]) -> Result<(), Fault> {
        let (udp, _) = Udp::from_prefix(segment).ok_or(Fault::Length)?;
        let payload = segment.get(Udp::LEN..usize::from(udp.length())).ok_or(Fault::Length)?;
        if udp.checksum_ok(pseudo, payload) { Ok(()) } else { Err(Fault::Checksum) }
    }
}

impl PerPacket for CheckUDPHeader {
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
