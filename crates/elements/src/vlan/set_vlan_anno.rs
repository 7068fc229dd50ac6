//! `SetVLANAnno`: sets the VLAN annotation.

use super::tci::{TciSource, set_tci_annotation};
use castanet_element::prelude::*;

/// Sets the VLAN annotation of each packet.
///
/// The value is VLAN_TCI, or VLAN_ID and VLAN_PCP.
///
/// ```click
/// in -> s :: SetVLANAnno(VLAN_ID 9, VLAN_PCP 3) -> VLANEncap(ANNO) -> out
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 9 prio 3 1.0.0.1 > 2.0.0.2 udp
/// = s.vlan_tci 24585
/// ! s.vlan_id 8
/// = s.vlan_id 8
/// ! s.vlan_pcp 0
/// = s.vlan_pcp 0
/// > in  eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < out eth 0:0:0:0:0:1 > 0:0:0:0:0:2 vlan 8 1.0.0.1 > 2.0.0.2 udp
/// ! s.vlan_tci 5
/// ```
#[derive(Clone, Element)]
#[element(room = "vlan", args = SetVLANAnnoArgs, methods, alias = "SetVlanAnno")]
pub struct SetVLANAnno {
    tci: TciSource,
}

#[derive(Args)]
pub struct SetVLANAnnoArgs {
    /// Tag control information: priority and VLAN ID in one number; 0 by default.
    #[arg]
    vlan_tci: Option<u16>,
    /// Priority, 0 to 7.
    #[arg]
    vlan_pcp: Option<u8>,
    /// VLAN ID, 0 to 4095, instead of VLAN_TCI.
    #[arg(keyword)]
    vlan_id: Option<u16>,
}

impl Build for SetVLANAnno {
    type Args = SetVLANAnnoArgs;
    fn build(args: SetVLANAnnoArgs, _: &Setup) -> Result<Self, ArgError> {
        let tci = args.vlan_tci.map(TciSource::Fixed);
        Ok(SetVLANAnno { tci: TciSource::new(tci, args.vlan_id, args.vlan_pcp)? })
    }
}

#[handlers]
impl SetVLANAnno {
    /// Tag control information.
    #[read]
    fn vlan_tci(&self) -> TciSource {
        self.tci
    }
    /// Sets the tag control information.
    #[write(vlan_tci)]
    fn set_vlan_tci(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(SetVLANAnno { tci: TciSource::Fixed(u16::from_arg(text, names)?) })
    }
    /// VLAN ID.
    #[read]
    fn vlan_id(&self) -> String {
        self.tci.id_text()
    }
    /// Sets the VLAN ID.
    #[write(vlan_id)]
    fn set_vlan_id(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(SetVLANAnno { tci: self.tci.with_id(u16::from_arg(text, names)?)? })
    }
    /// Priority.
    #[read]
    fn vlan_pcp(&self) -> String {
        self.tci.pcp_text()
    }
    /// Sets the priority.
    #[write(vlan_pcp)]
    fn set_vlan_pcp(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(SetVLANAnno { tci: self.tci.with_pcp(u8::from_arg(text, names)?)? })
    }
}

impl PerPacket for SetVLANAnno {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        if let TciSource::Fixed(tci) = self.tci {
            set_tci_annotation(packet, tci);
        }
    }
}
