//! Filters of traces and captures that are written as for tcpdump.

use crate::sys::libpcap::PacketExpression;
use castanet_element::exec::{PacketFilter, first_layer};
use castanet_packet::Packet;
use castanet_wire::pcap::link_type;
use castanet_wire::sketch::Layer;

/// Packets that match an expression of tcpdump (pcap-filter(7)), with an Ethernet header or from the
/// IP header on.
pub struct TcpdumpFilter {
    ethernet: PacketExpression,
    /// None if the expression is about Ethernet: then no packet without its header matches.
    ip: Option<PacketExpression>,
}

impl TcpdumpFilter {
    /// Compiles an expression.
    ///
    /// # Errors
    /// libpcap's message about the expression, or libpcap is not installed.
    pub fn new(expression: &str) -> Result<TcpdumpFilter, String> {
        Ok(TcpdumpFilter {
            ethernet: PacketExpression::new(expression, link_type::ETHERNET as u16)?,
            ip: PacketExpression::new(expression, link_type::RAW as u16).ok(),
        })
    }
}

impl PacketFilter for TcpdumpFilter {
    fn matches(&self, packet: &Packet) -> bool {
        match first_layer(packet) {
            Layer::Network => self.ip.as_ref().is_some_and(|it| it.matches(packet.bytes())),
            _ => self.ethernet.matches(packet.bytes()),
        }
    }
}
