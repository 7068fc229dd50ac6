//! `FixIPSrc`: sets the IPv4 source address of packets with the Fix IP Source annotation.

use castanet_element::prelude::*;

/// Sets the IPv4 source address of packets with the Fix IP Source annotation.
///
/// The source address of an ICMP error should be that of the interface it
/// leaves by (RFC 1812, 4.3.2.4). `ICMPError` does not know that interface and
/// sets the annotation. This element clears it and updates the checksum.
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
    /// Source address to set.
    #[arg]
    ipaddr: Ipv4Addr,
}

/// Sets the source to `address` if the Fix IP Source annotation is set.
#[inline(always)]
pub(crate) fn fix_source(mut ip: PinnedIpv4, address: Ipv4Addr) {
    if ip.packet().fix_ip_src() {
        ip.set_fix_ip_src(false);
        ip.rewrite_src(address);
    }
}

impl PerPacket for FixIPSrc {
    type On = on::PinnedIpv4;
    type Local = ();
    type Fate = ();
    const CAN_PASS_BURST: bool = true;

    #[inline(always)]
    fn burst_effect(&self, burst: &BurstSummary) -> BurstEffect {
        match burst.is_ipv4() && !burst.has_fix_ip_src() {
            true => BurstEffect::Passes,
            false => BurstEffect::Unknown,
        }
    }

    #[inline(always)]
    fn packet(&self, _: &mut (), ip: PinnedIpv4) {
        fix_source(ip, self.ipaddr);
    }
}
