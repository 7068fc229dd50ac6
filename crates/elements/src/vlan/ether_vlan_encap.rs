//! `EtherVLANEncap`: one Ethernet header with a VLAN tag for all.

use super::tags::{Native, Tag};
use castanet_engine::prelude::*;
use castanet_engine::wire::{Ethernet, Vlan, ether_type, vlan};

/// Puts an Ethernet header with a VLAN tag before each packet.
///
/// VLAN_TCI has VLAN and priority in one, or is `ANNO` for those of the
/// annotation; VLAN_ID is the VLAN alone. Packets of NATIVE_VLAN, whatever their
/// priority, get a header without tag.
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
#[element(room = "vlan", args = Fields, methods, gives = "ether", alias = "EtherVlanEncap")]
pub struct EtherVLANEncap {
    ethertype: u16,
    src: MacAddr,
    dst: MacAddr,
    tag: Tag,
    native: Native,
}

#[derive(Args)]
pub struct Fields {
    /// What follows the tag.
    #[arg]
    ethertype: u16,
    /// Source address.
    #[arg]
    src: MacAddr,
    /// Destination address.
    #[arg]
    dst: MacAddr,
    /// The tag whole, or `ANNO`; 0 if nothing says otherwise.
    #[arg]
    vlan_tci: Option<Tag>,
    /// The priority, 0 to 7.
    #[arg]
    vlan_pcp: Option<u8>,
    /// The VLAN, instead of VLAN_TCI.
    #[arg(keyword)]
    vlan_id: Option<u16>,
    /// Which VLAN's packets get no tag, -1 for none.
    #[arg(keyword, default = Native::ZERO)]
    native_vlan: Native,
}

impl Build for EtherVLANEncap {
    type Args = Fields;
    fn build(args: Fields, _: &Setup) -> Result<Self, ArgError> {
        let tag = Tag::new(args.vlan_tci, args.vlan_id, args.vlan_pcp)?;
        let Fields { ethertype, src, dst, native_vlan: native, .. } = args;
        Ok(EtherVLANEncap { ethertype, src, dst, tag, native })
    }
}

#[handlers]
impl EtherVLANEncap {
    /// The tag whole.
    #[read]
    fn vlan_tci(&self) -> Tag {
        self.tag
    }
    /// Sets the tag.
    #[write(vlan_tci)]
    fn set_vlan_tci(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(EtherVLANEncap { tag: Tag::from_arg(text, names)?, ..self.clone() })
    }
    /// The VLAN.
    #[read]
    fn vlan_id(&self) -> String {
        self.tag.id()
    }
    /// Sets the VLAN.
    #[write(vlan_id)]
    fn set_vlan_id(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(EtherVLANEncap { tag: self.tag.with_id(u16::from_arg(text, names)?)?, ..self.clone() })
    }
    /// The priority.
    #[read]
    fn vlan_pcp(&self) -> String {
        self.tag.pcp()
    }
    /// Sets the priority.
    #[write(vlan_pcp)]
    fn set_vlan_pcp(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(EtherVLANEncap { tag: self.tag.with_pcp(u8::from_arg(text, names)?)?, ..self.clone() })
    }
    /// What follows the tag.
    #[read]
    fn ethertype(&self) -> u16 {
        self.ethertype
    }
    /// Sets what follows the tag.
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
    /// The VLAN without tag.
    #[read]
    fn native_vlan(&self) -> Native {
        self.native
    }
    /// Sets the VLAN without tag.
    #[write(native_vlan)]
    fn set_native_vlan(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(EtherVLANEncap { native: Native::from_arg(text, names)?, ..self.clone() })
    }
}

impl PerPacket for EtherVLANEncap {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), packet: &mut Packet) {
        let tci = self.tag.of(packet);
        let header = Ethernet::new(self.dst, self.src, self.ethertype);
        packet.push_front(Ethernet::LEN).copy_from_slice(header.bytes());
        if !self.native.is(tci) {
            packet.push_front(Vlan::LEN);
            vlan::insert(packet.bytes_mut(), ether_type::VLAN, tci);
        }
        packet.set_mac_header(0);
    }
}
