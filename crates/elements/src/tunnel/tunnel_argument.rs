//! Tunnels of Ethernet over IPv4, as arguments.

use super::network_identifier::NetworkIdentifier;
use castanet_element::args::UdpPort;
use castanet_element::prelude::*;
use castanet_element::wire::{Geneve, Vxlan};
use castanet_kit::tunnel::{Encapsulation, Tunnel};

/// A tunnel: `vxlan REMOTE VNI [PORT]`, `geneve REMOTE VNI [PORT]` or `gre REMOTE [KEY]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TunnelArgument(pub(super) Tunnel);

impl FromArg for TunnelArgument {
    const SYNTAX: &'static str =
        "a tunnel: vxlan REMOTE VNI [PORT], geneve REMOTE VNI [PORT] or gre REMOTE [KEY]";

    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let malformed = || ArgError::new(format!("`{text}` is not {}", Self::SYNTAX));
        let words: Vec<&str> = text.split_whitespace().collect();
        let [kind, remote, more @ ..] = &words[..] else { return Err(malformed()) };
        let port = |usual: u16| match more.get(1) {
            Some(port) => UdpPort::from_arg(port, names).map(|port| port.0),
            None => Ok(usual),
        };
        let (encapsulation, most) = match *kind {
            "vxlan" => (Encapsulation::Vxlan(port(Vxlan::PORT)?), 2),
            "geneve" => (Encapsulation::Geneve(port(Geneve::PORT)?), 2),
            "gre" => (Encapsulation::Gre, 1),
            _ => return Err(malformed()),
        };
        if more.len() > most {
            return Err(malformed());
        }
        let key = match (encapsulation, more.first()) {
            (Encapsulation::Gre, key) => key.map(|key| u32::from_arg(key, names)).transpose()?,
            (_, Some(vni)) => Some(NetworkIdentifier::from_arg(vni, names)?.0),
            (_, None) => return Err(malformed()),
        };
        let remote = Ipv4Addr::from_arg(remote, names)?;
        Ok(TunnelArgument(Tunnel { encapsulation, remote, key }))
    }
}

impl From<TunnelArgument> for Value {
    fn from(TunnelArgument(Tunnel { encapsulation, remote, key }): TunnelArgument) -> Value {
        let key = key.map(|key| format!(" {key}")).unwrap_or_default();
        let other = |port: u16, usual: u16| match port == usual {
            true => String::new(),
            false => format!(" {port}"),
        };
        match encapsulation {
            Encapsulation::Vxlan(port) => {
                format!("vxlan {remote}{key}{}", other(port, Vxlan::PORT))
            }
            Encapsulation::Geneve(port) => {
                format!("geneve {remote}{key}{}", other(port, Geneve::PORT))
            }
            Encapsulation::Gre => format!("gre {remote}{key}"),
        }
        .into()
    }
}
