//! `ProtocolTranslator46`: translates IPv4 packets to IPv6.

use super::protocol_translation::{ProtocolTranslatorExit, TranslationBuffer};
use crate::ip::transport::mark_at_start;
use castanet_element::prelude::*;
use castanet_kit::siit;

/// Translates IPv4 packets, ICMP included, to IPv6 (RFC 7915).
///
/// An address 1.2.3.4 becomes `::1.2.3.4`. Checksums are updated, type of
/// service and TTL kept, options removed; fragments get a fragment header.
/// Errors are translated with the packets that they quote. Packets without a
/// counterpart in IPv6 are dropped.
///
/// The header is the marked one, or else at the start of the packet.
///
/// ```click
/// in -> t :: ProtocolTranslator46 -> out
/// > in  1.0.0.1:5 > 2.0.0.2:6 tcp syn ttl 9
/// > in  1.0.0.1:5 > 2.0.0.2:6 udp nocheck "abc" id 7
/// > in  1.0.0.1 > 2.0.0.2 icmp type echo ident 3 seq 4 "ping"
/// > in  1.0.0.1 > 2.0.0.2 proto 9 id 7 frag 16+ len 36
/// > in  9.0.0.9 > 1.0.0.1 icmp type timeexceeded [1.0.0.1 > 2.0.0.2 udp]
/// < out [::1.0.0.1]:5 > [::2.0.0.2]:6 tcp syn hop 9 ; dst6 ::200:2 network 0
/// < out [::1.0.0.1]:5 > [::2.0.0.2]:6 udp "abc"
/// < out ::1.0.0.1 > ::2.0.0.2 icmp6 type 128 ident 3 seq 4 "ping"
/// < out ::1.0.0.1 > ::2.0.0.2 proto 9 id 7 frag 16+ len 64
/// < out ::9.0.0.9 > ::1.0.0.1 icmp6 type 3 [::1.0.0.1 > ::2.0.0.2 udp]
/// > in  1.0.0.1 > 2.0.0.2 udp short 1
/// > in  1.0.0.1 > 2.0.0.2 icmp type timestamp data 000000000000000000000000
/// > in  1.0.0.1 > 2.0.0.2 icmp frag 0+
/// > in  1.0.0.1 > 2.0.0.2 proto 9 frag 8 len 65535 pad 0
/// = t.drops.malformed 1
/// = t.drops.no_counterpart 1
/// = t.drops.fragment 1
/// = t.drops.foreign_address 0
/// = t.drops.too_long 0
/// < out ::1.0.0.1 > ::2.0.0.2 proto 9 id 0 frag 8 len 65563
/// ```
///
/// ```click
/// in -> ProtocolTranslator46 -> out
/// > in  hex 45 00 00 14 00 00 00 00 40 63 77 85 01 00 00 01 02 00 00 02
/// < out ::1.0.0.1 > ::2.0.0.2 proto 99 hop 64
/// ```
#[derive(Element)]
#[element(room = "nat", gives = "ip6", headers = Gives(FirstHeader::Ip6, MarkedHeader::Ip6))]
pub struct ProtocolTranslator46;

impl PerPacket for ProtocolTranslator46 {
    type On = on::Any;
    type Local = TranslationBuffer;
    type Fate = ProtocolTranslatorExit;

    #[inline]
    fn packet(
        &self,
        buffer: &mut TranslationBuffer,
        packet: &mut Packet,
    ) -> ProtocolTranslatorExit {
        mark_at_start(packet);
        let Some(ip) = packet.ipv4() else { return ProtocolTranslatorExit::Malformed };
        let result = siit::to_v6(ip.datagram(), &mut buffer.bytes);
        buffer.replace(result, ip.into_packet())
    }
}
