//! Tag control information (TCI) of the VLAN elements: as argument and as annotation.

use castanet_element::packet::anno;
use castanet_element::prelude::*;
use castanet_element::wire::Vlan;

/// Source of the tag control information: a configured value, or the VLAN annotation.
#[derive(Clone, Copy)]
pub enum TciSource {
    Fixed(u16),
    Annotation,
}

impl FromArg for TciSource {
    const SYNTAX: &'static str = "a number from 0 to 65535 or ANNO";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        match text {
            "ANNO" => Ok(TciSource::Annotation),
            _ => u16::from_arg(text, names).map(TciSource::Fixed),
        }
    }
}

impl From<TciSource> for Value {
    fn from(source: TciSource) -> Value {
        match source {
            TciSource::Fixed(tci) => tci.into(),
            TciSource::Annotation => "ANNO".into(),
        }
    }
}

/// Arguments of the elements that insert a tag.
#[derive(Args)]
pub(super) struct TagArgs {
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
    #[arg(keyword, default = NativeVlan::ZERO, shown = "0")]
    pub(super) native_vlan: NativeVlan,
}

impl TagArgs {
    pub(super) fn tci(&self) -> Result<TciSource, ArgError> {
        TciSource::new(self.vlan_tci, self.vlan_id, self.vlan_pcp)
    }
}

#[handlers]
impl TciSource {
    /// Tag control information, or `ANNO`.
    #[read]
    fn vlan_tci(&self) -> TciSource {
        *self
    }
    /// Sets the tag control information.
    #[write(vlan_tci)]
    fn set_vlan_tci(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        TciSource::from_arg(text, names)
    }
    /// VLAN ID, or `ANNO`.
    #[read]
    fn vlan_id(&self) -> String {
        self.id_text()
    }
    /// Sets the VLAN ID.
    #[write(vlan_id)]
    fn set_vlan_id(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.with_id(u16::from_arg(text, names)?)
    }
    /// Priority, or `ANNO`.
    #[read]
    fn vlan_pcp(&self) -> String {
        self.pcp_text()
    }
    /// Sets the priority.
    #[write(vlan_pcp)]
    fn set_vlan_pcp(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.with_pcp(u8::from_arg(text, names)?)
    }
}

#[handlers]
impl NativeVlan {
    /// VLAN ID whose frames get no tag.
    #[read]
    fn native_vlan(&self) -> NativeVlan {
        *self
    }
    /// Sets the VLAN ID whose frames get no tag.
    #[write(native_vlan)]
    fn set_native_vlan(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        NativeVlan::from_arg(text, names)
    }
}

/// The largest VLAN ID.
const MAX_ID: u16 = Vlan::ID_MASK;

impl TciSource {
    /// Combines the arguments VLAN_TCI, VLAN_ID and VLAN_PCP.
    pub(crate) fn new(
        tci: Option<TciSource>,
        id: Option<u16>,
        pcp: Option<u8>,
    ) -> Result<TciSource, ArgError> {
        let source = match (tci, id) {
            (Some(_), Some(_)) => return Err(ArgError::new("VLAN_TCI and VLAN_ID conflict")),
            (None, None) => TciSource::Fixed(0),
            (Some(source), None) => source,
            (None, Some(id)) => TciSource::Fixed(0).with_id(id)?,
        };
        pcp.map_or(Ok(source), |pcp| source.with_pcp(pcp))
    }

    pub(crate) fn with_id(self, id: u16) -> Result<TciSource, ArgError> {
        if id > MAX_ID {
            return Err(ArgError::new("out of range, bound 4095").at("VLAN_ID"));
        }
        Ok(self.map_tag(|tag| tag.set_id(id)))
    }

    pub(crate) fn with_pcp(self, pcp: u8) -> Result<TciSource, ArgError> {
        if pcp > 7 {
            return Err(ArgError::new("out of range, bound 7").at("VLAN_PCP"));
        }
        Ok(self.map_tag(|tag| tag.set_priority(pcp)))
    }

    /// Applies `change` to a configured value; the annotation stays as it is.
    fn map_tag(self, change: impl Fn(&mut Vlan)) -> TciSource {
        let TciSource::Fixed(tci) = self else { return self };
        let mut tag = Vlan([0; Vlan::LEN]);
        tag.set_tci(tci);
        change(&mut tag);
        TciSource::Fixed(tag.tci())
    }

    /// The configured VLAN ID as text, or `ANNO`.
    pub(crate) fn id_text(self) -> String {
        self.format_field(|tag| tag.id().to_string())
    }

    /// The configured priority as text, or `ANNO`.
    pub(crate) fn pcp_text(self) -> String {
        self.format_field(|tag| tag.priority().to_string())
    }

    fn format_field(self, format: impl Fn(&Vlan) -> String) -> String {
        let TciSource::Fixed(tci) = self else { return "ANNO".to_owned() };
        let mut tag = Vlan([0; Vlan::LEN]);
        tag.set_tci(tci);
        format(&tag)
    }

    /// The tag control information for a packet.
    #[inline]
    pub(crate) fn tci_for(self, packet: &Packet) -> u16 {
        match self {
            TciSource::Fixed(tci) => tci,
            TciSource::Annotation => tci_annotation(packet),
        }
    }
}

/// The native VLAN, whose frames have no tag: a VLAN ID from 0 to 4095, or -1 for none.
#[derive(Clone, Copy)]
pub struct NativeVlan(i32);

impl NativeVlan {
    pub(crate) const ZERO: NativeVlan = NativeVlan(0);

    /// The VLAN ID, if there is a native VLAN.
    #[inline]
    pub(crate) fn id(self) -> Option<u16> {
        u16::try_from(self.0).ok()
    }

    /// Whether the VLAN ID in `tci` is that of the native VLAN.
    #[inline]
    pub(crate) fn matches(self, tci: u16) -> bool {
        self.0 == i32::from(tci & Vlan::ID_MASK)
    }
}

impl FromArg for NativeVlan {
    const SYNTAX: &'static str = "a number from -1 to 4095";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let number = i32::from_arg(text, names)?;
        let fits = (-1..=i32::from(MAX_ID)).contains(&number);
        fits.then_some(NativeVlan(number)).ok_or_else(|| ArgError::new("out of range, bound 4095"))
    }
}

impl From<NativeVlan> for Value {
    fn from(native: NativeVlan) -> Value {
        native.0.into()
    }
}

/// Reads the VLAN annotation, which is in network byte order as in Click.
#[inline]
pub(crate) fn tci_annotation(packet: &Packet) -> u16 {
    u16::from_be_bytes(packet.anno_bytes(anno::VLAN_TCI))
}

/// Sets the VLAN annotation.
#[inline]
pub(crate) fn set_tci_annotation(packet: &mut Packet, tci: u16) {
    packet.set_anno_bytes(anno::VLAN_TCI, tci.to_be_bytes());
}
