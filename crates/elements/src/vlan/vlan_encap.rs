//! `VLANEncap`: frames with a VLAN tag.

use super::tags::{Native, Tag};
use castanet_engine::prelude::*;
use castanet_engine::wire::{Vlan, ether_type, vlan};

/// Puts a VLAN tag into each Ethernet frame.
///
/// The tag is VLAN_TCI, or VLAN_ID and VLAN_PCP, or with `ANNO` the VLAN
/// annotation. Frames of NATIVE_VLAN stay without.
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
#[element(room = "vlan", args = Fields, methods)]
pub struct VLANEncap {
    tag: Tag,
    native: Native,
    ethertype: u16,
}

#[derive(Args)]
pub struct Fields {
    /// The tag whole, or `ANNO`; 0 if nothing says otherwise.
    #[arg]
    vlan_tci: Option<Tag>,
    /// The priority, 0 to 7.
    #[arg]
    vlan_pcp: Option<u8>,
    /// The VLAN, instead of VLAN_TCI.
    #[arg(keyword)]
    vlan_id: Option<u16>,
    /// Which VLAN's frames have no tag, -1 for none.
    #[arg(keyword, default = Native::ZERO)]
    native_vlan: Native,
    /// The type that says that a tag follows.
    #[arg(keyword, default = ether_type::VLAN)]
    ethertype: u16,
}

impl Build for VLANEncap {
    type Args = Fields;
    fn build(args: Fields, _: &Setup) -> Result<Self, ArgError> {
        let tag = Tag::new(args.vlan_tci, args.vlan_id, args.vlan_pcp)?;
        Ok(VLANEncap { tag, native: args.native_vlan, ethertype: args.ethertype })
    }
}

#[handlers]
impl VLANEncap {
    /// The tag whole.
    #[read]
    fn vlan_tci(&self) -> Tag {
        self.tag
    }
    /// Sets the tag.
    #[write(vlan_tci)]
    fn set_vlan_tci(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(VLANEncap { tag: Tag::from_arg(text, names)?, ..self.clone() })
    }
    /// The VLAN.
    #[read]
    fn vlan_id(&self) -> String {
        self.tag.id()
    }
    /// Sets the VLAN.
    #[write(vlan_id)]
    fn set_vlan_id(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(VLANEncap { tag: self.tag.with_id(u16::from_arg(text, names)?)?, ..self.clone() })
    }
    /// The priority.
    #[read]
    fn vlan_pcp(&self) -> String {
        self.tag.pcp()
    }
    /// Sets the priority.
    #[write(vlan_pcp)]
    fn set_vlan_pcp(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(VLANEncap { tag: self.tag.with_pcp(u8::from_arg(text, names)?)?, ..self.clone() })
    }
    /// The VLAN without tag.
    #[read]
    fn native_vlan(&self) -> Native {
        self.native
    }
    /// Sets the VLAN without tag.
    #[write(native_vlan)]
    fn set_native_vlan(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(VLANEncap { native: Native::from_arg(text, names)?, ..self.clone() })
    }
}

impl PerPacket for VLANEncap {
    type On = on::Ether;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), ether: Ether) {
        let packet = ether.into_packet();
        let tci = self.tag.of(packet);
        if !self.native.is(tci) {
            packet.push_front(Vlan::LEN);
            vlan::insert(packet.bytes_mut(), self.ethertype, tci);
            packet.set_mac_header(0);
        }
    }
}
