//! Elements that change the bytes or the length of packets or payloads of any protocol.

pub mod align;
pub mod check_align;
pub mod clipboard;
pub mod erase_ip_payload;
pub mod move_data;
pub mod pad;
pub mod random_bit_errors;
pub mod resize;
pub mod search;
pub mod store_data;
pub mod strip;
pub mod strip_to_network_header;
pub mod strip_transport_header;
pub mod truncate;
pub mod truncate_ip_payload;
pub mod unstrip;
pub mod unstrip_anno;
pub mod unstrip_transport_header;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<align::Align>(),
    per_packet::<check_align::CheckAlign>(),
    per_batch::<clipboard::Clipboard>(),
    per_packet::<erase_ip_payload::EraseIPPayload>(),
    per_packet::<move_data::MoveData>(),
    per_batch::<pad::Pad>(),
    per_batch::<random_bit_errors::RandomBitErrors>(),
    per_packet::<resize::Resize>(),
    per_packet::<search::Search>(),
    per_packet::<store_data::StoreData>(),
    per_packet::<strip::Strip>().with_checksums(Checksums::Pass),
    per_packet::<strip_to_network_header::StripToNetworkHeader>(),
    per_packet::<strip_transport_header::StripTransportHeader>(),
    per_packet::<truncate::Truncate>(),
    per_packet::<truncate_ip_payload::TruncateIPPayload>(),
    per_packet::<unstrip::Unstrip>().with_checksums(Checksums::Pass),
    per_packet::<unstrip_anno::UnstripAnno>(),
    per_packet::<unstrip_transport_header::UnstripTransportHeader>(),
];
