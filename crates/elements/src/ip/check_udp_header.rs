//! `CheckUDPHeader`: whether a UDP header can be believed.

use crate::transport::{Checker, Checks, Fault, Faults, Verdict, segment};
use castanet_engine::prelude::*;
use castanet_engine::wire::Udp;
use castanet_engine::wire::ip_proto;

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
#[element(args = Checks)]
pub struct CheckUDPHeader {
    checker: Checker,
}

impl Build for CheckUDPHeader {
    type Args = Checks;
    fn build(args: Checks, setup: &Setup) -> Result<Self, ArgError> {
        Ok(CheckUDPHeader { checker: Checker::new(&args, setup) })
    }
}

/// What one worker has found wrong.
#[derive(Default, Local)]
#[local(methods)]
pub struct Tally {
    bad: Faults,
}

/// Click's words for the faults.
const WORDS: [&str; 3] = ["not UDP", "bad packet length", "bad UDP checksum"];

#[handlers]
impl Tally {
    /// Bad packets.
    #[read]
    fn drops(&self) -> u64 {
        self.bad.total
    }
    /// Bad packets by fault.
    #[read]
    fn drop_details(&self) -> Value {
        self.bad.details(WORDS)
    }
}

fn check(packet: &Packet) -> Result<(), Fault> {
    let ip = packet.ipv4_header().filter(|ip| ip.protocol() == ip_proto::UDP);
    if ip.ok_or(Fault::Protocol)?.is_fragment() {
        return Ok(()); // the checksum is over what is not here
    }
    let (pseudo, bytes) = segment(packet).ok_or(Fault::Length)?;
    let (udp, _) = Udp::from_prefix(bytes).ok_or(Fault::Length)?;
    let payload = bytes.get(Udp::LEN..usize::from(udp.length())).ok_or(Fault::Length)?;
    if udp.checksum_ok(pseudo, payload) { Ok(()) } else { Err(Fault::Checksum) }
}

impl PerPacket for CheckUDPHeader {
    type On = on::Ipv4;
    type Local = Tally;
    type Fate = Verdict;

    #[inline]
    fn packet(&self, tally: &mut Tally, ip: Ipv4) -> Verdict {
        self.checker.judge(&mut tally.bad, check(ip.packet()))
    }

    fn after(&self, tally: &mut Tally, cx: &mut Cx) {
        tally.bad.report("UDP", WORDS, cx);
    }
}
