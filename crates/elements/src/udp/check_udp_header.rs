//! `CheckUDPHeader`: checks the length and checksum of UDP packets.

use crate::ip::transport::{Fault, TransportCheck, TransportCheckArgs, TransportProtocol};
use castanet_element::prelude::*;
use castanet_element::wire::checksum::Sum;
use castanet_element::wire::{Udp, ip_proto};

/// Checks the length and checksum of UDP packets.
///
/// The UDP length must not exceed the IP packet; a checksum of zero means that
/// there is none. Invalid packets leave by output 1, or are dropped if it is
/// not connected. Fragments pass. Each worker reports its first invalid packet.
///
/// ```click
/// in -> c :: CheckUDPHeader -> out
/// > in  hex 00010203
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data"
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data" nocheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp ulen 99
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp badcheck
/// < out 1.0.0.1:1 > 2.0.0.2:2 udp "data"
/// < out 1.0.0.1:1 > 2.0.0.2:2 udp "data" nocheck
/// ~ c :: CheckUDPHeader: UDP header check failed: not UDP
/// = c.count 2
/// = c.drops 4
/// = c.drops.bad_protocol 2
/// = c.drops.bad_length 1
/// = c.drops.bad_checksum 1
/// = c.drop_details 2\tnot UDP\n1\tbad packet length\n1\tbad UDP checksum
/// ```
/// ```click
/// in -> c :: CheckUDPHeader(VERBOSE true) -> out;  c[1] -> bad
/// > in  hex 00010203
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp
/// < bad hex 00010203
/// < bad 1.0.0.1:1 > 2.0.0.2:2 tcp
/// ```
/// ```click
/// in -> CheckUDPHeader(CHECKSUM false) -> out
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp badcheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp ulen 99
/// < out 1.0.0.1:1 > 2.0.0.2:2 udp badcheck
/// ```
#[derive(Element)]
#[element(room = "udp", args = TransportCheckArgs, by = TransportCheck<CheckUDPHeader>, headers = Pass, gives = "ip")]
pub struct CheckUDPHeader;

impl TransportProtocol for CheckUDPHeader {
    type Args = TransportCheckArgs;
    const NUMBER: u8 = ip_proto::UDP;
    const NAME: &'static str = "UDP";
    const FAULT_TEXTS: [&'static str; 3] = ["not UDP", "bad packet length", "bad UDP checksum"];

    fn check(pseudo: impl FnOnce() -> Sum, segment: &[u8], checksum: bool) -> Result<(), Fault> {
        let (udp, _) = Udp::from_prefix(segment).ok_or(Fault::Length)?;
        let len = usize::from(udp.length());
        let datagram = segment.get(..len).filter(|_| len >= Udp::LEN).ok_or(Fault::Length)?;
        // Header and payload in one go take fewer instructions than one after the other.
        let is_right = !checksum || udp.checksum() == 0 || pseudo().slice(datagram).checksum() == 0;
        if is_right { Ok(()) } else { Err(Fault::Checksum) }
    }

    fn check_start(segment: &[u8]) -> Result<(), Fault> {
        let (udp, _) = Udp::from_prefix(segment).ok_or(Fault::Length)?;
        if usize::from(udp.length()) < Udp::LEN { Err(Fault::Length) } else { Ok(()) }
    }
}
