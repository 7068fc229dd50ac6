//! `ProtocolTranslator64`: translates IPv6 packets to IPv4.

use super::protocol_translation::{ProtocolTranslatorExit, TranslationBuffer};
use crate::ip::transport::mark_at_start;
use castanet_element::prelude::*;
use castanet_kit::siit;

/// Translates IPv6 packets, ICMPv6 included, to IPv4 (RFC 7915).
///
/// Addresses must represent IPv4 addresses: `::1.2.3.4` or `::ffff:1.2.3.4`.
/// Checksums are updated, traffic class and hop limit kept, extension headers
/// removed; packets that are no fragments get the DF flag. Errors are translated
/// with the packets that they quote. Packets without a counterpart in IPv4 are
/// dropped.
///
/// The header is the marked one, or else at the start of the packet.
///
/// ```click
/// in -> t :: ProtocolTranslator64 -> out
/// > in  [::1.0.0.1]:5 > [::ffff:2.0.0.2]:6 tcp syn hop 9
/// > in  ::1.0.0.1 > ::2.0.0.2 icmp6 type 128 ident 3 seq 4 "ping"
/// > in  ::9.0.0.9 > ::1.0.0.1 icmp6 type 2 rest 1400 [::1.0.0.1 > ::2.0.0.2 udp]
/// < out 1.0.0.1:5 > 2.0.0.2:6 tcp syn ttl 9 df ; dst 2.0.0.2 network 0
/// < out 1.0.0.1 > 2.0.0.2 icmp type echo ident 3 seq 4 "ping" df
/// < out 9.0.0.9 > 1.0.0.1 icmp type unreachable code needfrag rest 1380 df [1.0.0.1 > 2.0.0.2 udp df]
/// > in  2001:db8::1 > ::2.0.0.2 udp
/// > in  ::1.0.0.1 > ::2.0.0.2 udp len 60 short 1
/// > in  ::1.0.0.1 > ::2.0.0.2 icmp6 type 135 data 00
/// > in  ::1.0.0.1 > ::2.0.0.2 icmp6 frag 0+
/// = t.drops.foreign_address 1
/// = t.drops.malformed 1
/// = t.drops.no_counterpart 1
/// = t.drops.fragment 1
/// = t.drops.too_long 0
/// ```
///
/// ```click
/// in -> ProtocolTranslator64 -> out
/// > in  hex 60 00 00 00 00 00 63 40 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 02 00 00 02
/// < out 1.0.0.1 > 2.0.0.2 proto 99 ttl 64 df
/// ```
#[derive(Element)]
#[element(room = "nat", gives = "ip", headers = Gives(FirstHeader::Ip, MarkedHeader::Ip))]
pub struct ProtocolTranslator64;

impl PerPacket for ProtocolTranslator64 {
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
        let Some(ip) = packet.ipv6() else { return ProtocolTranslatorExit::Malformed };
        let result = siit::to_v4(ip.datagram(), &mut buffer.bytes);
        buffer.replace(result, ip.into_packet())
    }
}
