//! Packets of traces and captures, as clients get them, and the filters that clients send.

use castanet_element::error::ArgError;
use castanet_element::exec::{AnyPacket, IpPatternFilter, PacketFilter, PacketImage};
use castanet_io::TcpdumpFilter;
use castanet_wire::sketch::Layer;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The longest pattern of a client, in bytes.
const MAX_PATTERN: usize = 4096;
/// The longest expression of a client, in bytes: libpcap takes a time that grows with its square.
const MAX_EXPRESSION: usize = 1024;

/// A packet at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct PacketRecord {
    /// Its length in bytes.
    pub(crate) length: usize,
    /// The packet in one line; empty if the client does not want it.
    pub(crate) text: String,
    /// The first header: `ethernet` or `ip`.
    pub(crate) layer: FirstHeader,
    /// Its first bytes, in hexadecimal digits.
    pub(crate) bytes: String,
    /// The paint annotation.
    pub(crate) paint: u8,
    /// The destination annotation.
    pub(crate) dst: Ipv4Addr,
    /// The device annotation.
    pub(crate) device: u16,
    /// The packet type, numbered as in Linux.
    pub(crate) packet_type: u8,
    /// Offset of the network header from the first byte, if an element has marked it.
    pub(crate) network: Option<isize>,
}

/// The first header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FirstHeader {
    /// Ethernet.
    Ethernet,
    /// IPv4 or IPv6.
    Ip,
}

impl PacketRecord {
    pub(super) fn of(image: &PacketImage) -> PacketRecord {
        PacketRecord { text: image.summary(), ..PacketRecord::without_text(image) }
    }

    pub(super) fn without_text(image: &PacketImage) -> PacketRecord {
        let layer = match image.layer {
            Layer::Ethernet => FirstHeader::Ethernet,
            Layer::Network => FirstHeader::Ip,
        };
        PacketRecord {
            length: image.length,
            text: String::new(),
            layer,
            bytes: hex(&image.bytes),
            paint: image.annotations.paint,
            dst: image.annotations.dst,
            device: image.annotations.device,
            packet_type: image.annotations.packet_type,
            network: image.network,
        }
    }

    /// The bytes; those before a digit that is none.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let digits = self.bytes.as_bytes().as_chunks::<2>().0;
        let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        digits.iter().map_while(byte).collect()
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |&byte: &u8| [byte >> 4, byte & 15].map(|it| char::from(DIGITS[usize::from(it)]));
    bytes.iter().flat_map(digits).collect()
}

/// The packets that a client asks for.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct FilterText {
    /// A pattern of IPFilter; all packets if empty.
    #[serde(default)]
    pub(crate) pattern: String,
    /// An expression of tcpdump, which has to match, too.
    #[serde(default)]
    pub(crate) tcpdump: Option<String>,
}

/// Packets that two filters let pass.
struct BothFilters(Box<dyn PacketFilter>, Box<dyn PacketFilter>);

impl PacketFilter for BothFilters {
    fn matches(&self, packet: &castanet_packet::Packet) -> bool {
        self.0.matches(packet) && self.1.matches(packet)
    }
}

impl FilterText {
    /// The filter.
    ///
    /// # Errors
    /// The pattern or the expression is wrong.
    pub(super) fn filter(&self) -> Result<Box<dyn PacketFilter>, ArgError> {
        super::check_length("the pattern", &self.pattern, MAX_PATTERN)?;
        let expression = self.tcpdump.as_deref().unwrap_or_default();
        super::check_length("the expression", expression, MAX_EXPRESSION)?;
        let pattern = self.pattern.trim();
        let by_pattern: Box<dyn PacketFilter> = match pattern {
            "" | "-" | "any" | "all" | "true" => Box::new(AnyPacket),
            _ => Box::new(IpPatternFilter::new(pattern).map_err(|error| {
                let message = format!("'{pattern}' is no pattern of IPFilter: {}", error.message);
                let help = "for expressions of tcpdump there is --tcpdump";
                ArgError::new(message).help(error.help.unwrap_or_else(|| help.to_owned()))
            })?),
        };
        let Some(expression) = &self.tcpdump else { return Ok(by_pattern) };
        let by_expression = TcpdumpFilter::new(expression)
            .map_err(|error| ArgError::new(format!("'{expression}': {error}")))?;
        Ok(Box::new(BothFilters(by_pattern, Box::new(by_expression))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_back() {
        let packet = castanet_packet::Packet::from_bytes(&[0, 1, 0xab, 0xff]);
        let record = PacketRecord::of(&PacketImage::of(&packet, 3));
        assert_eq!((record.bytes.as_str(), record.length), ("0001ab", 4));
        assert_eq!(record.bytes(), [0, 1, 0xab]);
        let strange = PacketRecord { bytes: "01\u{e9}x".into(), ..record };
        assert_eq!(strange.bytes(), [1]);
    }

    #[test]
    fn wrong_filters_are_errors_at_their_place() {
        let error = |pattern: &str| {
            let text = FilterText { pattern: pattern.into(), tcpdump: None };
            text.filter().err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(error("udp && dst port 53"), "");
        assert_eq!(error(" all "), "");
        let wrong = error("udp && dts port 53");
        assert!(wrong.contains("dts"), "{wrong}");
    }
}
