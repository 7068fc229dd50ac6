//! `CheckIPHeader2`: whether an IPv4 header can be believed, checksum aside.

use super::header_checks::{Checker, Checks, Tally, Verdict};
use castanet_engine::prelude::*;

/// Checks IPv4 headers as `CheckIPHeader` does, but not their checksums.
///
/// For packets whose checksum is known to be right, or will be set anew.
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
#[element(room = "ip", args = Checks, gives = "ip")]
pub struct CheckIPHeader2 {
    checker: Checker,
}

impl Build for CheckIPHeader2 {
    type Args = Checks;
    fn build(args: Checks, setup: &Setup) -> Result<Self, ArgError> {
        Ok(CheckIPHeader2 { checker: args.checker(false, setup)? })
    }
}

impl PerPacket for CheckIPHeader2 {
    type On = on::Any;
    type Local = Tally;
    type Fate = Verdict;

    #[inline]
    fn packet(&self, tally: &mut Tally, packet: &mut Packet) -> Verdict {
        self.checker.judge(tally, packet)
    }

    fn after(&self, tally: &mut Tally, cx: &mut Cx) {
        tally.report(&self.checker.name, cx);
    }
}
