//! `VLANEncap`: inserts a VLAN tag into Ethernet frames.

use super::tci::{NativeVlan, TciSource};
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
    tci: TciSource,
    native: NativeVlan,
    ethertype: u16,
}

#[derive(Args)]
pub struct VLANEncapArgs {
    /// Tag control information, or `ANNO` for that of the annotation; 0 by default.
    #[arg]
    vlan_tci: Option<TciSource>,
    /// Priority, 0 to 7.
    #[arg]
    vlan_pcp: Option<u8>,
    /// VLAN ID, 0 to 4095, instead of VLAN_TCI.
    #[arg(keyword)]
    vlan_id: Option<u16>,
    /// VLAN ID whose frames get no tag; -1 for none.
    #[arg(keyword, default = NativeVlan::ZERO)]
    native_vlan: NativeVlan,
    /// Ethernet type of the tag (TPID).
    #[arg(keyword, default = ether_type::VLAN)]
    ethertype: u16,
}

impl Build for VLANEncap {
    type Args = VLANEncapArgs;
    fn build(args: VLANEncapArgs, _: &Setup) -> Result<Self, ArgError> {
        let tci = TciSource::new(args.vlan_tci, args.vlan_id, args.vlan_pcp)?;
        Ok(VLANEncap { tci, native: args.native_vlan, ethertype: args.ethertype })
    }
}

#[handlers]
impl VLANEncap {
    /// Tag control information, or `ANNO`.
    #[read]
    fn vlan_tci(&self) -> TciSource {
        self.tci
    }
    /// Sets the tag control information.
    #[write(vlan_tci)]
    fn set_vlan_tci(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(VLANEncap { tci: TciSource::from_arg(text, names)?, ..self.clone() })
    }
    /// VLAN ID, or `ANNO`.
    #[read]
    fn vlan_id(&self) -> String {
        self.tci.id_text()
    }
    /// Sets the VLAN ID.
    #[write(vlan_id)]
    fn set_vlan_id(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(VLANEncap { tci: self.tci.with_id(u16::from_arg(text, names)?)?, ..self.clone() })
    }
    /// Priority, or `ANNO`.
    #[read]
    fn vlan_pcp(&self) -> String {
        self.tci.pcp_text()
    }
    /// Sets the priority.
    #[write(vlan_pcp)]
    fn set_vlan_pcp(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(VLANEncap { tci: self.tci.with_pcp(u8::from_arg(text, names)?)?, ..self.clone() })
    }
    /// VLAN ID whose frames get no tag.
    #[read]
    fn native_vlan(&self) -> NativeVlan {
        self.native
    }
    /// Sets the VLAN ID whose frames get no tag.
    #[write(native_vlan)]
    fn set_native_vlan(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(VLANEncap { native: NativeVlan::from_arg(text, names)?, ..self.clone() })
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
