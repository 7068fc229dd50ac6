//! Sequences of classes that the engine compiles into one node: those that are frequent in routers,
//! firewalls and taps. Arguments that most of these have are constants in them.

use crate::annotate::{paint::Paint, paint_tee::PaintTee};
use crate::classify::classifier::Classifier;
use crate::edit::strip::Strip;
use crate::ether::{drop_broadcasts::DropBroadcasts, ether_encap::EtherEncap};
use crate::ip::{
    check_ip_header::CheckIPHeader, dec_ip_ttl::DecIPTTL, fix_ip_src::FixIPSrc,
    get_ip_address::GetIPAddress, ip_fragmenter::IPFragmenter, ip_gw_options::IPGWOptions,
};
use crate::ip6::{
    check_ip6_header::CheckIP6Header, dec_ip6_hlim::DecIP6HLIM, get_ip6_address::GetIP6Address,
    ip6_fragmenter::IP6Fragmenter,
};
use crate::lookup::{lookup_ip6_route::LookupIP6Route, radix_ip_lookup::RadixIPLookup};
use castanet_element::node::fused::Fusion;
use castanet_element::{fuse, native};

native!(StripEther: packet Strip, |it| it.has_length(14), |element, local, packet| Element::strip(packet, 14));
native!(CheckAtStart: packet CheckIPHeader, |it| it.is_at_start(), |element, local, packet| {
    element.check_at_start(local, packet)
});
native!(TeePaint: batch PaintTee, |it| it.is_of_paint(), |element, local, packet| {
    element.is_not_painted(packet)
});
native!(DecAll: packet DecIPTTL, |it| it.decrements_all(), |element, local, packet| {
    Element::decrement(local, packet)
});

/// The fusions. If several match as many elements, the first one applies.
pub static FUSIONS: &[Fusion] = &[
    // A router's way from a device by the routing table to a device.
    fuse!(
        packet Classifier, packet Strip = StripEther, packet CheckIPHeader = CheckAtStart;
        RadixIPLookup =>
        packet DropBroadcasts, batch PaintTee = TeePaint, packet IPGWOptions, packet FixIPSrc,
        packet DecIPTTL = DecAll, batch IPFragmenter, packet EtherEncap
    ),
    fuse!(
        maybe Classifier, maybe Paint, maybe Strip = StripEther,
        packet CheckIPHeader = CheckAtStart, maybe GetIPAddress;
        RadixIPLookup =>
        maybe DropBroadcasts, batch PaintTee = TeePaint, maybe IPGWOptions, maybe FixIPSrc,
        packet DecIPTTL = DecAll, batch IPFragmenter, maybe EtherEncap
    ),
    // From a device to the routing table.
    fuse!(
        packet Classifier, packet Strip = StripEther, packet CheckIPHeader = CheckAtStart;
        RadixIPLookup
    ),
    fuse!(
        maybe Classifier, maybe Paint, maybe Strip = StripEther,
        packet CheckIPHeader = CheckAtStart, maybe GetIPAddress;
        RadixIPLookup
    ),
    fuse!(packet Strip = StripEther, packet CheckIPHeader = CheckAtStart),
    fuse!(packet Classifier, packet Strip = StripEther, packet CheckIPHeader = CheckAtStart),
    fuse!(maybe Classifier, maybe Paint, packet Strip, packet CheckIPHeader, maybe GetIPAddress),
    // From the routing table to a device.
    fuse!(
        packet DropBroadcasts, batch PaintTee = TeePaint, packet IPGWOptions, packet FixIPSrc,
        packet DecIPTTL = DecAll, batch IPFragmenter, packet EtherEncap
    ),
    fuse!(
        maybe DropBroadcasts, batch PaintTee, maybe IPGWOptions, maybe FixIPSrc, packet DecIPTTL,
        batch IPFragmenter
    ),
    fuse!(maybe DropBroadcasts, maybe IPGWOptions, maybe FixIPSrc, packet DecIPTTL, maybe EtherEncap),
    // The same of an IPv6 router.
    fuse!(
        maybe Classifier, maybe Paint, maybe Strip = StripEther, packet CheckIP6Header,
        maybe GetIP6Address;
        LookupIP6Route =>
        packet DecIP6HLIM, batch IP6Fragmenter, maybe EtherEncap
    ),
    fuse!(
        maybe Classifier, maybe Paint, maybe Strip = StripEther, packet CheckIP6Header,
        maybe GetIP6Address
    ),
    fuse!(packet DecIP6HLIM, batch IP6Fragmenter, maybe EtherEncap),
];
