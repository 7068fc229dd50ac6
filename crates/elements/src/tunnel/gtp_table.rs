//! `GTPTable`: decapsulates GTP tunnels and finds their return tunnels.

use super::gtp_table_state::GTPTableState;
use castanet_element::prelude::*;
use castanet_element::wire::Ipv4Header;
use castanet_element::wire::gtp_tunnel::{Flow, Ping, Tunnel};
use castanet_kit::gtp_tunnels::Tunnels;

/// Decapsulates packets from GTP tunnels and finds the return tunnels by pings.
///
/// Input 0 takes IPv4 packets with UDP, GTP and a user packet; the user packet
/// leaves by output 0. While the return tunnel of a tunnel is unknown, the
/// element sends pings (ICMP echo requests) to PING_DST by output 1, in that
/// tunnel and with the user's source address. Input 1 takes the replies; the
/// tunnel of a reply is the return tunnel. A `GTPLookup` uses it for packets to
/// the user. Until a reply comes, the element sends one ping per second while
/// packets arrive.
///
/// ```click
/// user -> GTPEncap(7) -> UDPIPEncap(9.0.0.1, 2152, 9.0.0.2, 2152) -> t :: GTPTable(8.8.8.8) -> out
/// other -> t
/// t[1] -> pings :: Counter -> Strip(36) -> MarkIPHeader -> ICMPPingResponder
///   -> GTPEncap(9) -> UDPIPEncap(9.0.0.2, 2152, 9.0.0.1, 2153) -> [1] t
/// other1 -> [1] t
/// > user  1.0.0.1:5 > 2.0.0.2:6 udp
/// < out   1.0.0.1:5 > 2.0.0.2:6 udp ; network 0
/// > user  1.0.0.1:5 > 2.0.0.2:6 udp ttl 9
/// < out   1.0.0.1:5 > 2.0.0.2:6 udp ttl 9
/// = pings.count 1
/// = t.count 1
/// = t.resolved 1
/// > other 1.0.0.1:5 > 2.0.0.2:6 udp
/// = t.drops.no_tunnel 1
/// > other1 1.0.0.1:5 > 2.0.0.2:6 udp
/// = t.drops.no_answer 1
/// ! t.clear
/// = t.count 0
/// ```
#[derive(Element)]
#[element(room = "tunnel", args = GTPTableArgs, ports = "2/2", processing = "h/h")]
pub struct GTPTable {
    ping_dst: Ipv4Addr,
    tunnels: Shared<Tunnels>,
}

#[derive(Args)]
pub struct GTPTableArgs {
    /// Destination address of the pings: a host behind the tunnels that answers.
    #[arg]
    ping_dst: Ipv4Addr,
    /// An argument of FastClick without effect: no packet is reported.
    #[arg(keyword, name = "VERBOSE", default = true)]
    _verbose: bool,
}

/// Exits.
#[derive(Fate)]
pub enum GTPTableExit {
    /// User packets from tunnels.
    Packet,
    /// Pings in tunnels.
    Ping,
    /// Packets on input 0 that contain no user packet in a tunnel, and truncated packets.
    #[drop]
    NoTunnel,
    /// Packets on input 1 that are not replies to pings of this element.
    #[drop]
    NoAnswer,
}

impl Build for GTPTable {
    type Args = GTPTableArgs;

    fn build(args: GTPTableArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(GTPTable { ping_dst: args.ping_dst, tunnels: setup.own_shared() })
    }
}

impl GTPTable {
    /// Sends the user packet in `packet`, and a ping if one is due.
    fn decapsulate(&self, mut packet: Packet, tunnels: &mut Tunnels, cx: &mut Cx) {
        let Some((tunnel, start)) = Tunnel::from_packet(packet.bytes()) else {
            return cx.emit(GTPTableExit::NoTunnel, packet);
        };
        packet.pull_front(start);
        let (flow, now) = (Flow::from_packet(packet.bytes()), cx.now().nanos());
        if tunnels.record_packet(tunnel, flow, now)
            && let Some(flow) = flow
        {
            self.send_ping(tunnel, flow.src.0, tunnels, cx);
        }
        if let (Some((ip, _)), Some(_)) = (Ipv4Header::from_prefix(packet.bytes()), flow) {
            let len = ip.header_len();
            packet.set_network_header(0, len);
        }
        cx.emit(GTPTableExit::Packet, packet);
    }

    /// Sends a ping in a tunnel. Its identifier and sequence number are random, so that a host
    /// that has not received the ping cannot forge a reply.
    fn send_ping(&self, tunnel: Tunnel, src: Ipv4Addr, tunnels: &mut Tunnels, cx: &mut Cx) {
        let random = cx.random();
        let (id, seq) = (random as u16, (random >> u16::BITS) as u16);
        let ping = Ping { src, dst: self.ping_dst, id, seq };
        let mut bytes = [0; Tunnel::OVERHEAD + Ping::LEN];
        if let Some(payload) = bytes.last_chunk_mut() {
            ping.write(payload);
        }
        tunnel.encapsulate(&mut bytes, id, true);
        let Some(mut packet) = cx.copy_in(&bytes) else { return };
        packet.set_network_header(0, Ipv4Header::LEN);
        packet.set_dst(self.ping_dst);
        tunnels.record_ping(tunnel, ping, cx.now().nanos());
        cx.emit(GTPTableExit::Ping, packet);
    }
}

impl PerBatch for GTPTable {
    type On = on::Any;
    type Local = GTPTableState;
    type Fate = GTPTableExit;
    const SHARED: bool = true;

    fn can_take_state(&self, _: &GTPTable) -> bool {
        true
    }

    fn after_take_state(&self, state: &mut GTPTableState, _: &mut Cx) {
        state.tunnels = self.tunnels.clone();
    }

    fn init(&self, state: &mut GTPTableState, cx: &mut Cx) -> Result<(), ArgError> {
        self.after_take_state(state, cx);
        Ok(())
    }

    fn batch(&self, _: &mut GTPTableState, port: usize, batch: Batch, cx: &mut Cx) {
        self.tunnels.with(|tunnels| {
            for packet in batch {
                if port == 0 {
                    self.decapsulate(packet, tunnels, cx);
                    continue;
                }
                let found = Tunnel::from_packet(packet.bytes());
                let answer = found.and_then(|(back, start)| {
                    Some((Ping::from_reply(packet.bytes().get(start..)?)?, back))
                });
                match answer {
                    Some((ping, back)) if tunnels.record_reply(ping, back) => {
                        cx.consume(packet.into());
                    }
                    _ => cx.emit(GTPTableExit::NoAnswer, packet),
                }
            }
        });
    }
}
