//! Computes partial checksums in software: the IPv4 header checksum and the TCP or UDP checksum.

use castanet_packet::{Packet, PartialChecksums};
use castanet_wire::{Ipv4Header, Tcp, Udp, ip_proto};

/// Computes the checksums that the packet's `PartialChecksums` marks leave to its transmitter, and clears
/// the marks.
#[cold]
pub(crate) fn complete_checksums(packet: &mut Packet) {
    let partial = packet.partial_checksums();
    packet.set_partial_checksums(PartialChecksums::default());
    let at = packet.network_offset().and_then(|at| usize::try_from(at).ok());
    // A packet without a network header has no checksum to compute.
    if let Some(datagram) = at.and_then(|at| packet.bytes_mut().get_mut(at..)) {
        _ = compute(datagram, partial);
    }
}

/// Computes the checksums that `partial` names, in place; `None` if the datagram is truncated.
fn compute(datagram: &mut [u8], partial: PartialChecksums) -> Option<()> {
    let (ip, rest) = Ipv4Header::from_prefix_mut(datagram)?;
    let (header, total) = (ip.header_len(), usize::from(ip.total_len()));
    let (options, rest) = rest.split_at_mut_checked(header.checked_sub(Ipv4Header::LEN)?)?;
    if partial.ip {
        ip.update_checksum(options);
    }
    if !partial.transport || ip.is_fragment() {
        return Some(());
    }
    let segment = rest.get_mut(..total.checked_sub(header)?)?;
    let pseudo = ip.pseudo(segment.len());
    match ip.protocol() {
        ip_proto::TCP => {
            let (tcp, rest) = Tcp::from_prefix_mut(segment)?;
            tcp.update_checksum(pseudo, rest);
        }
        ip_proto::UDP => {
            let (udp, rest) = Udp::from_prefix_mut(segment)?;
            udp.update_checksum(pseudo, rest);
        }
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An Ethernet frame with correct checksums, and a packet with the same bytes but wrong ones.
    fn frames(text: &str) -> (Vec<u8>, Packet) {
        let text = format!("eth 2:0:0:0:0:1 > 2:0:0:0:0:2 {text}");
        let right = castanet_wire::sketch::build(&text).unwrap().bytes;
        let transport = 14 + usize::from(right[14] & 15) * 4;
        let sum = transport + if right[23] == ip_proto::TCP { 16 } else { 6 };
        let mut packet = Packet::from_bytes(&right);
        for at in [24, 25, sum, sum + 1] {
            packet.bytes_mut()[at] = 0x55;
        }
        packet.set_network_header(14, transport - 14);
        (right, packet)
    }

    #[test]
    fn only_the_checksums_marked_partial_are_computed() {
        for text in ["1.0.0.1:5 > 2.0.0.2:80 tcp len 101", "1.0.0.1:5 > 2.0.0.2:53 udp len 78"] {
            let (right, mut packet) = frames(text);
            let before = packet.bytes().to_vec();
            complete_checksums(&mut packet);
            assert_eq!(packet.bytes(), before);
            packet.set_partial_checksums(PartialChecksums { ip: true, transport: false });
            complete_checksums(&mut packet);
            assert_eq!(packet.bytes()[..34], right[..34], "{text}");
            assert_ne!(packet.bytes(), right);
            packet.set_partial_checksums(PartialChecksums { ip: false, transport: true });
            complete_checksums(&mut packet);
            assert_eq!(
                (packet.bytes(), packet.partial_checksums()),
                (&right[..], PartialChecksums::default())
            );
        }
    }

    #[test]
    fn truncated_packets_cause_no_panic() {
        let (right, _) = frames("1.0.0.1:5 > 2.0.0.2:80 tcp len 101");
        for len in 0..right.len() {
            let mut packet = Packet::from_bytes(&right[..len]);
            packet.set_network_header(14, 20);
            packet.set_partial_checksums(PartialChecksums { ip: true, transport: true });
            complete_checksums(&mut packet);
            assert_eq!(packet.bytes(), &right[..len], "{len}");
        }
    }
}
