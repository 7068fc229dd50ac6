//! `EtherEncap`: prepends an Ethernet header.

use castanet_element::fate::none_taken;
use castanet_element::prelude::*;
use castanet_element::wire::Ethernet;

/// Prepends an Ethernet header to each packet.
///
/// ```click
/// in -> e :: EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out eth 1:1:1:1:1:1 > 2:2:2:2:2:2 1.0.0.1 > 2.0.0.2 udp ; mac 0 network 14
/// ! e.dst 2:2:2:2:2:3
/// = e.src 01-01-01-01-01-01
/// = e.ethertype 2048
/// = e.etht 2048
/// ! e.etht 0x0801
/// = e.ethertype 2049
/// ! e.etht 0x0800
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out eth 1:1:1:1:1:1 > 2:2:2:2:2:3 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "ether", gives = "ether", methods, headers = Encapsulate)]
pub struct EtherEncap {
    /// Ethernet type of the payload.
    #[arg(live)]
    ethertype: u16,
    /// Source address.
    #[arg(live)]
    src: MacAddr,
    /// Destination address.
    #[arg(live)]
    dst: MacAddr,
}

#[handlers]
impl EtherEncap {
    /// The same as `ethertype`.
    #[read]
    fn etht(&self) -> u16 {
        self.ethertype
    }
    /// Sets `ethertype`.
    #[write(etht)]
    fn set_etht(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(EtherEncap { ethertype: u16::from_arg(text, names)?, ..self.clone() })
    }
}

/// The header, built once per burst.
#[derive(Default, Local)]
pub struct EtherEncapState {
    header: Ethernet,
}

impl PerPacket for EtherEncap {
    type On = on::Any;
    type Local = EtherEncapState;
    type Fate = ();
    const BYTE_ACCESS: ByteAccess = ByteAccess::Writes;

    fn byte_length(&self) -> Option<usize> {
        Some(0)
    }

    fn handle_bytes(
        &self,
        _: &mut EtherEncapState,
        bytes: &mut BurstBytes,
        fates: &mut [u8],
    ) -> u8 {
        if bytes.unstrip(Ethernet::LEN) { 0 } else { none_taken(fates) }
    }

    fn write_bytes(&self, _: &mut EtherEncapState, bytes: &mut BurstBytes) {
        let header = Ethernet::new(self.dst, self.src, self.ethertype).0;
        let rooms = bytes.iter_mut().filter_map(|bytes| bytes.first_chunk_mut());
        rooms.for_each(|room| *room = header);
    }

    #[inline]
    fn begin_burst(&self, state: &mut EtherEncapState, _: Time) {
        state.header = Ethernet::new(self.dst, self.src, self.ethertype);
    }

    #[inline]
    fn packet(&self, state: &mut EtherEncapState, packet: &mut Packet) {
        EtherEncap::encap(packet, state.header.0);
    }

    fn native(&self) -> Option<String> {
        let header = Ethernet::new(self.dst, self.src, self.ethertype);
        Some(format!("Element::encap(packet, {:?})", header.0))
    }
}

impl EtherEncap {
    /// Prepends a header.
    #[inline(always)]
    pub fn encap(packet: &mut Packet, header: [u8; Ethernet::LEN]) {
        if let Some(room) = packet.push_mac_header(Ethernet::LEN).first_chunk_mut() {
            *room = header;
        }
    }
}
