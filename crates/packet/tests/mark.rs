//! Tests of `mark_ipv4`: it marks valid datagrams only.

use castanet_packet::Packet;

fn datagram(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[14] = 0x45;
    bytes
}

#[test]
fn a_datagram_is_marked_and_its_padding_removed() {
    let mut packet = Packet::from_bytes(&datagram(60));
    assert!(packet.mark_ipv4(14, 20, 30));
    assert_eq!((packet.len(), packet.network_offset()), (44, Some(14)));
    assert_eq!(packet.transport_offset(), Some(34));
    assert!(packet.ipv4().is_some());
}

#[test]
fn invalid_lengths_change_nothing() {
    for (len, offset, header, total) in
        [(33, 14, 20, 20), (60, 14, 20, 47), (60, 14, 19, 30), (60, 14, 24, 20), (60, 61, 20, 20)]
    {
        let mut packet = Packet::from_bytes(&datagram(len));
        assert!(!packet.mark_ipv4(offset, header, total), "{len} {offset} {header} {total}");
        assert_eq!((packet.len(), packet.network_offset()), (len, None));
    }
}

#[test]
fn a_datagram_excludes_padding_and_is_copied_if_shared() {
    let mut bytes = datagram(60);
    bytes[16..18].copy_from_slice(&30u16.to_be_bytes());
    let mut packet = Packet::from_bytes(&bytes);
    packet.set_network_header(14, 20);
    let other = packet.share();
    let mut ip = packet.ipv4().expect("is marked");
    assert_eq!(ip.datagram_mut().len(), 30);
    ip.datagram_mut()[20..].fill(9);
    assert_eq!(ip.datagram()[20..], [9; 10]);
    assert_eq!(packet.bytes()[44], 0);
    assert_eq!(other.bytes(), bytes);
}
