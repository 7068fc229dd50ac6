//! Elements that check TCP segments, change their headers, or make connections.

pub mod buffer_converter;
pub mod check_tcp_header;
pub mod copy_flow_id;
pub mod copy_tcp_seq;
mod segment;
pub mod set_tcp_checksum;
pub mod strip_tcp_header;
pub mod tcp_ack;
pub mod tcp_buffer;
pub mod tcp_conn;
mod tcp_conn_state;
pub mod tcp_demux;
pub mod tcp_reflector;
pub mod toy_tcp;
mod toy_tcp_state;
pub mod unstrip_tcp_header;
pub mod web_gen;
mod web_gen_state;

use crate::ip::transport::TransportCheck;
use castanet_element::class::*;

/// The classes of this room.
pub static CLASSES: &[Class] = &[
    duplex::<buffer_converter::BufferConverter>(),
    per_packet::<TransportCheck<check_tcp_header::CheckTCPHeader>>().acts_on("ip"),
    per_batch::<copy_flow_id::CopyFlowID>(),
    per_batch::<copy_tcp_seq::CopyTCPSeq>(),
    per_packet::<set_tcp_checksum::SetTCPChecksum>(),
    per_packet::<strip_tcp_header::StripTCPHeader>(),
    per_batch::<tcp_ack::TCPAck>().with_partner(Partner::Downstream("TCPBuffer")),
    store::<tcp_buffer::TCPBuffer>(),
    duplex::<tcp_conn::TCPConn>().with_partner(Partner::Upstream("TCPDemux")),
    per_batch::<tcp_demux::TCPDemux>(),
    per_batch::<tcp_reflector::TCPReflector>(),
    per_batch::<toy_tcp::ToyTCP>(),
    per_packet::<unstrip_tcp_header::UnstripTCPHeader>(),
    per_batch::<web_gen::WebGen>(),
];
