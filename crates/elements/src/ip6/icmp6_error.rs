//! `ICMP6Error`: tells senders why their IPv6 packets went no further.

use super::icmp6_error_message::Message;
use castanet_engine::prelude::*;
use castanet_engine::wire::icmp6;
use castanet_kit::icmp6_error::{self, Suppression};

/// Turns IPv6 packets into the ICMPv6 errors about them, addressed to their senders.
///
/// No error is sent about an error, a redirect, a group's packet, or one whose
/// source is no host's (RFC 4443, 2.4). As much of the packet is quoted as 1280
/// bytes have room for. Type 2 tells PMTU, type 4 the byte in the annotation of
/// parameter problems, a redirect (137) the gateway in the destination
/// annotation.
///
/// ```click
/// in -> e :: ICMP6Error(9::9, 3, 0) -> out
/// > in  1::1 > 2::2 udp hop 1
/// > in  1::1 > 2::2 icmp6 type 1
/// > in  1::1 > ff02::2 udp
/// > in  1::1 > 2::2 udp ; type broadcast
/// > in  ::1 > 2::2 udp
/// > in  1::1 > 2::2 icmp6 frag 8
/// < out 9::9 > 1::1 icmp6 type 3 hop 255 [1::1 > 2::2 udp hop 1] ; dst6 1::1 fixipsrc 1
/// = e.drops.about_error 1
/// = e.drops.group_destination 1
/// = e.drops.link_group 1
/// = e.drops.bad_source 1
/// = e.drops.later_fragment 1
/// ! e.src 8::8
/// = e.src 8::8
/// ```
/// ```click
/// in -> ICMP6Error(9::9, 2, 0, PMTU 1400) -> out
/// > in  1::1 > 2::2 udp len 60
/// < out 9::9 > 1::1 icmp6 type 2 rest 1400 hop 255 [1::1 > 2::2 udp len 60]
/// ```
/// ```click
/// in -> ICMP6Error(9::9, 137, 0) -> out
/// > in  1::1 > 2::2 proto 9 data 01 ; dst6 fe80::3
/// < out 9::9 > 1::1 icmp6 type 137 hop 255 data fe800000000000000000000000000003000200000000000000000000000000020407000000000000600000000001094000010000000000000000000000000001000200000000000000000000000000020100000000000000
/// ```
#[derive(Clone, Element)]
#[element(room = "ip6", args = About, methods)]
pub struct ICMP6Error {
    message: Message,
}

#[derive(Args)]
pub struct About {
    /// Source address of the errors.
    #[arg]
    src: Ipv6Addr,
    /// Type: 1 unreachable, 2 too big, 3 time exceeded, 4 parameter problem, 137 redirect.
    #[arg(name = "TYPE")]
    kind: u8,
    /// Code.
    #[arg]
    code: u8,
    /// The MTU that "too big" tells.
    #[arg(keyword, default = 1500)]
    pmtu: u32,
}

impl Build for ICMP6Error {
    type Args = About;
    fn build(args: About, _: &Setup) -> Result<Self, ArgError> {
        let About { src, kind, code, pmtu } = args;
        if src.is_unspecified() {
            return Err(ArgError::new("is nobody's address").at("SRC").click("not configured -a"));
        }
        if !matches!(kind, icmp6::UNREACHABLE..=icmp6::PARAMETER_PROBLEM | icmp6::REDIRECT) {
            let error = format!("ICMP6 type {kind} is not an error or redirect type");
            return Err(ArgError::new(error));
        }
        Ok(ICMP6Error { message: Message { src, kind, code, pmtu } })
    }
}

#[handlers]
impl ICMP6Error {
    /// Source address of the errors.
    #[read]
    fn src(&self) -> Ipv6Addr {
        self.message.src
    }
    /// Changes the source address.
    #[write(src)]
    fn set_src(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let src = Ipv6Addr::from_arg(text, names)?;
        Ok(ICMP6Error { message: Message { src, ..self.message } })
    }
}

/// What becomes of a packet.
#[derive(Fate)]
pub enum Reply {
    /// Errors.
    Error,
    /// ICMPv6 errors and redirects.
    #[drop]
    AboutError,
    /// Packets to groups.
    #[drop]
    GroupDestination,
    /// Packets that the link sent to a group.
    #[drop]
    LinkGroup,
    /// Packets from what is no host's address.
    #[drop]
    BadSource,
    /// Fragments of ICMPv6 messages other than the first.
    #[drop]
    LaterFragment,
}

/// The burst's time.
#[derive(Default, Local)]
pub struct Clock {
    now: Time,
}

impl PerPacket for ICMP6Error {
    type On = on::Ipv6;
    type Local = Clock;
    type Fate = Reply;

    #[inline]
    fn burst(&self, clock: &mut Clock, now: Time) {
        clock.now = now;
    }

    #[inline]
    fn packet(&self, clock: &mut Clock, ip: Ipv6) -> Reply {
        use PacketType::{Broadcast, Multicast};
        let group = matches!(ip.packet().packet_type(), Broadcast | Multicast);
        let Message { kind, code, .. } = self.message;
        match icmp6_error::check_allowed(ip.packet().network_bytes(), kind, code, group) {
            Err(Suppression::Malformed | Suppression::AboutError) => return Reply::AboutError,
            Err(Suppression::GroupDestination) => return Reply::GroupDestination,
            Err(Suppression::LinkGroup) => return Reply::LinkGroup,
            Err(Suppression::BadSource) => return Reply::BadSource,
            Err(Suppression::LaterFragment) => return Reply::LaterFragment,
            Ok(()) => {}
        }
        let (src, dst) = (ip.src(), ip.dst());
        self.message.wrap(ip.into_packet(), src, dst, clock.now);
        Reply::Error
    }
}
