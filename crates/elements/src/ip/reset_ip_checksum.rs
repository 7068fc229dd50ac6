//! `ResetIPChecksum`: checksums for the port that sends to compute.

use super::header_checks::whole_header;
use super::transport::{datagram, segment};
use castanet_engine::packet::PartialChecksums;
use castanet_engine::prelude::*;
use castanet_engine::wire::{Ipv4Header, Tcp, ip_proto};

/// Leaves the checksums of IPv4 headers to the port that sends the packets.
///
/// With L4, those of TCP and UDP too. A `ToDPDKDevice` has its port compute
/// them, as far as IPCO, TCO and UCO say so and the port can do it, and computes
/// the others itself. So what is sent is always right.
///
/// What elements see is right as well: checksums are left only where every way
/// behind this element leads to a `ToDPDKDevice`, past elements that neither
/// look at IP packets nor keep them, such as `EtherEncap`, `EtherRewrite`, `Strip`,
/// `Counter`, `Paint`, `Switch` or `Tee`. Behind others they are computed here,
/// as by `SetIPChecksum`; the handler `left` says which.
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
#[element(room = "ip", args = What)]
pub struct ResetIPChecksum {
    l4: bool,
    /// Whether checksums are left to ports.
    #[read]
    left: bool,
}

/// Which checksums.
#[derive(Args)]
pub struct What {
    /// Whether those of TCP and UDP too.
    #[arg(default = false)]
    l4: bool,
}

#[derive(Fate)]
pub enum Outcome {
    /// Packets with a checksum that is right, or will be.
    Right,
    /// Packets whose header's length is wrong.
    #[drop]
    Malformed,
}

impl Build for ResetIPChecksum {
    type Args = What;

    fn build(what: What, setup: &Setup) -> Result<Self, ArgError> {
        Ok(ResetIPChecksum { l4: what.l4, left: setup.may_leave_sums })
    }
}

/// Sets the checksum of the packet's TCP or UDP segment, if it is a whole one; with `leave`, to
/// the sum of the pseudo header where a port computes the rest. Whether a port has to.
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

/// A port computes over all that IP's length says: so it cannot where UDP's says less.
fn set_udp(packet: &mut Packet, leave: bool) -> Option<bool> {
    let whole = segment(packet)?.1.len();
    let (mut udp, pseudo, payload) = datagram(packet)?;
    let leave = leave && usize::from(udp.length()) == whole;
    match leave {
        true => udp.set_checksum(!pseudo.checksum()),
        false => udp.update_checksum(pseudo, payload),
    }
    *packet.udp()? = udp;
    Some(leave)
}

impl PerPacket for ResetIPChecksum {
    type On = on::Ipv4;
    type Local = ();
    type Fate = Outcome;

    #[inline]
    fn packet(&self, _: &mut (), mut ip: Ipv4) -> Outcome {
        let Some(mut header) = whole_header(&ip) else { return Outcome::Malformed };
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
        Outcome::Right
    }
}
