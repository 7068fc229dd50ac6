//! Elements that read or write the TCP header.

pub mod ftp_port_mapper;
pub mod set_tcp_checksum;
pub mod strip_tcp_header;

use castanet_engine::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    per_batch::<ftp_port_mapper::FTPPortMapper>(),
    per_packet::<set_tcp_checksum::SetTCPChecksum>(),
    per_packet::<strip_tcp_header::StripTCPHeader>(),
];
