//! Names and errors of packet patterns as those of arguments.

use super::{AddressKind, ArgError, FromArg, Names, Net};
use castanet_kit::classify::{self, RuleError};
use castanet_wire::MacAddr;
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

    fn port(&self, name: &str) -> Option<u16> {
        self.resolve(name, AddressKind::Port)?.parse().ok()
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
