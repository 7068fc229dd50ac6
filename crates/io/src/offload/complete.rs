//! Checksums that a packet leaves to who sends it, computed here after all.

use castanet_packet::{Packet, PartialChecksums};
use castanet_wire::{Ipv4Header, Tcp, Udp, ip_proto};

/// Computes the checksums that the packet leaves to who sends it, and takes
/// note that they are right.
#[cold]
pub(crate) fn complete(packet: &mut Packet) {
    let partial = packet.partial_checksums();
    packet.set_partial_checksums(PartialChecksums::default());
    let at = packet.network_offset().and_then(|at| usize::try_from(at).ok());
    // Where the header is not, there is no checksum either.
    if let Some(datagram) = at.and_then(|at| packet.bytes_mut().get_mut(at..)) {
        _ = compute(datagram, partial);
    }
}

/// Nothing where what is summed up is cut short.
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

    /// An Ethernet frame with right checksums, and one that lacks them.
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
    fn what_is_left_is_computed_and_nothing_else() {
        for text in ["1.0.0.1:5 > 2.0.0.2:80 tcp len 101", "1.0.0.1:5 > 2.0.0.2:53 udp len 78"] {
            let (right, mut packet) = frames(text);
            let before = packet.bytes().to_vec();
            complete(&mut packet);
            assert_eq!(packet.bytes(), before);
            packet.set_partial_checksums(PartialChecksums { ip: true, transport: false });
            complete(&mut packet);
            assert_eq!(packet.bytes()[..34], right[..34], "{text}");
            assert_ne!(packet.bytes(), right);
            packet.set_partial_checksums(PartialChecksums { ip: false, transport: true });
            complete(&mut packet);
            assert_eq!(
                (packet.bytes(), packet.partial_checksums()),
                (&right[..], PartialChecksums::default())
            );
        }
    }

    #[test]
    fn what_is_cut_short_is_survived() {
        let (right, _) = frames("1.0.0.1:5 > 2.0.0.2:80 tcp len 101");
        for len in 0..right.len() {
            let mut packet = Packet::from_bytes(&right[..len]);
            packet.set_network_header(14, 20);
            packet.set_partial_checksums(PartialChecksums { ip: true, transport: true });
            complete(&mut packet);
            assert_eq!(packet.bytes(), &right[..len], "{len}");
        }
    }
}
