//! `CheckICMPHeader`: whether an ICMP header can be believed.

use crate::transport::{Checker, Checks, Fault, Faults, Verdict, segment};
use castanet_engine::prelude::*;
use castanet_engine::wire::Icmp;
use castanet_engine::wire::ip_proto;

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
#[element(args = Checks)]
pub struct CheckICMPHeader {
    checker: Checker,
}

impl Build for CheckICMPHeader {
    type Args = Checks;
    fn build(args: Checks, setup: &Setup) -> Result<Self, ArgError> {
        Ok(CheckICMPHeader { checker: Checker::new(&args, setup) })
    }
}

/// What one worker has found wrong.
#[derive(Default, Local)]
#[local(methods)]
pub struct Tally {
    bad: Faults,
}

/// Click's words for the faults.
const WORDS: [&str; 3] = ["not ICMP", "bad packet length", "bad ICMP checksum"];

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
    let ip = packet.ipv4_header().filter(|ip| ip.protocol() == ip_proto::ICMP);
    if ip.ok_or(Fault::Protocol)?.is_fragment() {
        return Ok(()); // the checksum is over what is not here
    }
    let (_, bytes) = segment(packet).ok_or(Fault::Length)?;
    let (icmp, payload) = Icmp::from_prefix(bytes).ok_or(Fault::Length)?;
    if !icmp.length_ok(payload.len()) {
        return Err(Fault::Length);
    }
    if icmp.checksum_ok(payload) { Ok(()) } else { Err(Fault::Checksum) }
}

impl PerPacket for CheckICMPHeader {
    type On = on::Ipv4;
    type Local = Tally;
    type Fate = Verdict;

    #[inline]
    fn packet(&self, tally: &mut Tally, ip: Ipv4) -> Verdict {
        self.checker.judge(&mut tally.bad, check(ip.packet()))
    }

    fn after(&self, tally: &mut Tally, cx: &mut Cx) {
        tally.bad.report("ICMP", WORDS, cx);
    }
}
