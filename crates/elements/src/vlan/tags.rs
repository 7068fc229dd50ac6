//! What the VLAN elements share: tags as arguments and as annotations.

use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_engine::wire::Vlan;

/// Tag control information, or that the annotation has it.
#[derive(Clone, Copy)]
pub enum Tag {
    Is(u16),
    Annotation,
}

impl FromArg for Tag {
    const SYNTAX: &'static str = "a number from 0 to 65535 or ANNO";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        match text {
            "ANNO" => Ok(Tag::Annotation),
            _ => u16::from_arg(text, names).map(Tag::Is),
        }
    }
}

impl From<Tag> for Value {
    fn from(tag: Tag) -> Value {
        match tag {
            Tag::Is(tci) => tci.into(),
            Tag::Annotation => "ANNO".into(),
        }
    }
}

/// The largest VLAN.
const MOST: u16 = Vlan::ID_MASK;

impl Tag {
    /// What the arguments VLAN_TCI, VLAN_ID and VLAN_PCP say together.
    pub(crate) fn new(tci: Option<Tag>, id: Option<u16>, pcp: Option<u8>) -> Result<Tag, ArgError> {
        let tag = match (tci, id) {
            (Some(_), Some(_)) => return Err(ArgError::new("VLAN_TCI and VLAN_ID conflict")),
            (None, None) => Tag::Is(0),
            (Some(tag), None) => tag,
            (None, Some(id)) => Tag::Is(0).with_id(id)?,
        };
        pcp.map_or(Ok(tag), |pcp| tag.with_pcp(pcp))
    }

    pub(crate) fn with_id(self, id: u16) -> Result<Tag, ArgError> {
        if id > MOST {
            return Err(ArgError::new("out of range, limit 4095").at("VLAN_ID"));
        }
        Ok(self.changed(|tag| tag.set_id(id)))
    }

    pub(crate) fn with_pcp(self, pcp: u8) -> Result<Tag, ArgError> {
        if pcp > 7 {
            return Err(ArgError::new("out of range, limit 7").at("VLAN_PCP"));
        }
        Ok(self.changed(|tag| tag.set_priority(pcp)))
    }

    fn changed(self, change: impl Fn(&mut Vlan)) -> Tag {
        let Tag::Is(tci) = self else { return self };
        let mut tag = Vlan([0; Vlan::LEN]);
        tag.set_tci(tci);
        change(&mut tag);
        Tag::Is(tag.tci())
    }

    /// The VLAN, if it is not the annotation's.
    pub(crate) fn id(self) -> String {
        self.part(|tag| tag.id().to_string())
    }

    /// The priority, if it is not the annotation's.
    pub(crate) fn pcp(self) -> String {
        self.part(|tag| tag.priority().to_string())
    }

    fn part(self, part: impl Fn(&Vlan) -> String) -> String {
        let Tag::Is(tci) = self else { return "ANNO".to_owned() };
        let mut tag = Vlan([0; Vlan::LEN]);
        tag.set_tci(tci);
        part(&tag)
    }

    /// The tag for a packet.
    #[inline]
    pub(crate) fn of(self, packet: &Packet) -> u16 {
        match self {
            Tag::Is(tci) => tci,
            Tag::Annotation => annotation(packet),
        }
    }
}

/// The VLAN of no tag: -1 for none, or one to 4095.
#[derive(Clone, Copy)]
pub struct Native(i32);

impl Native {
    pub(crate) const ZERO: Native = Native(0);

    /// The VLAN, if there is one.
    #[inline]
    pub(crate) fn id(self) -> Option<u16> {
        u16::try_from(self.0).ok()
    }

    /// Whether packets of this VLAN have no tag.
    #[inline]
    pub(crate) fn is(self, tci: u16) -> bool {
        self.0 == i32::from(tci & Vlan::ID_MASK)
    }
}

impl FromArg for Native {
    const SYNTAX: &'static str = "a number from -1 to 4095";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        let number = i32::from_arg(text, names)?;
        let fits = (-1..=i32::from(MOST)).contains(&number);
        fits.then_some(Native(number)).ok_or_else(|| ArgError::new("out of range, limit 4095"))
    }
}

impl From<Native> for Value {
    fn from(native: Native) -> Value {
        native.0.into()
    }
}

/// The annotation, in network order as in Click.
#[inline]
pub(crate) fn annotation(packet: &Packet) -> u16 {
    u16::from_be_bytes(packet.anno_bytes(anno::VLAN_TCI))
}

/// Sets the annotation.
#[inline]
pub(crate) fn annotate(packet: &mut Packet, tci: u16) {
    packet.set_anno_bytes(anno::VLAN_TCI, tci.to_be_bytes());
}
