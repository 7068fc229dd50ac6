//! The elements that stand for devices and files.

use castanet_engine::args::AddressKind;
use castanet_engine::class::*;

use crate::interface::Interface;

/// The classes of this crate.
pub static CLASSES: &[Class] = &[];

/// An interface's address, for arguments that name one (`eth0:ip`).
pub fn address_of(name: &str, kind: AddressKind) -> Option<String> {
    let it = Interface::find(name).ok()?;
    match kind {
        AddressKind::Mac => Some(it.ether?.to_string()),
        AddressKind::Ip => Some(it.ipv4.first()?.address.to_string()),
        AddressKind::Net => {
            let net = it.ipv4.first()?;
            Some(format!("{}/{}", net.address, net.netmask))
        }
    }
}
