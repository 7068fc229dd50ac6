//! Which classes are compiled into one pass: those that routers, firewalls
//! and taps have in a row.

use crate::basic::{
    check_ip_header::CheckIPHeader, classifier::Classifier, drop_broadcasts::DropBroadcasts,
    ether_encap::EtherEncap, get_ip_address::GetIPAddress, paint::Paint, paint_tee::PaintTee,
    radix_ip_lookup::RadixIPLookup, strip::Strip,
};
use crate::ip::{
    dec_ip_ttl::DecIPTTL, fix_ip_src::FixIPSrc, ip_fragmenter::IPFragmenter,
    ip_gw_options::IPGWOptions,
};
use castanet_engine::fuse;
use castanet_engine::node::fused::Fusion;

/// The passes. Where several make rows of the same length, the first counts.
pub static FUSIONS: &[Fusion] = &[
    // From a device to the routing table.
    fuse!(packet Classifier, packet Strip, packet CheckIPHeader; RadixIPLookup),
    fuse!(
        maybe Classifier, maybe Paint, maybe Strip, packet CheckIPHeader, maybe GetIPAddress;
        RadixIPLookup
    ),
    fuse!(maybe Classifier, maybe Paint, packet Strip, packet CheckIPHeader, maybe GetIPAddress),
    // From the routing table to a device.
    fuse!(
        packet DropBroadcasts, batch PaintTee, packet IPGWOptions, packet FixIPSrc,
        packet DecIPTTL, batch IPFragmenter, packet EtherEncap
    ),
    fuse!(
        maybe DropBroadcasts, batch PaintTee, maybe IPGWOptions, maybe FixIPSrc, packet DecIPTTL,
        batch IPFragmenter
    ),
    fuse!(maybe DropBroadcasts, maybe IPGWOptions, maybe FixIPSrc, packet DecIPTTL, maybe EtherEncap),
];
