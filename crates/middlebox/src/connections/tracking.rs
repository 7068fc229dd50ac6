//! The states of packets by their connections, for rules that test them.

use super::mapping::Direction;
use super::packet_connection::{LookupResult, PacketConnection};
use super::table::Connections;
use crate::ct_state::{CtInfo, CtState};
use crate::headers::Headers;
use castanet_wire::tcp::flag;

impl Connections {
    /// The state of a packet for which a lookup has that result.
    pub(crate) fn ct_info(&self, result: &LookupResult, bytes: &[u8], headers: &Headers) -> CtInfo {
        match result {
            LookupResult::Connection(connection) => self.ct_info_of(connection),
            _ => CtInfo::of_no_connection(bytes, headers),
        }
    }

    /// Whether a packet is a SYN of a TCP connection that has ended.
    pub(crate) fn begins_anew(
        &self,
        connection: &PacketConnection,
        bytes: &[u8],
        headers: &Headers,
    ) -> bool {
        let flags = headers.tcp_flags(bytes) & (flag::SYN | flag::ACK | flag::RST | flag::FIN);
        flags == flag::SYN && connection.quoted.is_none() && self.state(connection).is_over()
    }

    /// The state of a packet of a connection.
    pub(crate) fn ct_info_of(&self, connection: &PacketConnection) -> CtInfo {
        let is_answered =
            || connection.direction == Direction::Reply || self.state(connection).has_reply();
        let state = match connection.quoted {
            Some(_) => CtState::Related,
            None if is_answered() => CtState::Established,
            None => CtState::New,
        };
        CtInfo { state, is_of_connection: true }
    }
}
