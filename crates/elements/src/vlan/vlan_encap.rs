//! `VLANEncap`: inserts a VLAN tag into Ethernet frames.

use super::tci::{NativeVlan, TagArgs, TciSource};
use castanet_element::prelude::*;
use castanet_element::wire::{Vlan, ether_type, vlan};

/// Inserts a VLAN tag into each Ethernet frame.
///
/// The tag is VLAN_TCI, or VLAN_ID and VLAN_PCP, or with VLAN_TCI `ANNO` the
/// VLAN annotation. Frames of NATIVE_VLAN get no tag.
///
/// ```click
/// in -> v :: VLANEncap(VLAN_ID 9, VLAN_PCP 3) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 9 prio 3 1.0.0.1 > 2.0.0.2 udp ; mac 0
/// = v.vlan_tci 24585
/// ! v.vlan_id 0
/// = v.vlan_pcp 3
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// ! v.native_vlan -1
/// ! v.vlan_pcp 0
/// = v.vlan_id 0
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 0 1.0.0.1 > 2.0.0.2 udp
/// ! v.vlan_tci 5
/// = v.native_vlan -1
/// = v.ethertype 33024
/// ! v.ethertype 0x88a8
/// = v.ethertype 34984
/// ```
/// ```click
/// in -> VLANEncap -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// ```
/// ```click
/// in -> SetVLANAnno(7) -> VLANEncap(ANNO, ETHERTYPE 0x88a8) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 9 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 qinq 7 vlan 9 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Clone, Element)]
#[element(room = "vlan", args = VLANEncapArgs, methods)]
pub struct VLANEncap {
    #[flatten]
    tci: TciSource,
    #[flatten]
    native: NativeVlan,
    ethertype: u16,
}

#[derive(Args)]
pub struct VLANEncapArgs {
    #[arg(flatten)]
    tag: TagArgs,
    /// Ethernet type of the tag (TPID).
    #[arg(keyword, default = ether_type::VLAN, shown = "0x8100")]
    ethertype: u16,
}

#[handlers]
impl VLANEncap {
    /// Ethernet type of the tag (TPID).
    #[read]
    fn ethertype(&self) -> u16 {
        self.ethertype
    }
    /// Sets the Ethernet type of the tag.
    #[write(ethertype)]
    fn set_ethertype(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(VLANEncap { ethertype: u16::from_arg(text, names)?, ..self.clone() })
    }
}

impl Build for VLANEncap {
    type Args = VLANEncapArgs;
    fn build(args: VLANEncapArgs, _: &Setup) -> Result<Self, ArgError> {
        let (tci, native) = (args.tag.tci()?, args.tag.native_vlan);
        Ok(VLANEncap { tci, native, ethertype: args.ethertype })
    }
}

impl PerPacket for VLANEncap {
    type On = on::Ether;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), ether: Ether) {
        let packet = ether.into_packet();
        let tci = self.tci.tci_for(packet);
        if !self.native.matches(tci) {
            packet.push_front(Vlan::LEN);
            vlan::insert(packet.bytes_mut(), self.ethertype, tci);
            packet.set_mac_header(0);
        }
    }
}
