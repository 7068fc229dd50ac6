//! Information elements of the IANA registry, fields of templates, and their values.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Private enterprise number of the elements of the reverse direction (RFC 5103, section 6.1).
pub const REVERSE_ENTERPRISE: u32 = 29305;

/// Declares the elements from their names, numbers and lengths in bytes.
macro_rules! elements {
    ($($(#[$doc:meta])* $element:ident = $number:literal, $name:literal, $len:literal;)*) => {
        /// An information element of the IANA registry (RFC 7012). A length below that of the
        /// registry is reduced-size encoding (RFC 7011, section 6.2).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Element {$(
            $(#[$doc])*
            $element = $number,
        )*}

        impl Element {
            /// All elements.
            pub const ALL: &'static [Element] = &[$(Element::$element,)*];

            /// The name in the registry.
            pub const fn name(self) -> &'static str {
                match self {$(Element::$element => $name,)*}
            }

            /// The length of a value here, in bytes.
            pub const fn value_len(self) -> usize {
                match self {$(Element::$element => $len,)*}
            }
        }
    };
}

elements! {
    /// Bytes of the IP packets, with their headers, since the previous record.
    OctetDeltaCount = 1, "octetDeltaCount", 8;
    /// Packets since the previous record.
    PacketDeltaCount = 2, "packetDeltaCount", 8;
    /// Protocol behind the IP header.
    ProtocolIdentifier = 4, "protocolIdentifier", 1;
    /// Type of service, or traffic class.
    IpClassOfService = 5, "ipClassOfService", 1;
    /// The low eight TCP flags of all packets (RFC 7125).
    TcpControlBits = 6, "tcpControlBits", 1;
    /// Source port.
    SourceTransportPort = 7, "sourceTransportPort", 2;
    /// Source address of IPv4.
    SourceIpv4Address = 8, "sourceIPv4Address", 4;
    /// Index of the interface by which the packets came in; 0 if unknown.
    IngressInterface = 10, "ingressInterface", 4;
    /// Destination port.
    DestinationTransportPort = 11, "destinationTransportPort", 2;
    /// Destination address of IPv4.
    DestinationIpv4Address = 12, "destinationIPv4Address", 4;
    /// Source address of IPv6.
    SourceIpv6Address = 27, "sourceIPv6Address", 16;
    /// Destination address of IPv6.
    DestinationIpv6Address = 28, "destinationIPv6Address", 16;
    /// Type and code of ICMP, a byte each.
    IcmpTypeCodeIpv4 = 32, "icmpTypeCodeIPv4", 2;
    /// Packets of which one is sampled; deprecated, and the element that most collectors know.
    SamplingInterval = 34, "samplingInterval", 4;
    /// Method by which packets are sampled; deprecated, and the companion of `SamplingInterval`.
    SamplingAlgorithm = 35, "samplingAlgorithm", 1;
    /// Bytes of all messages that the exporter has sent.
    ExportedOctetTotalCount = 40, "exportedOctetTotalCount", 8;
    /// Messages that the exporter has sent.
    ExportedMessageTotalCount = 41, "exportedMessageTotalCount", 8;
    /// Flow records that the exporter has sent.
    ExportedFlowRecordTotalCount = 42, "exportedFlowRecordTotalCount", 8;
    /// Identifier of the VLAN; 0 without one.
    VlanId = 58, "vlanId", 2;
    /// Cause of the end of a flow.
    FlowEndReason = 136, "flowEndReason", 1;
    /// Type and code of ICMPv6, a byte each.
    IcmpTypeCodeIpv6 = 139, "icmpTypeCodeIPv6", 2;
    /// The observation domain.
    ObservationDomainId = 149, "observationDomainId", 4;
    /// Time of the first packet, in milliseconds since 1970.
    FlowStartMilliseconds = 152, "flowStartMilliseconds", 8;
    /// Time of the last packet, in milliseconds since 1970.
    FlowEndMilliseconds = 153, "flowEndMilliseconds", 8;
    /// Packets that the metering process did not process.
    IgnoredPacketTotalCount = 164, "ignoredPacketTotalCount", 8;
    /// Flow records that were lost by the exporter.
    NotSentFlowTotalCount = 166, "notSentFlowTotalCount", 8;
    /// Source address of IPv4 after translation.
    PostNatSourceIpv4Address = 225, "postNATSourceIPv4Address", 4;
    /// Destination address of IPv4 after translation.
    PostNatDestinationIpv4Address = 226, "postNATDestinationIPv4Address", 4;
    /// Source port after translation.
    PostNaptSourceTransportPort = 227, "postNAPTSourceTransportPort", 2;
    /// Destination port after translation.
    PostNaptDestinationTransportPort = 228, "postNAPTDestinationTransportPort", 2;
    /// Direction of the first packet of a flow in both directions (RFC 5103, section 6.3).
    BiflowDirection = 239, "biflowDirection", 1;
    /// Source address of IPv6 after translation.
    PostNatSourceIpv6Address = 281, "postNATSourceIPv6Address", 16;
    /// Destination address of IPv6 after translation.
    PostNatDestinationIpv6Address = 282, "postNATDestinationIPv6Address", 16;
    /// Method by which packets are sampled (RFC 5477, section 8.2.1).
    SelectorAlgorithm = 304, "selectorAlgorithm", 2;
    /// Packets of each group that are sampled.
    SamplingSize = 309, "samplingSize", 4;
    /// Packets of a group.
    SamplingPopulation = 310, "samplingPopulation", 4;
}

