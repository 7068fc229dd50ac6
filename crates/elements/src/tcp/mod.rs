//! Elements that check TCP segments or change their headers.

pub mod check_tcp_header;
pub mod set_tcp_checksum;
pub mod strip_tcp_header;
pub mod tcp_reflector;
pub mod unstrip_tcp_header;

use crate::ip::transport::TransportCheck;
use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_packet::<TransportCheck<check_tcp_header::CheckTCPHeader>>(),
    per_packet::<set_tcp_checksum::SetTCPChecksum>(),
    per_packet::<strip_tcp_header::StripTCPHeader>(),
    per_batch::<tcp_reflector::TCPReflector>(),
    per_packet::<unstrip_tcp_header::UnstripTCPHeader>(),
];
