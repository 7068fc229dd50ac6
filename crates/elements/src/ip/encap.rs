//! Arguments, identification counter and exits of the elements that prepend IP headers.

use castanet_element::prelude::*;
use castanet_element::wire::{Ipv4Header, names};

/// Exits of the elements that prepend headers.
#[derive(Fate)]
pub enum EncapExit {
    /// Encapsulated packets.
    Encapsulated,
    /// Packets that would be longer than 65535 bytes with their headers.
    #[drop]
    TooLong,
}

/// Counter of the identifications of IPv4 headers.
#[derive(Default, Local)]
pub struct IdCounter {
    next: u16,
}

impl IdCounter {
    /// Returns the next identification, from 0 on.
    #[inline]
    pub(crate) fn next(&mut self) -> u16 {
        let id = self.next;
        self.next = id.wrapping_add(1);
        id
    }

    /// Returns the next identification, from 1 on, never 0.
    #[inline]
    pub(crate) fn next_nonzero(&mut self) -> u16 {
        self.next = self.next.checked_add(1).unwrap_or(1);
        self.next
    }
}

/// Destination of IPv4 packets: a configured address, or the destination annotation.
#[derive(Clone, Copy)]
pub enum Destination {
    Address(Ipv4Addr),
    Annotation,
}

impl FromArg for Destination {
    const SYNTAX: &'static str = "an IPv4 address or DST_ANNO";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        if text == "DST_ANNO" {
            return Ok(Destination::Annotation);
        }
        Ipv4Addr::from_arg(text, names).map(Destination::Address).map_err(|_| {
            ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("DST argument should be IP address or 'DST_ANNO'")
        })
    }
}

impl From<Destination> for Value {
    fn from(dst: Destination) -> Value {
        match dst {
            Destination::Address(address) => address.into(),
            Destination::Annotation => "DST_ANNO".into(),
        }
    }
}

impl Destination {
    /// Returns the destination of `packet`, after setting its annotation to a configured address.
    #[inline]
    pub(crate) fn set_and_get(self, packet: &mut Packet) -> Ipv4Addr {
        if let Destination::Address(address) = self {
            packet.set_dst(address);
        }
        packet.dst()
    }
}

/// Destination of IPv6 packets: a configured address, or the IPv6 destination annotation.
#[derive(Clone, Copy)]
pub enum Destination6 {
    Address(Ipv6Addr),
    Annotation,
}

impl FromArg for Destination6 {
    const SYNTAX: &'static str = "an IPv6 address or DST_ANNO";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        if text == "DST_ANNO" {
            return Ok(Destination6::Annotation);
        }
        Ipv6Addr::from_arg(text, names).map(Destination6::Address).map_err(|_| {
            ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("DST argument should be IP6 address or 'DST_ANNO'")
        })
    }
}

impl From<Destination6> for Value {
    fn from(dst: Destination6) -> Value {
        match dst {
            Destination6::Address(address) => address.into(),
            Destination6::Annotation => "DST_ANNO".into(),
        }
    }
}

impl Destination6 {
    /// Returns the destination of `packet`, after setting its annotation to a configured address.
    #[inline]
    pub(crate) fn set_and_get(self, packet: &mut Packet) -> Ipv6Addr {
        if let Destination6::Address(address) = self {
            packet.set_dst6(address);
        }
        packet.dst6()
    }
}

/// An IP protocol, as an argument by name or number.
#[derive(Clone, Copy)]
pub struct ProtocolNumber(u8);

impl ProtocolNumber {
    /// The protocol number.
    pub(crate) fn number(self) -> u8 {
        self.0
    }
}

impl FromArg for ProtocolNumber {
    const SYNTAX: &'static str = "an IP protocol";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let error = || ArgError::new(format!("`{text}` is not {}", Self::SYNTAX));
        names::protocol_number(text).map(ProtocolNumber).ok_or_else(error)
    }
}

/// ECN codepoint of the argument ECT: 0 for `false`, 1 (ECT(1)) for `true`, 2 (ECT(0)) for `2`.
pub struct Ect(u8);

impl FromArg for Ect {
    const SYNTAX: &'static str = "true, false or 2";
    fn from_arg(text: &str, names: &Names) -> Result<Self, ArgError> {
        match text {
            // ECT(0) is binary 10 (RFC 3168, 5).
            "2" => Ok(Ect(2)),
            _ => match bool::from_arg(text, names) {
                Ok(ect) => Ok(Ect(ect.into())),
                Err(error) => Err(error.click(format!("bad ECT value '{text}'"))),
            },
        }
    }
}

#[derive(Args)]
pub struct IPEncapArgs {
    /// Protocol of the payload, by name or number.
    #[arg]
    proto: ProtocolNumber,
    /// Source address.
    #[arg]
    src: Ipv4Addr,
    /// Destination address, or `DST_ANNO`.
    #[arg]
    pub(crate) dst: Destination,
    /// Time to live.
    #[arg(keyword, default = 250)]
    ttl: u8,
    /// Type of service, the whole byte.
    #[arg(keyword)]
    tos: Option<u8>,
    /// Differentiated services code point, 0 to 63.
    #[arg(keyword)]
    dscp: Option<u8>,
    /// Whether the transport supports ECN: `true` sets ECT(1), `2` sets ECT(0).
    #[arg(keyword, default = Ect(0))]
    ect: Ect,
    /// Whether to set the ECN codepoint CE (congestion experienced).
    #[arg(keyword, default = false)]
    ce: bool,
    /// Whether to set DF (don't fragment).
    #[arg(keyword, default = false)]
    df: bool,
}

impl IPEncapArgs {
    /// Builds the header without destination, length, identification and checksum.
    pub(crate) fn header(&self) -> Result<Ipv4Header, ArgError> {
        let mut header = Ipv4Header::new(self.proto.0, self.src, Ipv4Addr::UNSPECIFIED, 0);
        header.set_tos(self.tos()?);
        header.set_ttl(self.ttl);
        header.set_dont_fragment(self.df);
        Ok(header)
    }

    fn tos(&self) -> Result<u8, ArgError> {
        let error = |text| Err(ArgError::new(text));
        match (self.tos, self.dscp, self.ect.0, self.ce) {
            (Some(_), Some(_), _, _) => error("cannot set both TOS and DSCP"),
            (Some(_), _, 1.., _) | (Some(_), _, _, true) => {
                error("cannot set both TOS and ECN bits")
            }
            (_, Some(64..), _, _) => error("DSCP too large; max 63"),
            (_, _, 1.., true) => error("can set at most one ECN option"),
            (tos, dscp, ect, ce) => {
                let mut header = Ipv4Header([0; Ipv4Header::LEN]);
                header.set_tos(tos.unwrap_or(0));
                dscp.into_iter().for_each(|dscp| header.set_dscp(dscp));
                match if ce { 3 } else { ect } {
                    0 => {}
                    ecn => header.set_ecn(ecn),
                }
                Ok(header.tos())
            }
        }
    }
}
