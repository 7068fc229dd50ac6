//! Common operations on TCP, UDP and DCCP headers: ports and incremental checksum updates.

use crate::checksum::Delta;
use crate::{Tcp, Udp, ip_proto};

/// Number of header bytes that a rewriter needs: they include the ports, and ICMP errors quote at
/// least as many.
pub const PORTS_LEN: usize = 8;

/// Whether `protocol` is one of those whose ports and checksum this module changes.
#[inline]
pub const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, ip_proto::TCP | ip_proto::UDP | ip_proto::DCCP)
}

/// Sets the ports at the start of a header, without its checksum; does nothing if the header is
/// truncated.
#[inline]
pub fn set_ports(header: &mut [u8], src: u16, dst: u16) {
    if let Some(ports) = header.first_chunk_mut::<4>() {
        let ([a, b], [c, d]) = (src.to_be_bytes(), dst.to_be_bytes());
        *ports = [a, b, c, d];
    }
}

/// Updates the checksum of a segment of `protocol` incrementally by `delta`; does nothing if the
/// protocol has no known checksum, or its field is truncated.
#[inline]
pub fn adjust_checksum(protocol: u8, header: &mut [u8], delta: Delta) {
    /// The checksum field of TCP; the rest of the header may be truncated.
    const TCP_CHECKSUM: std::ops::Range<usize> = Tcp::CHECKSUM..Tcp::CHECKSUM + 2;
    // DCCP (RFC 4340, 5.1): the offset of UDP's checksum, but zero does not mean none.
    const DCCP_CHECKSUM: std::ops::Range<usize> = Udp::CHECKSUM..Udp::CHECKSUM + 2;
    let field = match protocol {
        ip_proto::TCP => TCP_CHECKSUM,
        ip_proto::DCCP => DCCP_CHECKSUM,
        ip_proto::UDP => {
            if let Some((udp, _)) = Udp::from_prefix_mut(header) {
                udp.adjust_checksum(delta);
            }
            return;
        }
        _ => return,
    };
    if let Some(sum) = header.get_mut(field).and_then(|bytes| bytes.first_chunk_mut::<2>()) {
        *sum = delta.apply(u16::from_be_bytes(*sum)).to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::pseudo_v4;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rewriting_equals_a_full_checksum(
            mut bytes in proptest::collection::vec(any::<u8>(), 20..40),
            protocol in prop::sample::select(vec![ip_proto::TCP, ip_proto::UDP, ip_proto::DCCP]),
            src: u32, dst: u32, ports: [u16; 2],
        ) {
            let old = pseudo_v4(1.into(), 2.into(), protocol, bytes.len());
            let new = pseudo_v4(src.into(), dst.into(), protocol, bytes.len());
            let at = if protocol == ip_proto::TCP { Tcp::CHECKSUM } else { Udp::CHECKSUM };
            let fresh = |bytes: &mut [u8], pseudo: crate::checksum::Sum| {
                bytes[at..at + 2].fill(0);
                let sum = pseudo.slice(bytes).checksum();
                let sum = if protocol == ip_proto::UDP && sum == 0 { 0xffff } else { sum };
                bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            };
            fresh(&mut bytes, old);
            let was = crate::udp::ports(&bytes).expect("long enough");
            let delta = Delta::new().u16(was.0, ports[0]).u16(was.1, ports[1]).sum(old, new);
            set_ports(&mut bytes, ports[0], ports[1]);
            adjust_checksum(protocol, &mut bytes, delta);
            let mut again = bytes.clone();
            fresh(&mut again, new);
            // Zero and its complement are the same sum.
            prop_assert!(bytes == again || bytes[at..at + 2] == [0xff; 2] || again[at..at + 2] == [0xff; 2]);
            prop_assert_eq!(new.slice(&bytes).checksum(), 0);
        }

        #[test]
        fn truncated_headers_are_not_changed(mut bytes in proptest::collection::vec(any::<u8>(), 0..20), protocol: u8) {
            let before = bytes.clone();
            adjust_checksum(protocol, &mut bytes, Delta::new().u16(1, 2));
            prop_assert_eq!(bytes.len(), before.len());
            set_ports(&mut bytes[..before.len().min(3)], 1, 2);
        }
    }
}
