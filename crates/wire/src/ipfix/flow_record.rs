//! Records of flows and of connections, with their templates.

use super::element::{
    Element::{
        BiflowDirection, DestinationIpv4Address, DestinationIpv6Address, DestinationTransportPort,
        FlowEndMilliseconds, FlowEndReason, FlowStartMilliseconds, IcmpTypeCodeIpv4,
        IcmpTypeCodeIpv6, IngressInterface, IpClassOfService, OctetDeltaCount, PacketDeltaCount,
        PostNaptDestinationTransportPort, PostNaptSourceTransportPort,
        PostNatDestinationIpv4Address, PostNatDestinationIpv6Address, PostNatSourceIpv4Address,
        PostNatSourceIpv6Address, ProtocolIdentifier, SourceIpv4Address, SourceIpv6Address,
        SourceTransportPort, TcpControlBits, VlanId,
    },
    Field, FieldValue,
};
use super::message::Template;
use crate::ip_proto;
use std::net::IpAddr;

/// The cause of the end of a flow, as the element flowEndReason has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EndReason {
    /// No packet came for the inactive timeout.
    IdleTimeout = 1,
    /// The flow lasts longer than the active timeout, and may go on.
    ActiveTimeout = 2,
    /// TCP has closed or reset the connection.
    EndOfFlow = 3,
    /// Metering has stopped, or an operator has removed the flow.
    ForcedEnd = 4,
    /// Another flow needed the room.
    LackOfResources = 5,
}

/// The counts of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Bytes of the IP packets, with their headers.
    pub octets: u64,
    /// Packets.
    pub packets: u64,
    /// TCP flags of all packets.
    pub tcp_flags: u8,
}

/// The addresses and ports of a connection after translation, in its original direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Translation {
    /// The source.
    pub src: (IpAddr, u16),
    /// The destination, of the same family.
    pub dst: (IpAddr, u16),
}

/// A flow in one direction, or, with counts of the reverse direction, a connection (RFC 5103).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRecord {
    /// The source's address and port.
    pub src: (IpAddr, u16),
    /// The destination's address and port, of the same family. The type and the code of ICMP, a
    /// byte each, are in place of the port of a flow in one direction.
    pub dst: (IpAddr, u16),
    /// The protocol behind the IP header and extension headers.
    pub protocol: u8,
    /// Type of service or traffic class of the first packet.
    pub class: u8,
    /// Identifier of the VLAN; 0 without one.
    pub vlan: u16,
    /// Index of the interface by which the packets came in; 0 if unknown.
    pub ingress: u32,
    /// Time of the first packet, in milliseconds since 1970.
    pub start: u64,
    /// Time of the last packet, in milliseconds since 1970.
    pub end: u64,
    /// The cause of the record.
    pub reason: EndReason,
    /// The counts.
    pub counts: Counts,
    /// The counts of the reverse direction, for a connection.
    pub reverse: Option<Counts>,
    /// The translation of a connection, if it is translated.
    pub translation: Option<Translation>,
}

/// The initiator of a connection is the source of its record: a value of biflowDirection.
const INITIATOR: u64 = 1;

/// A template of these elements of the reverse direction, these elements, and those that all flow
/// records have.
macro_rules! template {
    ($id:literal: $($element:ident)*; reverse $($reverse:ident)*) => {
        Template {
            id: $id,
            scope_count: 0,
            fields: &[
                // First, for collectors that know no reverse direction: there the last value counts.
                $(Field::reverse($reverse),)*
                $(Field::of($element),)*
                Field::of(ProtocolIdentifier),
                Field::of(FlowStartMilliseconds),
                Field::of(FlowEndMilliseconds),
                Field::of(OctetDeltaCount),
                Field::of(PacketDeltaCount),
                Field::of(FlowEndReason),
            ],
        }
    };
}

/// The templates of flows in one direction: of IPv4 and IPv6, then of ICMP over either.
pub const FLOW_TEMPLATES: &[Template] = &[
    template!(256:
        SourceIpv4Address DestinationIpv4Address SourceTransportPort DestinationTransportPort
        TcpControlBits IpClassOfService VlanId IngressInterface; reverse),
    template!(257:
        SourceIpv6Address DestinationIpv6Address SourceTransportPort DestinationTransportPort
        TcpControlBits IpClassOfService VlanId IngressInterface; reverse),
    template!(258:
        SourceIpv4Address DestinationIpv4Address IcmpTypeCodeIpv4
        IpClassOfService VlanId IngressInterface; reverse),
    template!(259:
        SourceIpv6Address DestinationIpv6Address IcmpTypeCodeIpv6
        IpClassOfService VlanId IngressInterface; reverse),
];

