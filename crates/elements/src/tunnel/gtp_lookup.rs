//! `GTPLookup`: encapsulates packets to users in their GTP return tunnels.

use crate::ip::encap::IdCounter;
use castanet_element::prelude::*;
use castanet_element::wire::Ipv4Header;
use castanet_element::wire::gtp_tunnel::{Flow, Tunnel};
use castanet_kit::gtp_tunnels::{ReturnPath, Tunnels};

/// Encapsulates packets to users in the GTP return tunnels of a `GTPTable`.
///
/// The element prepends IPv4, UDP and GTP headers, as if the remote tunnel
/// endpoint had sent the packets.
///
/// ```click
/// user -> GTPEncap(7) -> UDPIPEncap(9.0.0.1, 2152, 9.0.0.2, 2152) -> t :: GTPTable(8.8.8.8) -> out
/// t[1] -> way :: Switch(0) -> Strip(36) -> MarkIPHeader -> ICMPPingResponder
///   -> GTPEncap(9) -> UDPIPEncap(9.0.0.2, 2152, 9.0.0.1, 2153) -> [1] t;  way[1] -> Discard
/// in -> l :: GTPLookup(t) -> IPClassifier(src host 9.0.0.2 and dst host 9.0.0.1 and dst port 2153)
///   -> Strip(28) -> d :: GTPDecap -> MarkIPHeader -> IPPrint(TIMESTAMP false, AGGREGATE true) -> back
/// > user 1.0.0.1:5 > 2.0.0.2:6 udp
/// < out  1.0.0.1:5 > 2.0.0.2:6 udp
/// > in   2.0.0.2:6 > 1.0.0.1:5 udp
/// < back 2.0.0.2:6 > 1.0.0.1:5 udp
/// ~ #9: 2.0.0.2.6 > 1.0.0.1.5: udp 8
/// > in   2.0.0.2:7 > 1.0.0.1:5 udp
/// = l.drops.unknown 1
/// > in   2.0.0.2:6 > 1.0.0.1:5 udp len 65500
/// = l.drops.too_long 1
/// ! t.clear
/// ! way.switch 1
/// > user 1.0.0.1:5 > 2.0.0.2:6 udp
/// < out  1.0.0.1:5 > 2.0.0.2:6 udp
/// > in   2.0.0.2:6 > 1.0.0.1:5 udp
/// = l.drops.unresolved 1
/// ```
///
/// ```click
/// user -> GTPEncap(7) -> UDPIPEncap(9.0.0.1, 2152, 9.0.0.2, 2152) -> t :: GTPTable(8.8.8.8) -> out
/// t[1] -> Strip(36) -> MarkIPHeader -> ICMPPingResponder
///   -> GTPEncap(9) -> UDPIPEncap(9.0.0.2, 2152, 9.0.0.1, 2153) -> [1] t
/// in -> GTPLookup(t, CHECKSUM false) -> Truncate(28) -> back
/// > user 1.0.0.1:5 > 2.0.0.2:6 udp
/// < out  1.0.0.1:5 > 2.0.0.2:6 udp
/// > in   2.0.0.2:6 > 1.0.0.1:5 udp
/// < back 9.0.0.2:2152 > 9.0.0.1:2153 udp nocheck ttl 250 iplen 64 ulen 44
/// ```
#[derive(Element)]
#[element(room = "tunnel", args = GTPLookupArgs, gives = "ip")]
pub struct GTPLookup {
    tunnels: Shared<Tunnels>,
    checksum: bool,
}

#[derive(Args)]
pub struct GTPLookupArgs {
    /// Name of the `GTPTable` to look up tunnels in.
    #[arg]
    table: String,
    /// Whether UDP headers have a checksum.
    #[arg(keyword, default = true)]
    checksum: bool,
}

/// Exits.
#[derive(Fate)]
pub enum GTPLookupExit {
    /// Encapsulated packets.
    Encapsulated,
    /// Packets of no flow in the table.
    #[drop]
    Unknown,
    /// Packets of a flow whose return tunnel is not known yet.
    #[drop]
    Unresolved,
    /// Packets that would be longer than 65535 bytes with their headers.
    #[drop]
    TooLong,
}

impl Build for GTPLookup {
    type Args = GTPLookupArgs;

    fn build(args: GTPLookupArgs, setup: &Setup) -> Result<Self, ArgError> {
        let tunnels = setup.shared_of(&args.table, "GTPTable");
        let tunnels = tunnels.map_err(|e| e.reworded("Unknown GTPTable"))?;
        Ok(GTPLookup { tunnels, checksum: args.checksum })
    }
}

impl PerBatch for GTPLookup {
    type On = on::Any;
    type Local = IdCounter;
    type Fate = GTPLookupExit;

    fn batch(&self, ids: &mut IdCounter, _: usize, batch: Batch, cx: &mut Cx) {
        self.tunnels.with(|tunnels| {
            for mut packet in batch {
                let exit = encapsulate_return(tunnels, ids, &mut packet, self.checksum);
                cx.emit(exit, packet);
            }
        });
    }
}

/// Encapsulates a packet in its return tunnel and returns its exit.
fn encapsulate_return(
    tunnels: &Tunnels,
    ids: &mut IdCounter,
    packet: &mut Packet,
    checksum: bool,
) -> GTPLookupExit {
    let Some(flow) = Flow::from_packet(packet.bytes()) else { return GTPLookupExit::Unknown };
    let tunnel = match tunnels.return_path(flow) {
        ReturnPath::Via(tunnel) => tunnel,
        ReturnPath::Unresolved => return GTPLookupExit::Unresolved,
        ReturnPath::Unknown => return GTPLookupExit::Unknown,
    };
    if packet.len() + Tunnel::OVERHEAD > usize::from(u16::MAX) {
        return GTPLookupExit::TooLong;
    }
    packet.push_front(Tunnel::OVERHEAD);
    if tunnel.encapsulate(packet.bytes_mut(), ids.next(), checksum).is_none() {
        return GTPLookupExit::TooLong;
    }
    packet.set_network_header(0, Ipv4Header::LEN);
    packet.set_dst(tunnel.dst.0);
    GTPLookupExit::Encapsulated
}
