//! Names and errors of packet patterns as those of arguments.

use super::{AddressKind, ArgError, FromArg, Names, Net};
use castanet_kit::classify::{self, RuleError};
use castanet_wire::{MacAddr, ip_proto};
use std::net::Ipv4Addr;

impl classify::Names for Names {
    fn address(&self, name: &str) -> Option<u32> {
        let address: Ipv4Addr = self.resolve(name, AddressKind::Ip)?.parse().ok()?;
        Some(address.to_bits())
    }

    fn prefix(&self, name: &str) -> Option<(u32, u32)> {
        let net = Net::from_arg(&self.resolve(name, AddressKind::Net)?, self).ok()?;
        Some((net.address.to_bits(), net.mask.to_bits()))
    }

    fn port(&self, name: &str, protocol: Option<u8>) -> Option<u16> {
        let kinds = match protocol {
            Some(ip_proto::TCP) => &[AddressKind::TcpPort][..],
            Some(ip_proto::UDP) => &[AddressKind::UdpPort],
            _ => &[AddressKind::TcpPort, AddressKind::UdpPort],
        };
        kinds.iter().find_map(|&kind| self.declared(name, kind))?.parse().ok()
    }

    fn service(&self, name: &str, protocol: Option<u8>) -> Option<u16> {
        let kind = match protocol {
            Some(ip_proto::UDP) => AddressKind::UdpPort,
            _ => AddressKind::TcpPort,
        };
        self.machine(name, kind)?.parse().ok()
    }

    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        let mac: MacAddr = self.resolve(name, AddressKind::Mac)?.parse().ok()?;
        Some(mac.octets())
    }
}

impl From<RuleError> for ArgError {
    fn from(error: RuleError) -> ArgError {
        let said = ArgError::new(error.message);
        match error.help {
            Some(help) => said.help(help),
            None => said,
        }
    }
}
