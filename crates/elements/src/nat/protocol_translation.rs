//! Exits and buffer of `ProtocolTranslator46` and `ProtocolTranslator64`.

use castanet_element::prelude::*;
use castanet_element::wire::Ipv6Header;
use castanet_kit::siit::Refusal;

/// Exits of the protocol translators.
#[derive(Fate)]
pub enum ProtocolTranslatorExit {
    /// Translated packets.
    Translated,
    /// Packets without an IP header of the version to translate, or shorter than their headers say.
    #[drop]
    Malformed,
    /// Packets from or to addresses that represent no IPv4 address.
    #[drop]
    ForeignAddress,
    /// ICMP messages that the other protocol does not have.
    #[drop]
    NoCounterpart,
    /// Fragments of ICMP, and of UDP without a checksum.
    #[drop]
    Fragment,
    /// Packets longer than the other protocol allows.
    #[drop]
    TooLong,
}

/// The buffer for the packet that a worker translates.
#[derive(Default, Local)]
pub struct TranslationBuffer {
    pub(crate) bytes: Vec<u8>,
}

impl TranslationBuffer {
    /// Replaces a packet by its translation in the buffer.
    pub(crate) fn replace(
        &self,
        result: Result<(), Refusal>,
        packet: &mut Packet,
    ) -> ProtocolTranslatorExit {
        match result {
            Ok(()) => {}
            Err(Refusal::Malformed) => return ProtocolTranslatorExit::Malformed,
            Err(Refusal::Address) => return ProtocolTranslatorExit::ForeignAddress,
            Err(Refusal::Message) => return ProtocolTranslatorExit::NoCounterpart,
            Err(Refusal::Fragment) => return ProtocolTranslatorExit::Fragment,
            Err(Refusal::TooLong) => return ProtocolTranslatorExit::TooLong,
        }
        packet.replace_contents(&self.bytes);
        packet.set_network_header(0, Ipv6Header::LEN);
        if let Some((dst, len)) = packet.ipv6().map(|ip| (ip.dst(), ip.upper_layer().offset)) {
            packet.set_network_header(0, Ipv6Header::LEN + len);
            packet.set_dst6(dst);
        } else if let Some((dst, len)) = packet.ipv4().map(|ip| (ip.dst(), ip.header_len())) {
            packet.set_network_header(0, len);
            packet.set_dst(dst);
        }
        ProtocolTranslatorExit::Translated
    }
}
