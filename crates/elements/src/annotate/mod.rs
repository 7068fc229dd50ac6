//! Elements that set, test or store annotations: paint, packet type, bytes.

pub mod check_paint;
pub mod paint;
pub mod paint2;
pub mod paint_rr;
pub mod paint_switch;
pub mod paint_tee;
pub mod set_anno_byte;
pub mod set_packet_type;
pub mod store_anno;

use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<check_paint::CheckPaint>().with_checksums(Checksums::Pass),
    per_packet::<paint::Paint>().with_checksums(Checksums::Pass),
    per_packet::<paint2::Paint2>(),
    per_packet::<paint_rr::PaintRR>(),
    per_batch::<paint_switch::PaintSwitch>().with_checksums(Checksums::Pass),
    per_batch::<paint_tee::PaintTee>().with_checksums(Checksums::Pass),
    per_packet::<set_anno_byte::SetAnnoByte>(),
    per_packet::<set_packet_type::SetPacketType>().with_checksums(Checksums::Pass),
    per_packet::<store_anno::StoreAnno>(),
];
