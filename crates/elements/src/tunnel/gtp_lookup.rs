//! `GTPLookup`: packets into the tunnels that lead back.

use crate::ip::encap::Numbers;
use castanet_engine::prelude::*;
use castanet_engine::wire::Ipv4Header;
use castanet_engine::wire::gtp_tunnel::{Flow, Tunnel};
use castanet_kit::gtp_tunnels::{ReturnPath, Tunnels};

/// Puts packets that answer users' into the tunnels that a `GTPTable` has found to lead back.
///
/// They become IPv4 packets with UDP and GTP, as if the other side had sent them.
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
#[derive(Element)]
#[element(room = "tunnel", args = Which, gives = "ip")]
pub struct GTPLookup {
    tunnels: Link<Tunnels>,
}

#[derive(Args)]
pub struct Which {
    /// The `GTPTable` that knows.
    #[arg]
    table: String,
}

/// Where packets go.
#[derive(Fate)]
pub enum Exit {
    /// Packets in tunnels.
    Encapsulated,
    /// Packets that answer none of those that the table has seen.
    #[drop]
    Unknown,
    /// Packets for a tunnel of which is not known yet which one leads back.
    #[drop]
    Unresolved,
    /// Packets that with their headers would be longer than IPv4 allows.
    #[drop]
    TooLong,
}

impl Build for GTPLookup {
    type Args = Which;

    fn build(args: Which, setup: &Setup) -> Result<Self, ArgError> {
        let tunnels = setup.linked(&args.table, "GTPTable");
        Ok(GTPLookup { tunnels: tunnels.map_err(|e| e.reworded("Unknown GTPTable"))? })
    }
}

impl PerBatch for GTPLookup {
    type On = on::Any;
    type Local = Numbers;
    type Fate = Exit;

    fn batch(&self, numbers: &mut Numbers, _: usize, batch: Batch, cx: &mut Cx) {
        self.tunnels.with(|tunnels| {
            for mut packet in batch {
                let exit = back(tunnels, numbers, &mut packet);
                cx.emit(exit, packet);
            }
        });
    }
}

/// Puts a packet into the tunnel that leads back.
fn back(tunnels: &Tunnels, numbers: &mut Numbers, packet: &mut Packet) -> Exit {
    let Some(flow) = Flow::from_packet(packet.bytes()) else { return Exit::Unknown };
    let tunnel = match tunnels.return_path(flow) {
        ReturnPath::Via(tunnel) => tunnel,
        ReturnPath::Unresolved => return Exit::Unresolved,
        ReturnPath::Unknown => return Exit::Unknown,
    };
    if packet.len() + Tunnel::OVERHEAD > usize::from(u16::MAX) {
        return Exit::TooLong;
    }
    packet.push_front(Tunnel::OVERHEAD);
    if tunnel.encapsulate(packet.bytes_mut(), numbers.next()).is_none() {
        return Exit::TooLong;
    }
    packet.set_network_header(0, Ipv4Header::LEN);
    packet.set_dst(tunnel.dst.0);
    Exit::Encapsulated
}
