//! What the elements that translate between IPv4 and IPv6 share.

use castanet_engine::prelude::*;
use castanet_engine::wire::Ipv6Header;
use castanet_kit::siit::Refusal;

/// What becomes of a packet.
#[derive(Fate)]
pub enum Translation {
    /// Translated packets.
    Translated,
    /// Packets that are cut short.
    #[drop]
    Malformed,
    /// Packets from or to addresses that stand for no IPv4 address.
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

/// Where one worker translates.
#[derive(Default, Local)]
pub struct Buffer {
    pub(crate) bytes: Vec<u8>,
}

impl Buffer {
    /// Puts a translation into its packet's place.
    pub(crate) fn exchange(&self, result: Result<(), Refusal>, packet: &mut Packet) -> Translation {
        match result {
            Ok(()) => {}
            Err(Refusal::Malformed) => return Translation::Malformed,
            Err(Refusal::Address) => return Translation::ForeignAddress,
            Err(Refusal::Message) => return Translation::NoCounterpart,
            Err(Refusal::Fragment) => return Translation::Fragment,
            Err(Refusal::TooLong) => return Translation::TooLong,
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
        Translation::Translated
    }
}
