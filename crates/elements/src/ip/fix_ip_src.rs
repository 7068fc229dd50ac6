//! `FixIPSrc`: the sender's address where others left it open.

use castanet_engine::prelude::*;

/// Puts this router's address into packets whose annotation asks for it.
///
/// ICMP errors should come from the interface that they leave by (RFC 1812,
/// 4.3.2.4); `ICMPError` does not know which that is and sets the annotation.
///
/// ```click
/// in -> FixIPSrc(9.9.9.9) -> out
/// > in  1.0.0.1 > 2.0.0.2 proto 1
/// > in  1.0.0.1 > 2.0.0.2 proto 1 ; fixipsrc 1
/// < out 1.0.0.1 > 2.0.0.2 proto 1
/// < out 9.9.9.9 > 2.0.0.2 proto 1 ; fixipsrc 0
/// ```
#[derive(Element)]
#[element(room = "ip")]
pub struct FixIPSrc {
    /// The address to put in.
    #[arg]
    ipaddr: Ipv4Addr,
}

/// Puts `address` in if the annotation asks for it.
#[inline(always)]
pub(crate) fn fix(mut ip: PinnedIpv4, address: Ipv4Addr) {
    if ip.packet().fix_ip_src() {
        ip.set_fix_ip_src(false);
        ip.rewrite_src(address);
    }
}

impl PerPacket for FixIPSrc {
    type On = on::PinnedIpv4;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), ip: PinnedIpv4) {
        fix(ip, self.ipaddr);
    }
}
