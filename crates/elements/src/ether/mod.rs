//! Elements that read, write or check Ethernet frames.

mod address_offset;
pub mod check_crc32;
pub mod drop_broadcasts;
pub mod ensure_ether;
pub mod ether_encap;
pub mod ether_mirror;
pub mod ether_rewrite;
pub mod ether_span_tree;
mod ether_span_tree_args;
mod ether_span_tree_state;
pub mod ether_switch;
mod ether_switch_state;
pub mod get_ether_address;
pub mod host_ether_filter;
pub mod mark_mac_header;
mod port_forwarding;
pub mod set_crc32;
pub mod set_ether_address;
pub mod store_ether_address;
pub mod truncate_fcs;

use castanet_element::class::*;
use castanet_element::prelude::*;
use castanet_element::wire::Ethernet;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<check_crc32::CheckCRC32>(),
    per_packet::<drop_broadcasts::DropBroadcasts>(),
    per_packet::<ensure_ether::EnsureEther>().with_checksums(Checksums::Pass),
    per_packet::<ether_encap::EtherEncap>().with_checksums(Checksums::Pass),
    per_packet::<ether_mirror::EtherMirror>().with_checksums(Checksums::Pass),
    per_packet::<ether_rewrite::EtherRewrite>().with_checksums(Checksums::Pass),
    per_batch::<ether_span_tree::EtherSpanTree>(),
    per_batch::<ether_switch::EtherSwitch>(),
    per_packet::<get_ether_address::GetEtherAddress>().with_checksums(Checksums::Pass),
    per_packet::<host_ether_filter::HostEtherFilter>().with_checksums(Checksums::Pass),
    per_packet::<mark_mac_header::MarkMACHeader>().with_checksums(Checksums::Pass),
    per_packet::<set_crc32::SetCRC32>(),
    per_packet::<set_ether_address::SetEtherAddress>().with_checksums(Checksums::Pass),
    per_packet::<store_ether_address::StoreEtherAddress>(),
    per_packet::<truncate_fcs::TruncateFCS>(),
];

/// Has `change` change the Ethernet headers of packets without descriptors.
#[inline(always)]
fn for_each_header(bytes: &mut BurstBytes, change: impl Fn(&mut Ethernet)) {
    for bytes in bytes.iter_mut() {
        if let Some((header, _)) = Ethernet::from_prefix_mut(bytes) {
            change(header);
        }
    }
}
