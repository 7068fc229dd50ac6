//! `SetIPAddress`: sets the destination annotation to a constant address.

use castanet_element::packet::anno::{self, Anno};
use castanet_element::prelude::*;

/// Sets the destination annotation to a constant IPv4 address.
///
/// ```click
/// in -> s :: SetIPAddress(1.2.3.4) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; dst 1.2.3.4
/// ! s.addr 1.2.3.5
/// = s.addr 1.2.3.5
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp ; dst 1.2.3.5
/// ```
#[derive(Clone, Element)]
#[element(room = "ip", methods)]
pub struct SetIPAddress {
    /// IPv4 address.
    #[arg(name = "IPADDR")]
    addr: Ipv4Addr,
    /// Annotation to set.
    #[arg(default = IpAnno(anno::DST_IP))]
    anno: IpAnno,
}

#[handlers]
impl SetIPAddress {
    /// IPv4 address.
    #[read]
    fn addr(&self) -> Ipv4Addr {
        self.addr
    }
    /// Sets the IPv4 address.
    #[write(addr)]
    fn set_addr(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(SetIPAddress { addr: Ipv4Addr::from_arg(text, names)?, ..self.clone() })
    }
}

/// Offset of an annotation of at least 4 bytes, for an IPv4 address.
#[derive(Clone, Copy)]
pub struct IpAnno(pub(crate) usize);

impl FromArg for IpAnno {
    const SYNTAX: &'static str = <Anno as FromArg>::SYNTAX;
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        const ADDRESS: usize = 4;
        let Anno { offset, size, .. } = Anno::from_arg(text, names)?;
        // An offset without a size stands for an annotation of the required size.
        let fits = size >= ADDRESS || (size == 1 && offset + ADDRESS <= anno::SIZE);
        fits.then_some(IpAnno(offset)).ok_or_else(|| ArgError::new("annotation has wrong size"))
    }
}

impl PerPacket for SetIPAddress {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, _: &mut (), packet: &mut Packet) {
        if self.anno.0 == anno::DST_IP {
            packet.set_dst(self.addr);
        } else {
            packet.set_anno_bytes(self.anno.0, self.addr.octets());
        }
    }
}