impl Element {
    /// The number in the registry.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The element of a number.
    pub fn of_number(number: u16) -> Option<Element> {
        Element::ALL.iter().copied().find(|element| element.number() == number)
    }
}

/// A field of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// The information element.
    pub element: Element,
    /// Whether it is about the reverse direction of a flow (RFC 5103).
    pub is_reverse: bool,
}

impl Field {
    /// A field of this element.
    pub const fn of(element: Element) -> Field {
        Field { element, is_reverse: false }
    }

    /// A field of this element of the reverse direction.
    pub const fn reverse(element: Element) -> Field {
        Field { element, is_reverse: true }
    }
}

/// The value of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldValue {
    /// A number, of which a field takes as many low bytes as it is long.
    Unsigned(u64),
    /// An address, of the family of the field.
    Address(IpAddr),
}

impl FieldValue {
    /// Appends the value with a length in bytes.
    pub(super) fn write(self, len: usize, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        match self {
            FieldValue::Unsigned(number) => {
                let all = number.to_be_bytes();
                bytes.extend_from_slice(&all[all.len().saturating_sub(len)..]);
            }
            FieldValue::Address(IpAddr::V4(address)) => bytes.extend(address.octets()),
            FieldValue::Address(IpAddr::V6(address)) => bytes.extend(address.octets()),
        }
        debug_assert_eq!(bytes.len() - start, len, "the value is of the length of its field");
    }

    /// Reads a value of an element; `None` if it has an impossible length.
    pub(super) fn read(element: Element, bytes: &[u8]) -> Option<FieldValue> {
        use Element::{
            DestinationIpv4Address, DestinationIpv6Address, PostNatDestinationIpv4Address,
            PostNatDestinationIpv6Address, PostNatSourceIpv4Address, PostNatSourceIpv6Address,
            SourceIpv4Address, SourceIpv6Address,
        };
        match element {
            SourceIpv4Address
            | DestinationIpv4Address
            | PostNatSourceIpv4Address
            | PostNatDestinationIpv4Address => {
                let bytes: [u8; 4] = bytes.try_into().ok()?;
                Some(FieldValue::Address(Ipv4Addr::from(bytes).into()))
            }
            SourceIpv6Address
            | DestinationIpv6Address
            | PostNatSourceIpv6Address
            | PostNatDestinationIpv6Address => {
                let bytes: [u8; 16] = bytes.try_into().ok()?;
                Some(FieldValue::Address(Ipv6Addr::from(bytes).into()))
            }
            _ => {
                let is_number = (1..=size_of::<u64>()).contains(&bytes.len());
                let join = |number: u64, byte: &u8| number << u8::BITS | u64::from(*byte);
                is_number.then(|| FieldValue::Unsigned(bytes.iter().fold(0, join)))
            }
        }
    }
}
