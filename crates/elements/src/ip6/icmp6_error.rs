//! `ICMP6Error`: sends ICMPv6 errors and redirects about IPv6 packets.

use super::icmp6_error_message::ErrorMessage;
use castanet_element::prelude::*;
use castanet_element::wire::icmp6;
use castanet_kit::icmp6_error::{self, Suppression};

/// Turns IPv6 packets into ICMPv6 errors or redirects to their senders.
///
/// The element sends no error about an ICMPv6 error, a redirect, a packet to a
/// multicast group, or a packet whose source is not the address of one host
/// (RFC 4443, 2.4). An error quotes as much of the packet as fits into 1280
/// bytes. Type 2 contains PMTU, type 4 the offset in the parameter problem
/// annotation, and type 137 (redirect) the gateway in the destination
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
#[element(room = "ip6", args = ICMP6ErrorArgs, methods, headers = Gives(FirstHeader::Ip6, MarkedHeader::Ip6))]
pub struct ICMP6Error {
    message: ErrorMessage,
}

#[derive(Args)]
pub struct ICMP6ErrorArgs {
    /// Source address of the errors.
    #[arg]
    src: Ipv6Addr,
    /// ICMPv6 type: 1 unreachable, 2 too big, 3 time exceeded, 4 parameter problem, 137 redirect.
    #[arg(name = "TYPE")]
    kind: u8,
    /// ICMPv6 code.
    #[arg]
    code: u8,
    /// MTU in "packet too big" errors, in bytes.
    #[arg(keyword, default = 1500)]
    pmtu: u32,
}

impl Build for ICMP6Error {
    type Args = ICMP6ErrorArgs;
    fn build(args: ICMP6ErrorArgs, _: &Setup) -> Result<Self, ArgError> {
        let ICMP6ErrorArgs { src, kind, code, pmtu } = args;
        if src.is_unspecified() {
            return Err(ArgError::new("is nobody's address").at("SRC").click("not configured -a"));
        }
        if !matches!(kind, icmp6::UNREACHABLE..=icmp6::PARAMETER_PROBLEM | icmp6::REDIRECT) {
            let error = format!("ICMP6 type {kind} is not an error or redirect type");
            return Err(ArgError::new(error));
        }
        Ok(ICMP6Error { message: ErrorMessage { src, kind, code, pmtu } })
    }
}

#[handlers]
impl ICMP6Error {
    /// Source address of the errors.
    #[read]
    fn src(&self) -> Ipv6Addr {
        self.message.src
    }
    /// Sets the source address of the errors.
    #[write(src)]
    fn set_src(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let src = Ipv6Addr::from_arg(text, names)?;
        Ok(ICMP6Error { message: ErrorMessage { src, ..self.message } })
    }
}

/// Exits.
#[derive(Fate)]
pub enum ICMP6ErrorExit {
    /// ICMPv6 errors and redirects.
    Error,
    /// Packets that are ICMPv6 errors or redirects themselves.
    #[drop]
    AboutError,
    /// Packets to a multicast group.
    #[drop]
    GroupDestination,
    /// Packets that arrived as link-level broadcasts or multicasts.
    #[drop]
    LinkGroup,
    /// Packets whose source is not the address of one host.
    #[drop]
    BadSource,
    /// Later fragments of ICMPv6 messages.
    #[drop]
    LaterFragment,
}

/// The time of the burst.
#[derive(Default, Local)]
pub struct ICMP6ErrorState {
    now: Time,
}

impl PerPacket for ICMP6Error {
    type On = on::Ipv6;
    type Local = ICMP6ErrorState;
    type Fate = ICMP6ErrorExit;

    #[inline]
    fn begin_burst(&self, state: &mut ICMP6ErrorState, now: Time) {
        state.now = now;
    }

    #[inline]
    fn packet(&self, state: &mut ICMP6ErrorState, ip: Ipv6) -> ICMP6ErrorExit {
        use PacketType::{Broadcast, Multicast};
        let is_link_group = matches!(ip.packet().packet_type(), Broadcast | Multicast);
        let ErrorMessage { kind, code, .. } = self.message;
        match icmp6_error::check_allowed(ip.packet().network_bytes(), kind, code, is_link_group) {
            Err(Suppression::Malformed | Suppression::AboutError) => {
                return ICMP6ErrorExit::AboutError;
            }
            Err(Suppression::GroupDestination) => return ICMP6ErrorExit::GroupDestination,
            Err(Suppression::LinkGroup) => return ICMP6ErrorExit::LinkGroup,
            Err(Suppression::BadSource) => return ICMP6ErrorExit::BadSource,
            Err(Suppression::LaterFragment) => return ICMP6ErrorExit::LaterFragment,
            Ok(()) => {}
        }
        let (src, dst) = (ip.src(), ip.dst());
        self.message.apply(ip.into_packet(), src, dst, state.now);
        ICMP6ErrorExit::Error
    }
}
