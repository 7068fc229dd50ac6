//! `ResetIPChecksum`: requests checksum offload for IPv4, TCP and UDP.

use super::header_checks::complete_header;
use super::transport::{datagram, segment};
use castanet_element::packet::PartialChecksums;
use castanet_element::prelude::*;
use castanet_element::wire::{Ipv4Header, Tcp, Udp, ip_proto};

/// Requests checksum offload of IPv4 headers by the port that sends the packets.
///
/// With L4 it does so for the checksums of TCP and UDP too. `ToDPDKDevice` has
/// its port compute the checksums that IPCO, TCO and UCO allow and the port
/// supports, and computes the others itself. So sent packets always have valid
/// checksums.
///
/// No element reads an invalid checksum either: the element requests offload
/// only if every path behind it leads to a `ToDPDKDevice`, through elements that
/// neither read IP packets nor store them, such as `EtherEncap`,
/// `EtherRewrite`, `Strip`, `Counter`, `Paint`, `Switch` or `Tee`. Otherwise it
/// computes the checksums itself, as `SetIPChecksum` does. The handler `left`
/// tells which of the two it does.
///
/// ```click
/// in -> r :: ResetIPChecksum -> out
/// > in  1.0.0.1 > 2.0.0.2 udp badsum
/// > in  1.0.0.1 > 2.0.0.2 udp hl 4
/// < out 1.0.0.1 > 2.0.0.2 udp
/// = r.drops.malformed 1
/// = r.left false
/// ```
/// ```click
/// in -> ResetIPChecksum(L4 true) -> out
/// > in  1.0.0.1:1 > 2.0.0.2:2 tcp "data" badsum badcheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp "data" badcheck
/// > in  1.0.0.1:1 > 2.0.0.2:2 udp ulen 8 "data" badcheck
/// > in  1.0.0.1 > 2.0.0.2 proto 47 "data" badsum
/// < out 1.0.0.1:1 > 2.0.0.2:2 tcp "data"
/// < out 1.0.0.1:1 > 2.0.0.2:2 udp "data"
/// < out 1.0.0.1:1 > 2.0.0.2:2 udp ulen 8 "data"
/// < out 1.0.0.1 > 2.0.0.2 proto 47 "data"
/// ```
/// ```text
/// ... -> ResetIPChecksum(L4 true) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)
///     -> ToDPDKDevice(0, TCO true, UCO true);
/// ```
#[derive(Element)]
#[element(room = "ip", args = ResetIPChecksumArgs)]
pub struct ResetIPChecksum {
    l4: bool,
    /// Whether the element requests offload; if false, it computes the checksums itself.
    #[read]
    left: bool,
}

#[derive(Args)]
pub struct ResetIPChecksumArgs {
    /// Whether to include the checksums of TCP and UDP.
    #[arg(default = false)]
    l4: bool,
}

#[derive(Fate)]
pub enum ResetIPChecksumExit {
    /// Packets with a valid checksum, or with a request for offload.
    Right,
    /// Packets with an invalid header length.
    #[drop]
    Malformed,
}

impl Build for ResetIPChecksum {
    type Args = ResetIPChecksumArgs;

    fn build(args: ResetIPChecksumArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(ResetIPChecksum { l4: args.l4, left: setup.may_leave_checksums })
    }
}

/// Sets the checksum of a TCP segment or UDP datagram that is not a fragment. With `leave` it is
/// the sum of the pseudo header, and the port computes the rest. Returns whether the port has to.
fn set_transport(packet: &mut Packet, leave: bool) -> bool {
    match packet.ipv4_header().map(Ipv4Header::protocol) {
        Some(ip_proto::TCP) => set_tcp(packet, leave),
        Some(ip_proto::UDP) => set_udp(packet, leave),
        _ => None,
    }
    .is_some_and(|left| left)
}

fn set_tcp(packet: &mut Packet, leave: bool) -> Option<bool> {
    let (pseudo, bytes) = segment(packet)?;
    let (&(mut tcp), rest) = Tcp::from_prefix(bytes)?;
    match leave {
        true => tcp.set_checksum(!pseudo.checksum()),
        false => tcp.update_checksum(pseudo, rest),
    }
    *packet.tcp()? = tcp;
    Some(leave)
}

/// A port computes the checksum over the length of the IP header. So it cannot do that for a
/// datagram whose UDP length is less.
fn set_udp(packet: &mut Packet, leave: bool) -> Option<bool> {
    let ip_len = segment(packet)?.1.len();
    let (&(mut udp), pseudo, bytes) = datagram(packet)?;
    let leave = leave && usize::from(udp.length()) == ip_len;
    match leave {
        true => udp.set_checksum(!pseudo.checksum()),
        false => udp.update_checksum(pseudo, bytes.split_at(Udp::LEN).1),
    }
    *packet.udp()? = udp;
    Some(leave)
}

impl PerPacket for ResetIPChecksum {
    type On = on::Ipv4;
    type Local = ();
    type Fate = ResetIPChecksumExit;

    #[inline]
    fn packet(&self, _: &mut (), mut ip: Ipv4) -> ResetIPChecksumExit {
        let Some(mut header) = complete_header(&ip) else { return ResetIPChecksumExit::Malformed };
        match self.left {
            true => header.set_checksum(0),
            false => header.update_checksum(ip.options()),
        }
        ip.set_checksum(header.checksum());
        let packet = ip.into_packet();
        let transport = self.l4 && set_transport(packet, self.left);
        if self.left {
            packet.set_partial_checksums(PartialChecksums { ip: true, transport });
        }
        ResetIPChecksumExit::Right
    }
}
