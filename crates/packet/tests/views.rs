//! Tests of views whose header is removed: their methods panic, and none returns bytes outside the
//! packet.

use castanet_packet::Packet;
use std::panic::{AssertUnwindSafe, catch_unwind};

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// An Ethernet frame with 40 bytes of this protocol over IPv4, with header offsets.
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

/// Whether `call` panics.
fn panics<T: AsRef<[u8]>>(call: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(|| _ = call())).is_err()
}

/// Checks that all these methods of a view panic after `$remove` has removed its header.
macro_rules! all_panic {
    ($packet:expr, $view:ident, $remove:expr, [$($method:ident)*]) => {{
        for shared in [false, true] {
            $({
                let mut packet: Packet = $packet;
                let twin = shared.then(|| packet.share());
                let mut view = packet.$view().expect("is marked");
                $remove(view.packet_mut());
                assert!(
                    panics(|| view.$method().to_vec()),
                    "{}.{} of a removed header",
                    stringify!($view),
                    stringify!($method)
                );
                drop((packet, twin));
            })*
        }
    }};
}

#[test]
fn views_of_a_removed_transport_header_panic() {
    let clear = Packet::clear_transport_header;
    all_panic!(ip4(UDP), udp, clear, [payload payload_mut bytes]);
    all_panic!(ip4(TCP), tcp, clear, [payload payload_mut options options_mut bytes]);
    all_panic!(ip4(ICMP), icmp, clear, [payload payload_mut bytes]);
    all_panic!(ip6(ICMP6), icmp6, clear, [payload payload_mut bytes]);
}

#[test]
fn views_of_a_removed_network_header_panic() {
    let clear = Packet::clear_network_header;
    all_panic!(ip6(UDP), ipv6, clear, [payload payload_mut datagram datagram_mut bytes]);
}

#[test]
fn payloads_behind_the_packets_end_are_empty() {
    fn clear(packet: &mut Packet) {
        packet.truncate(0);
    }
    let mut packet = ip4(ICMP);
    let mut icmp = packet.icmp().expect("is marked");
    clear(icmp.packet_mut());
    assert!(icmp.payload().is_empty() && icmp.payload_mut().is_empty());
    let mut packet = ip4(UDP);
    let mut ether = packet.ether().expect("is long enough");
    clear(ether.packet_mut());
    assert!(ether.payload().is_empty() && ether.payload_mut().is_empty());
    let mut bytes = [0; 42];
    (bytes[12], bytes[13]) = (8, 6);
    let mut packet = Packet::from_bytes(&bytes);
    let mut arp = packet.arp().expect("says so");
    clear(arp.packet_mut());
    assert!(arp.payload().is_empty() && arp.payload_mut().is_empty());
}

#[test]
fn a_panicking_view_leaves_the_packet_usable() {
    let mut packet = ip4(ICMP);
    let mut icmp = packet.icmp().expect("is marked");
    icmp.packet_mut().clear_transport_header();
    assert!(panics(|| {
        icmp.payload_mut().fill(0xff);
        []
    }));
    assert_eq!(packet.len(), 74);
    assert_eq!(packet.copy().bytes(), packet.bytes());
    assert!(packet.icmp().is_none());
}

/// Writes through a view of a shared packet go to a copy, and the view stays in it.
#[test]
fn writes_through_views_of_shared_packets_copy() {
    let mut packet = ip4(UDP);
    let mut other = packet.share();
    let mut udp = packet.udp().expect("UDP");
    udp.set_src_port(7);
    udp.set_dst_port(8);
    assert_eq!((udp.src_port(), udp.dst_port()), (7, 8));
    assert_eq!(other.udp().expect("UDP").src_port(), 0);
    let mut other = packet.share();
    packet.ether().expect("Ethernet").set_ether_type(9);
    assert_eq!(packet.ether().expect("Ethernet").ether_type(), 9);
    assert_eq!(other.ether().expect("Ethernet").ether_type(), 0x800);
}

/// Lengths in the header, and of the packet, against the definition.
#[test]
fn segments_lie_behind_the_header_and_within_the_packet() {
    for header_len in (0..64u8).step_by(4) {
        for total_len in 0..80u8 {
            for removed in [0, 1, 20, 40, 60, 74] {
                let mut packet = ip4(UDP);
                let bytes = packet.bytes_mut();
                bytes.iter_mut().zip(0u8..).skip(34).for_each(|(byte, n)| *byte = n);
                (bytes[14], bytes[17]) = (0x40 | (header_len / 4), total_len);
                let whole = bytes.to_vec();
                packet.truncate(74 - removed);
                let datagram = &whole[14..(74 - removed).max(14)];
                let segment = datagram.get(header_len.into()..total_len.into());
                let expected = segment.filter(|_| datagram.len() >= 20);
                for _ in 0..2 {
                    assert_eq!(packet.ipv4_segment().map(|(_, segment)| segment), expected);
                    // The second time the header is marked, unless there is none.
                    _ = packet.ipv4();
                }
            }
        }
    }
}
