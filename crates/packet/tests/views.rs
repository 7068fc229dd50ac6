//! Views whose header is taken away: their methods panic, and none gives bytes outside the packet.

use castanet_packet::Packet;
use std::panic::{AssertUnwindSafe, catch_unwind};

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// An Ethernet frame with 40 bytes of this protocol, its headers marked.
fn ip4(protocol: u8) -> Packet {
    let mut bytes = vec![0; 74];
    (bytes[12], bytes[14], bytes[17], bytes[23]) = (8, 0x45, 60, protocol);
    bytes[46] = 0x50;
    let mut packet = Packet::from_bytes(&bytes);
    packet.set_mac_header(0);
    packet.set_network_header(14, 20);
    packet
}

/// The same over IPv6.
fn ip6(protocol: u8) -> Packet {
    let mut bytes = vec![0; 94];
    (bytes[14], bytes[19], bytes[20]) = (0x60, 40, protocol);
    let mut packet = Packet::from_bytes(&bytes);
    packet.set_mac_header(0);
    packet.set_network_header(14, 40);
    packet
}

/// Whether asking panics; what does not must be empty, or bytes of the packet.
fn is_refused<T: AsRef<[u8]>>(ask: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(|| _ = ask())).is_err()
}

/// Asks a view of a packet, after `$take` took its header away, for everything that it has.
macro_rules! all_refuse {
    ($packet:expr, $view:ident, $take:expr, [$($method:ident)*]) => {{
        for shared in [false, true] {
            $({
                let mut packet: Packet = $packet;
                let twin = shared.then(|| packet.share());
                let mut view = packet.$view().expect("is marked");
                $take(view.packet_mut());
                assert!(
                    is_refused(|| view.$method().to_vec()),
                    "{}.{} of a header that is gone",
                    stringify!($view),
                    stringify!($method)
                );
                drop((packet, twin));
            })*
        }
    }};
}

#[test]
fn without_a_transport_header_views_of_it_refuse() {
    let clear = Packet::clear_transport_header;
    all_refuse!(ip4(UDP), udp, clear, [payload payload_mut bytes]);
    all_refuse!(ip4(TCP), tcp, clear, [payload payload_mut options options_mut bytes]);
    all_refuse!(ip4(ICMP), icmp, clear, [payload payload_mut bytes]);
    all_refuse!(ip6(ICMP6), icmp6, clear, [payload payload_mut bytes]);
}

#[test]
fn without_a_network_header_views_of_it_refuse() {
    let clear = Packet::clear_network_header;
    all_refuse!(ip6(UDP), ipv6, clear, [payload payload_mut datagram datagram_mut bytes]);
}

#[test]
fn behind_the_end_there_is_nothing() {
    fn cut(packet: &mut Packet) {
        packet.truncate(0);
    }
    let mut packet = ip4(ICMP);
    let mut icmp = packet.icmp().expect("is marked");
    cut(icmp.packet_mut());
    assert!(icmp.payload().is_empty() && icmp.payload_mut().is_empty());
    let mut packet = ip4(UDP);
    let mut ether = packet.ether().expect("is long enough");
    cut(ether.packet_mut());
    assert!(ether.payload().is_empty() && ether.payload_mut().is_empty());
    let mut bytes = [0; 42];
    (bytes[12], bytes[13]) = (8, 6);
    let mut packet = Packet::from_bytes(&bytes);
    let mut arp = packet.arp().expect("says so");
    cut(arp.packet_mut());
    assert!(arp.payload().is_empty() && arp.payload_mut().is_empty());
}

#[test]
fn a_panicking_view_leaves_the_packet_usable() {
    let mut packet = ip4(ICMP);
    let mut icmp = packet.icmp().expect("is marked");
    icmp.packet_mut().clear_transport_header();
    assert!(is_refused(|| {
        icmp.payload_mut().fill(0xff);
        []
    }));
    assert_eq!(packet.len(), 74);
    assert_eq!(packet.copy().bytes(), packet.bytes());
    assert!(packet.icmp().is_none());
}