/// The templates of connections: of IPv4 and IPv6, then of translated ones of either.
pub const CONNECTION_TEMPLATES: &[Template] = &[
    template!(260:
        SourceIpv4Address DestinationIpv4Address SourceTransportPort DestinationTransportPort
        TcpControlBits BiflowDirection;
        reverse OctetDeltaCount PacketDeltaCount TcpControlBits),
    template!(261:
        SourceIpv6Address DestinationIpv6Address SourceTransportPort DestinationTransportPort
        TcpControlBits BiflowDirection;
        reverse OctetDeltaCount PacketDeltaCount TcpControlBits),
    template!(262:
        SourceIpv4Address DestinationIpv4Address SourceTransportPort DestinationTransportPort
        PostNatSourceIpv4Address PostNatDestinationIpv4Address
        PostNaptSourceTransportPort PostNaptDestinationTransportPort
        TcpControlBits BiflowDirection;
        reverse OctetDeltaCount PacketDeltaCount TcpControlBits),
    template!(263:
        SourceIpv6Address DestinationIpv6Address SourceTransportPort DestinationTransportPort
        PostNatSourceIpv6Address PostNatDestinationIpv6Address
        PostNaptSourceTransportPort PostNaptDestinationTransportPort
        TcpControlBits BiflowDirection;
        reverse OctetDeltaCount PacketDeltaCount TcpControlBits),
];

impl FlowRecord {
    /// The template of the record.
    pub fn template(&self) -> &'static Template {
        let is_ip6 = usize::from(self.src.0.is_ipv6());
        match (self.reverse, self.translation) {
            (None, _) if self.is_icmp() => &FLOW_TEMPLATES[2 + is_ip6],
            (None, _) => &FLOW_TEMPLATES[is_ip6],
            (Some(_), None) => &CONNECTION_TEMPLATES[is_ip6],
            (Some(_), Some(_)) => &CONNECTION_TEMPLATES[2 + is_ip6],
        }
    }

    fn is_icmp(&self) -> bool {
        let icmp = if self.src.0.is_ipv6() { ip_proto::ICMPV6 } else { ip_proto::ICMP };
        self.protocol == icmp
    }

    /// The value of a field of the record's template.
    pub fn value(&self, Field { element, is_reverse }: Field) -> FieldValue {
        let counts = if is_reverse { self.reverse.unwrap_or_default() } else { self.counts };
        let post = self.translation.unwrap_or(Translation { src: self.src, dst: self.dst });
        let address = FieldValue::Address;
        FieldValue::Unsigned(match element {
            SourceIpv4Address | SourceIpv6Address => return address(self.src.0),
            DestinationIpv4Address | DestinationIpv6Address => return address(self.dst.0),
            PostNatSourceIpv4Address | PostNatSourceIpv6Address => return address(post.src.0),
            PostNatDestinationIpv4Address | PostNatDestinationIpv6Address => {
                return address(post.dst.0);
            }
            SourceTransportPort => self.src.1.into(),
            DestinationTransportPort | IcmpTypeCodeIpv4 | IcmpTypeCodeIpv6 => self.dst.1.into(),
            PostNaptSourceTransportPort => post.src.1.into(),
            PostNaptDestinationTransportPort => post.dst.1.into(),
            ProtocolIdentifier => self.protocol.into(),
            IpClassOfService => self.class.into(),
            VlanId => self.vlan.into(),
            IngressInterface => self.ingress.into(),
            FlowStartMilliseconds => self.start,
            FlowEndMilliseconds => self.end,
            OctetDeltaCount => counts.octets,
            PacketDeltaCount => counts.packets,
            TcpControlBits => counts.tcp_flags.into(),
            FlowEndReason => self.reason as u64,
            BiflowDirection => INITIATOR,
            // No template of flow records has another.
            _ => 0,
        })
    }
}
