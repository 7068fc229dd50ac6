//! `ICMPIPEncap`: prepends ICMP and IPv4 headers.

use crate::ip::encap::{EncapExit, IdCounter};
use castanet_element::prelude::*;
use castanet_element::wire::{Icmp, Ipv4Header, icmp, ip_proto, names};
use castanet_kit::text::parse_integer;

/// Prepends an ICMP header and an IPv4 header to each packet.
///
/// TYPE and CODE are numbers from 0 to 255 or names such as `unreachable` and
/// `port`. The ICMP header has 20 bytes for timestamps and 8 bytes for all other
/// types. Echo, timestamp and information messages have IDENTIFIER, and the
/// IPv4 identification as their sequence number; in all other messages these
/// bytes are zero. The identification counts from 1 and is never 0.
///
/// ```click
/// in -> e :: ICMPIPEncap(1.0.0.1, 2.0.0.2, echo, IDENTIFIER 7) -> out
/// > in  hex 61 62 63
/// < out 1.0.0.1 > 2.0.0.2 icmp ttl 255 id 1 type echo ident 7 seq 1 "abc" ; dst 2.0.0.2 network 0
/// ! e.dst 2.0.0.3
/// ! e.src 1.0.0.9
/// = e.src 1.0.0.9
/// = e.dst 2.0.0.3
/// > in  hex 61
/// < out 1.0.0.9 > 2.0.0.3 icmp ttl 255 id 2 type echo ident 7 seq 2 "a" ; dst 2.0.0.3
/// > in  1.0.0.1 > 2.0.0.2 udp len 65508
/// = e.drops.too_long 1
/// ```
/// ```click
/// a -> ICMPIPEncap(1.0.0.1, 2.0.0.2, unreachable, port, IDENTIFIER 7) -> b
/// c -> ICMPIPEncap(1.0.0.1, 2.0.0.2, 0x11, CODE 3, IDENTIFIER 7) -> d
/// > a 1.0.0.9:5 > 2.0.0.9:6 udp
/// > c hex 61
/// < b 1.0.0.1 > 2.0.0.2 icmp ttl 255 id 1 type unreachable code 3 [1.0.0.9:5 > 2.0.0.9:6 udp]
/// < d 1.0.0.1 > 2.0.0.2 icmp ttl 255 id 1 type maskreq code 3 "a"
/// ```
/// ```click
/// in -> ICMPIPEncap(1.0.0.1, 2.0.0.2, timestamp, IDENTIFIER 7) -> out
/// > in  hex 61
/// > in  hex
/// < out 1.0.0.1 > 2.0.0.2 icmp ttl 255 id 1 type timestamp ident 7 seq 1 data 00000000000000000000000061
/// < out 1.0.0.1 > 2.0.0.2 icmp ttl 255 id 2 type timestamp ident 7 seq 2 data 000000000000000000000000
/// ```
#[derive(Clone, Element)]
#[element(room = "icmp", args = ICMPIPEncapArgs, methods, gives = "ip", headers = Gives(FirstHeader::Ip, MarkedHeader::Ip))]
pub struct ICMPIPEncap {
    src: Ipv4Addr,
    dst: Ipv4Addr,
    kind: u8,
    code: u8,
    identifier: u16,
}

/// Time to live of the packets.
const TTL: u8 = 255;

#[derive(Args)]
pub struct ICMPIPEncapArgs {
    /// Source address.
    #[arg]
    src: Ipv4Addr,
    /// Destination address.
    #[arg]
    dst: Ipv4Addr,
    /// Message type, by name or number.
    #[arg(name = "TYPE")]
    kind: String,
    /// Message code, by a name of the type or by number.
    #[arg(default = "0".to_owned())]
    code: String,
    /// Identifier of echo, timestamp and information messages.
    #[arg(keyword, default = 0)]
    identifier: u16,
}

impl Build for ICMPIPEncap {
    type Args = ICMPIPEncapArgs;
    fn build(args: ICMPIPEncapArgs, _: &Setup) -> Result<Self, ArgError> {
        let ICMPIPEncapArgs { src, dst, kind, code, identifier } = args;
        let kind = names::icmp_type_number(&kind).ok_or_else(|| {
            let error = ArgError::new(format!("TYPE `{kind}` is no ICMP type"));
            let number = parse_integer(&kind).is_some();
            let error = error.click(if number { "invalid TYPE" } else { "TYPE: type mismatch" });
            error.help("a number from 0 to 255, or a name such as echo or unreachable")
        })?;
        let code = names::icmp_code_number(kind, &code).ok_or_else(|| {
            let error = ArgError::new(format!("CODE `{code}` is no code of ICMP type {kind}"));
            error.click("invalid CODE").help("a number from 0 to 255, or a name of this type")
        })?;
        Ok(ICMPIPEncap { src, dst, kind, code, identifier })
    }
}

#[handlers]
impl ICMPIPEncap {
    /// Source address.
    #[read]
    fn src(&self) -> Ipv4Addr {
        self.src
    }
    /// Sets the source address.
    #[write(src)]
    fn set_src(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(ICMPIPEncap { src: Ipv4Addr::from_arg(text, names)?, ..self.clone() })
    }
    /// Destination address.
    #[read]
    fn dst(&self) -> Ipv4Addr {
        self.dst
    }
    /// Sets the destination address.
    #[write(dst)]
    fn set_dst(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(ICMPIPEncap { dst: Ipv4Addr::from_arg(text, names)?, ..self.clone() })
    }
}

impl PerPacket for ICMPIPEncap {
    type On = on::Any;
    type Local = IdCounter;
    type Fate = EncapExit;
    // All workers share one sequence.
    const SHARED: bool = true;

    fn packet(&self, ids: &mut IdCounter, packet: &mut Packet) -> EncapExit {
        let headers_len = Ipv4Header::LEN + icmp::header_len(self.kind);
        let Ok(len) = u16::try_from(headers_len + packet.len()) else { return EncapExit::TooLong };
        let id = ids.next_nonzero();
        packet.push_front(headers_len).fill(0);
        if let Some((ip, rest)) = Ipv4Header::from_prefix_mut(packet.bytes_mut())
            && let Some((message, payload)) = Icmp::from_prefix_mut(rest)
        {
            ip.fill((self.src, self.dst), (TTL, ip_proto::ICMP), (len, id));
            message.set_kind(self.kind);
            message.set_code(self.code);
            if icmp::has_sequence(self.kind) {
                message.set_id(self.identifier);
                message.set_seq(id);
            }
            message.update_checksum(payload);
        }
        packet.mark_ipv4(0, Ipv4Header::LEN as u16, len);
        packet.set_dst(self.dst);
        EncapExit::Encapsulated
    }
}
