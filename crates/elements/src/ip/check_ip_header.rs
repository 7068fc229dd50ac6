//! `CheckIPHeader`: checks and marks IPv4 headers.

use super::header_checks::{
    CheckIPHeaderArgs, CheckIPHeaderExit, CheckIPHeaderState, HeaderChecker,
};
use castanet_element::prelude::*;
use castanet_kit::ip_header::PlainCheck;

/// Checks IPv4 headers, marks them, and removes link-layer padding.
///
/// Length, version, header length and checksum must be valid, and the source
/// address must not be a bad source unless the destination is a good
/// destination (RFC 1812, 5.3.7). For a valid packet the element sets the
/// network and transport header annotations, and the destination annotation to
/// the destination address. Invalid packets leave by output 1. If it is not
/// connected, they are dropped, with a counter for each fault. Each worker
/// reports its first invalid packet.
///
/// The older form `CheckIPHeader(BADSRC, OFFSET)` with positional arguments
/// adds 0.0.0.0 and 255.255.255.255 to the list of bad sources.
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
#[element(room = "ip", args = CheckIPHeaderArgs, gives = "ip", headers = Mark(MarkedHeader::Ip))]
pub struct CheckIPHeader {
    checker: HeaderChecker,
}

impl Build for CheckIPHeader {
    type Args = CheckIPHeaderArgs;
    fn build(args: CheckIPHeaderArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(CheckIPHeader { checker: args.checker(true, setup)? })
    }
}

impl PerPacket for CheckIPHeader {
    type On = on::Any;
    type Local = CheckIPHeaderState;
    type Fate = CheckIPHeaderExit;
    const BYTE_ACCESS: ByteAccess = ByteAccess::Reads;
    const COUNTS_HANDLED: bool = true;

    fn byte_length(&self) -> Option<usize> {
        Some(self.checker.byte_length())
    }

    fn handle_bytes(
        &self,
        _: &mut CheckIPHeaderState,
        bytes: &mut BurstBytes,
        fates: &mut [u8],
    ) -> u8 {
        self.checker.check_bytes(bytes, fates)
    }

    fn count_handled(&self, state: &mut CheckIPHeaderState, packets: usize) {
        state.count_handled(packets);
    }

    #[inline(always)]
    fn packet(&self, state: &mut CheckIPHeaderState, packet: &mut Packet) -> CheckIPHeaderExit {
        self.checker.check_packet(state, packet)
    }

    fn native(&self) -> Option<String> {
        self.checker.native()
    }

    fn end_burst(&self, state: &mut CheckIPHeaderState, cx: &mut Cx) {
        state.report(&self.checker.name, cx);
    }
}

impl CheckIPHeader {
    /// Whether it checks headers at the start of packets, and their checksums.
    pub(crate) fn is_at_start(&self) -> bool {
        self.checker.offset == 0 && self.checker.check.plain().checksum
    }

    /// Checks and marks a packet whose header is at its start.
    #[inline(always)]
    pub(crate) fn check_at_start(
        &self,
        state: &mut CheckIPHeaderState,
        packet: &mut Packet,
    ) -> CheckIPHeaderExit {
        let plain = PlainCheck { checksum: true, ..self.checker.check.plain() };
        self.checker.check_packet_at(state, packet, 0, plain)
    }

    /// Checks and marks a packet whose header is at `offset`; `filter` has the bits of bad sources.
    #[inline(always)]
    pub fn check_at(
        &self,
        state: &mut CheckIPHeaderState,
        packet: &mut Packet,
        offset: u16,
        checksum: bool,
        filter: u64,
    ) -> CheckIPHeaderExit {
        self.checker.check_packet_at(state, packet, offset, PlainCheck { checksum, filter })
    }
}
