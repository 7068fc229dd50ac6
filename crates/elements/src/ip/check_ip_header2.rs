//! `CheckIPHeader2`: checks and marks IPv4 headers without their checksums.

use super::header_checks::{
    CheckIPHeaderArgs, CheckIPHeaderExit, CheckIPHeaderState, HeaderChecker,
};
use castanet_element::prelude::*;
use castanet_kit::ip_header::PlainCheck;

/// Checks IPv4 headers as `CheckIPHeader` does, but not their checksums.
///
/// The element suits packets whose checksum is known to be correct, or is
/// computed later.
///
/// ```click
/// in -> c :: CheckIPHeader2(BADSRC 1.0.0.255) -> out;  c[1] -> bad
/// > in  1.0.0.1 > 2.0.0.2 udp badsum
/// > in  1.0.0.255 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp badsum
/// < bad 1.0.0.255 > 2.0.0.2 udp
/// ```
/// ```click
/// in -> c :: CheckIPHeader2(1.0.0.255, 0, CHECKSUM true) -> out
/// > in hex 45
/// > in 1::1 > 2::2 udp
/// > in 1.0.0.1 > 2.0.0.2 udp hl 4
/// > in 1.0.0.1 > 2.0.0.2 udp iplen 99
/// > in 1.0.0.1 > 2.0.0.2 udp badsum
/// > in 255.255.255.255 > 2.0.0.2 udp
/// = c.drops 6
/// = c.drops.tiny_packet 1
/// = c.drops.bad_version 1
/// = c.drops.bad_header_length 1
/// = c.drops.bad_length 1
/// = c.drops.bad_checksum 1
/// = c.drops.bad_source 1
/// ```
#[derive(Element)]
#[element(room = "ip", args = CheckIPHeaderArgs, gives = "ip", headers = Mark(MarkedHeader::Ip))]
pub struct CheckIPHeader2 {
    checker: HeaderChecker,
}

impl Build for CheckIPHeader2 {
    type Args = CheckIPHeaderArgs;
    fn build(args: CheckIPHeaderArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(CheckIPHeader2 { checker: args.checker(false, setup)? })
    }
}

impl PerPacket for CheckIPHeader2 {
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

    #[inline]
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

impl CheckIPHeader2 {
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
