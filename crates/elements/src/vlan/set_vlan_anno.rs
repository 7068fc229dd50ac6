//! `SetVLANAnno`: which VLAN a packet belongs to, said by the configuration.

use super::tags::{Tag, annotate};
use castanet_engine::prelude::*;

/// Sets the VLAN annotation.
///
/// It is VLAN_TCI, or VLAN_ID and VLAN_PCP.
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
#[element(room = "vlan", args = Fields, methods, alias = "SetVlanAnno")]
pub struct SetVLANAnno {
    tag: Tag,
}

#[derive(Args)]
pub struct Fields {
    /// The annotation whole.
    #[arg]
    vlan_tci: Option<u16>,
    /// The priority, 0 to 7.
    #[arg]
    vlan_pcp: Option<u8>,
    /// The VLAN, instead of VLAN_TCI.
    #[arg(keyword)]
    vlan_id: Option<u16>,
}

impl Build for SetVLANAnno {
    type Args = Fields;
    fn build(args: Fields, _: &Setup) -> Result<Self, ArgError> {
        let tci = args.vlan_tci.map(Tag::Is);
        Ok(SetVLANAnno { tag: Tag::new(tci, args.vlan_id, args.vlan_pcp)? })
    }
}

#[handlers]
impl SetVLANAnno {
    /// The tag whole.
    #[read]
    fn vlan_tci(&self) -> Tag {
        self.tag
    }
    /// Sets the tag.
    #[write(vlan_tci)]
    fn set_vlan_tci(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(SetVLANAnno { tag: Tag::Is(u16::from_arg(text, names)?) })
    }
    /// The VLAN.
    #[read]
    fn vlan_id(&self) -> String {
        self.tag.id()
    }
    /// Sets the VLAN.
    #[write(vlan_id)]
    fn set_vlan_id(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(SetVLANAnno { tag: self.tag.with_id(u16::from_arg(text, names)?)? })
    }
    /// The priority.
    #[read]
    fn vlan_pcp(&self) -> String {
        self.tag.pcp()
    }
    /// Sets the priority.
    #[write(vlan_pcp)]
    fn set_vlan_pcp(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(SetVLANAnno { tag: self.tag.with_pcp(u8::from_arg(text, names)?)? })
    }
}

impl PerPacket for SetVLANAnno {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        if let Tag::Is(tci) = self.tag {
            annotate(packet, tci);
        }
    }
}
