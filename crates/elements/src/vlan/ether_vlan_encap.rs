//! `EtherVLANEncap`: prepends an Ethernet header with a VLAN tag.

use super::tci::{NativeVlan, TagArgs, TciSource};
use castanet_element::prelude::*;
use castanet_element::wire::{Ethernet, Vlan, ether_type};

/// Prepends an Ethernet header with a VLAN tag to each packet.
///
/// VLAN_TCI is the tag control information, that is priority and VLAN ID, or
/// `ANNO` to take it from the VLAN annotation. VLAN_ID is the VLAN ID alone.
/// Packets of NATIVE_VLAN get a header without a tag, with any priority.
///
/// ```click
/// in -> e :: EtherVLANEncap(0x0800, 0:0:0:0:0:1, 0:0:0:0:0:2, VLAN_ID 9, VLAN_PCP 3) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 9 prio 3 1.0.0.1 > 2.0.0.2 udp ; mac 0
/// = e.vlan_tci 24585
/// ! e.vlan_id 8
/// ! e.vlan_pcp 0
/// = e.vlan_id 8
/// = e.vlan_pcp 0
/// ! e.src 0:0:0:0:0:3
/// ! e.dst 0:0:0:0:0:4
/// ! e.ethertype 2049
/// > in  hex 61
/// < out eth 0:0:0:0:0:3 > 0:0:0:0:0:4 vlan 8 type 0x0801 hex 61
/// ! e.native_vlan 5
/// ! e.vlan_tci 5
/// > in  hex 61
/// < out eth 0:0:0:0:0:3 > 0:0:0:0:0:4 type 0x0801 hex 61
/// ```
/// ```click
/// in -> e :: EtherVLANEncap(0x0800, 0:0:0:0:0:1, 0:0:0:0:0:2, 24585) -> out
/// plain -> EtherVLANEncap(0x0800, 0:0:0:0:0:1, 0:0:0:0:0:2, ANNO) -> out2
/// > in    1.0.0.1 > 2.0.0.2 udp
/// > plain 1.0.0.1 > 2.0.0.2 udp
/// < out   eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 9 prio 3 1.0.0.1 > 2.0.0.2 udp
/// < out2  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// = e.native_vlan 0
/// ```
/// ```click
/// in -> SetVLANAnno(7) -> EtherVLANEncap(0x0800, 0:0:0:0:0:1, 0:0:0:0:0:2, ANNO) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 7 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "vlan", args = EtherVLANEncapArgs, methods, gives = "ether", alias = "EtherVlanEncap", headers = Encapsulate)]
pub struct EtherVLANEncap {
    ethertype: u16,
    src: MacAddr,
    dst: MacAddr,
    #[flatten]
    tci: TciSource,
    #[flatten]
    native: NativeVlan,
}

#[derive(Args)]
pub struct EtherVLANEncapArgs {
    /// Ethernet type of the payload, behind the tag.
    #[arg]
    ethertype: u16,
    /// Source address.
    #[arg]
    src: MacAddr,
    /// Destination address.
    #[arg]
    dst: MacAddr,
    #[arg(flatten)]
    tag: TagArgs,
}

impl Build for EtherVLANEncap {
    type Args = EtherVLANEncapArgs;
    fn build(args: EtherVLANEncapArgs, _: &Setup) -> Result<Self, ArgError> {
        let EtherVLANEncapArgs { ethertype, src, dst, tag } = args;
        let (tci, native) = (tag.tci()?, tag.native_vlan);
        Ok(EtherVLANEncap { ethertype, src, dst, tci, native })
    }
}

#[handlers]
impl EtherVLANEncap {
    /// Ethernet type of the payload.
    #[read]
    fn ethertype(&self) -> u16 {
        self.ethertype
    }
    /// Sets the Ethernet type of the payload.
    #[write(ethertype)]
    fn set_ethertype(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(EtherVLANEncap { ethertype: u16::from_arg(text, names)?, ..self.clone() })
    }
    /// Source address.
    #[read]
    fn src(&self) -> MacAddr {
        self.src
    }
    /// Sets the source address.
    #[write(src)]
    fn set_src(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(EtherVLANEncap { src: MacAddr::from_arg(text, names)?, ..self.clone() })
    }
    /// Destination address.
    #[read]
    fn dst(&self) -> MacAddr {
        self.dst
    }
    /// Sets the destination address.
    #[write(dst)]
    fn set_dst(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(EtherVLANEncap { dst: MacAddr::from_arg(text, names)?, ..self.clone() })
    }
}

impl PerPacket for EtherVLANEncap {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        let tci = self.tci.tci_for(packet);
        if self.native.matches(tci) {
            let header = Ethernet::new(self.dst, self.src, self.ethertype);
            packet.push_mac_header(Ethernet::LEN).copy_from_slice(header.bytes());
        } else if let Some((ether, rest)) =
            Ethernet::from_prefix_mut(packet.push_mac_header(Ethernet::LEN + Vlan::LEN))
            && let Some((tag, _)) = Vlan::from_prefix_mut(rest)
        {
            ether.set_dst(self.dst);
            ether.set_src(self.src);
            ether.set_ether_type(ether_type::VLAN);
            tag.set_tci(tci);
            tag.set_ether_type(self.ethertype);
        }
    }
}
