//! `ICMPPingResponder`: answers pings.

use castanet_engine::prelude::*;
use castanet_engine::wire::icmp;

/// Turns ICMP echo requests into their replies.
///
/// Whatever host a request was for is the one that answers. Other packets
/// leave by output 1, if that is connected.
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
#[element(room = "icmp")]
pub struct ICMPPingResponder;

#[derive(Fate)]
pub enum Answer {
    /// Replies.
    Reply,
    /// Packets that are no echo request.
    #[optional]
    Other,
}

/// The burst's time.
#[derive(Default, Local)]
pub struct Clock {
    now: Time,
}

/// As far as a packet can travel.
const TTL: u8 = 255;

impl PerPacket for ICMPPingResponder {
    type On = on::Ipv4;
    type Local = Clock;
    type Fate = Answer;

    #[inline]
    fn burst(&self, clock: &mut Clock, now: Time) {
        clock.now = now;
    }

    #[inline]
    fn packet(&self, clock: &mut Clock, mut ip: Ipv4) -> Answer {
        let request = ip.packet().icmp_header().is_some_and(|icmp| icmp.kind() == icmp::ECHO);
        if !request {
            return Answer::Other;
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
        packet.set_timestamp(clock.now.0);
        if let Some(mut icmp) = packet.icmp() {
            icmp.rewrite_kind(icmp::ECHO_REPLY);
            icmp.normalize_zero_checksum();
        }
        Answer::Reply
    }
}
