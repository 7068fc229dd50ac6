//! Sequences of classes that the engine compiles into one node: those that are frequent in routers,
//! firewalls and taps.
//! and taps have in a row.

use crate::annotate::{paint::Paint, paint_tee::PaintTee};
use crate::classify::classifier::Classifier;
use crate::edit::strip::Strip;
use crate::ether::{drop_broadcasts::DropBroadcasts, ether_encap::EtherEncap};
use crate::ip::{
    check_ip_header::CheckIPHeader, dec_ip_ttl::DecIPTTL, fix_ip_src::FixIPSrc,
    get_ip_address::GetIPAddress, ip_fragmenter::IPFragmenter, ip_gw_options::IPGWOptions,
};
use crate::lookup::radix_ip_lookup::RadixIPLookup;
use castanet_element::fuse;
use castanet_element::node::fused::Fusion;

/// The fusions. If several match sequences of the same length, the first one applies.
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
