//! Protocol of the packets in a tunnel: as argument, and as the output of an element.

use castanet_element::prelude::*;
use castanet_element::wire::ether_type;

/// EtherType of the packets in a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TunnelProtocol(pub u16);

/// The names of protocols.
const NAMES: [(&str, u16); 3] = [
    ("ip", ether_type::IPV4),
    ("ip6", ether_type::IPV6),
    ("ethernet", ether_type::TRANSPARENT_ETHERNET),
];

impl FromArg for TunnelProtocol {
    const SYNTAX: &'static str = "ip, ip6, ethernet or an EtherType";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        if let Some((_, number)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(TunnelProtocol(*number));
        }
        let number = u16::from_arg(text, names);
        number.map(TunnelProtocol).map_err(|error| {
            let click = error.in_click_words().unwrap_or_default();
            ArgError::new(format!("`{text}` is not {}", Self::SYNTAX)).click(click)
        })
    }
}

impl From<TunnelProtocol> for Value {
    fn from(protocol: TunnelProtocol) -> Value {
        match NAMES.iter().find(|(_, number)| *number == protocol.0) {
            Some((name, _)) => (*name).into(),
            None => protocol.0.into(),
        }
    }
}

/// Kind of the packets that leave a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TunnelPayload {
    Ip,
    Ip6,
    Ethernet,
}

impl TunnelPayload {
    /// The kind of packets of an EtherType, if the elements have an output for it.
    #[inline]
    pub(super) fn of(protocol: u16) -> Option<TunnelPayload> {
        match protocol {
            ether_type::IPV4 => Some(TunnelPayload::Ip),
            ether_type::IPV6 => Some(TunnelPayload::Ip6),
            ether_type::TRANSPARENT_ETHERNET => Some(TunnelPayload::Ethernet),
            _ => None,
        }
    }
}
