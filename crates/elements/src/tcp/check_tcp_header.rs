//! `CheckTCPHeader`: checks the header length and checksum of TCP packets.

use crate::ip::transport::{Fault, TransportCheck, TransportCheckArgs, TransportProtocol};
use castanet_element::prelude::*;
use castanet_element::wire::checksum::Sum;
use castanet_element::wire::{Tcp, ip_proto};

/// Checks the header length and checksum of TCP packets.
///
/// Invalid packets leave by output 1, or are dropped if it is not connected.
/// Fragments pass. Each worker reports its first invalid packet.
///
/// ```click
/// in -> c :: CheckTCPHeader -> out
/// > in  hex 00010203
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp "data"
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp off 60
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp badcheck
/// < out 1.0.0.1:1 > 2.0.0.2:2 tcp "data"
/// ~ c :: CheckTCPHeader: TCP header check failed: not TCP
/// = c.count 1
/// = c.drops 4
/// = c.drops.bad_protocol 2
/// = c.drops.bad_length 1
/// = c.drops.bad_checksum 1
/// = c.drop_details 2\tnot TCP\n1\tbad packet length\n1\tbad TCP checksum
/// ```
/// ```click
/// in -> c :: CheckTCPHeader(VERBOSE true) -> out;  c[1] -> bad
/// > in  hex 00010203
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp
/// < bad hex 00010203
/// < bad 1.0.0.1:1 > 2.0.0.2:2 udp
/// ```
/// ```click
/// in -> CheckTCPHeader(CHECKSUM false) -> out
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp badcheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp off 60
/// < out 1.0.0.1:1 > 2.0.0.2:2 tcp badcheck
/// ```
#[derive(Element)]
#[element(room = "tcp", args = TransportCheckArgs, by = TransportCheck<CheckTCPHeader>, headers = Pass, gives = "ip")]
pub struct CheckTCPHeader;

impl TransportProtocol for CheckTCPHeader {
    type Args = TransportCheckArgs;
    const NUMBER: u8 = ip_proto::TCP;
    const NAME: &'static str = "TCP";
    const FAULT_TEXTS: [&'static str; 3] = ["not TCP", "bad packet length", "bad TCP checksum"];

    fn check(pseudo: impl FnOnce() -> Sum, segment: &[u8], checksum: bool) -> Result<(), Fault> {
        Self::check_start(segment)?;
        // Header and data in one go take fewer instructions than one after the other.
        if !checksum || pseudo().slice(segment).checksum() == 0 {
            Ok(())
        } else {
            Err(Fault::Checksum)
        }
    }

    #[inline]
    fn check_start(segment: &[u8]) -> Result<(), Fault> {
        let (tcp, rest) = Tcp::from_prefix(segment).ok_or(Fault::Length)?;
        tcp.split_options(rest).ok_or(Fault::Length)?;
        Ok(())
    }
}
