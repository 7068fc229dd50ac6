//! Network identifiers (VNI) of VXLAN and Geneve, as arguments.

use castanet_element::args::within;
use castanet_element::prelude::*;
use castanet_element::wire::Vxlan;

/// A network identifier of 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkIdentifier(pub u32);

impl FromArg for NetworkIdentifier {
    const SYNTAX: &'static str = "a number from 0 to 16777215";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        within(text, names, &(0..=Vxlan::MAX_VNI), Self::SYNTAX).map(NetworkIdentifier)
    }
}

impl From<NetworkIdentifier> for Value {
    fn from(vni: NetworkIdentifier) -> Value {
        vni.0.into()
    }
}
