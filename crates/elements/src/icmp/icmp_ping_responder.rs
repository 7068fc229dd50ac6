//! `ICMPPingResponder`: answers ICMP echo requests.

use castanet_element::prelude::*;
use castanet_element::wire::icmp;

/// Answers ICMP echo requests (pings) to any address.
///
/// The source of a reply is the destination of its request. Other packets leave
/// by output 1, if it is connected.
///
/// ```click
/// in -> r :: ICMPPingResponder -> out;  r[1] -> other
/// > in    1.0.0.1 > 2.0.0.2 ttl 3 df icmp type echo ident 7 seq 9 "data" ; paint 3
/// > in    1.0.0.1 > 2.0.0.2 udp
/// < out   2.0.0.2 > 1.0.0.1 ttl 255 icmp type echo-reply ident 7 seq 9 "data" ; paint 0 dst 1.0.0.1
/// < other 1.0.0.1 > 2.0.0.2 udp
/// > in    1.0.0.1 > 2.0.0.2 icmp type echo ident 0 seq 0
/// < out   2.0.0.2 > 1.0.0.1 ttl 255 icmp type echo-reply ident 0 seq 0 check 65535
/// ```
#[derive(Element)]
#[element(room = "icmp", headers = Pass)]
pub struct ICMPPingResponder;

#[derive(Fate)]
pub enum ICMPPingResponderExit {
    /// Echo replies.
    Reply,
    /// Packets that are not echo requests.
    #[optional]
    Other,
}

/// The time of the burst.
#[derive(Default, Local)]
pub struct ICMPPingResponderState {
    now: Time,
}

/// TTL of replies, the maximum.
const TTL: u8 = 255;

impl PerPacket for ICMPPingResponder {
    type On = on::Ipv4;
    type Local = ICMPPingResponderState;
    type Fate = ICMPPingResponderExit;

    #[inline]
    fn begin_burst(&self, state: &mut ICMPPingResponderState, now: Time) {
        state.now = now;
    }

    #[inline]
    fn packet(&self, state: &mut ICMPPingResponderState, mut ip: Ipv4) -> ICMPPingResponderExit {
        let is_request = ip.packet().icmp_header().is_some_and(|icmp| icmp.kind() == icmp::ECHO);
        if !is_request {
            return ICMPPingResponderExit::Other;
        }
        let src = ip.src();
        let dst = ip.dst();
        ip.set_src(dst);
        ip.set_dst(src);
        ip.rewrite_fragment_word(0);
        ip.rewrite_ttl(TTL);
        let packet = ip.into_packet();
        packet.set_dst(src);
        packet.set_paint(0);
        packet.set_timestamp(state.now.0);
        if let Some(mut icmp) = packet.icmp() {
            icmp.rewrite_kind(icmp::ECHO_REPLY);
            icmp.normalize_zero_checksum();
        }
        ICMPPingResponderExit::Reply
    }
}
