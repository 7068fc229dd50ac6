//! `GTPTable`: packets out of GTP tunnels, and which tunnels lead back.

use super::known_tunnels::Shown;
use castanet_engine::prelude::*;
use castanet_engine::wire::Ipv4Header;
use castanet_engine::wire::gtp_tunnel::{Flow, Ping, Tunnel};
use castanet_kit::gtp_tunnels::Tunnels;

/// Takes packets out of GTP tunnels, and finds by pings which tunnels lead back.
///
/// Input 0 takes IPv4 packets with UDP, GTP and a user's packet, which leaves by
/// output 0. For a tunnel of which that is not known, a ping to PING_DST leaves
/// by output 1, as if the user had sent it, in that tunnel. Its answer, in the
/// tunnel that leads back to the user, is for input 1, and ends there. A
/// `GTPLookup` then sends by that tunnel what answers the user's packets. Until
/// a ping is answered, there is one a second while packets come.
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
#[element(room = "tunnel", args = Asking, ports = "2/2", processing = "h/h")]
pub struct GTPTable {
    ping_dst: Ipv4Addr,
    tunnels: Link<Tunnels>,
}

#[derive(Args)]
pub struct Asking {
    /// Who answers pings on the far side.
    #[arg]
    ping_dst: Ipv4Addr,
}

/// Where packets go.
#[derive(Fate)]
pub enum Exit {
    /// Users' packets.
    Packet,
    /// Pings in tunnels.
    Ping,
    /// Packets on input 0 that are in no tunnel, or cut short.
    #[drop]
    NoTunnel,
    /// Packets on input 1 that answer no ping of its.
    #[drop]
    NoAnswer,
}

impl Build for GTPTable {
    type Args = Asking;

    fn build(args: Asking, setup: &Setup) -> Result<Self, ArgError> {
        Ok(GTPTable { ping_dst: args.ping_dst, tunnels: setup.own() })
    }
}

impl GTPTable {
    fn take_out(&self, mut packet: Packet, tunnels: &mut Tunnels, cx: &mut Cx) {
        let Some((tunnel, start)) = Tunnel::from_packet(packet.bytes()) else {
            return cx.emit(Exit::NoTunnel, packet);
        };
        packet.pull_front(start);
        let (flow, now) = (Flow::from_packet(packet.bytes()), cx.now().nanos());
        if tunnels.record_packet(tunnel, flow, now)
            && let Some(flow) = flow
        {
            self.ask(tunnel, flow.src.0, tunnels, cx);
        }
        if let (Some((ip, _)), Some(_)) = (Ipv4Header::from_prefix(packet.bytes()), flow) {
            let len = ip.header_len();
            packet.set_network_header(0, len);
        }
        cx.emit(Exit::Packet, packet);
    }

    /// Sends a ping by a tunnel. Nobody who does not see it knows what answers it.
    fn ask(&self, tunnel: Tunnel, src: Ipv4Addr, tunnels: &mut Tunnels, cx: &mut Cx) {
        let random = cx.random();
        let (id, seq) = (random as u16, (random >> u16::BITS) as u16);
        let ping = Ping { src, dst: self.ping_dst, id, seq };
        let mut bytes = [0; Tunnel::OVERHEAD + Ping::LEN];
        if let Some(inside) = bytes.last_chunk_mut() {
            ping.write(inside);
        }
        tunnel.encapsulate(&mut bytes, id);
        let Some(mut packet) = cx.copy_in(&bytes) else { return };
        packet.set_network_header(0, Ipv4Header::LEN);
        packet.set_dst(self.ping_dst);
        tunnels.record_ping(tunnel, ping, cx.now().nanos());
        cx.emit(Exit::Ping, packet);
    }
}

impl PerBatch for GTPTable {
    type On = on::Any;
    type Local = Shown;
    type Fate = Exit;
    const SHARED: bool = true;

    fn continues(&self, _: &GTPTable) -> bool {
        true
    }

    fn resume(&self, shown: &mut Shown, _: &mut Cx) {
        shown.tunnels = self.tunnels.clone();
    }

    fn begin(&self, shown: &mut Shown, cx: &mut Cx) -> Result<(), ArgError> {
        self.resume(shown, cx);
        Ok(())
    }

    fn batch(&self, _: &mut Shown, port: usize, batch: Batch, cx: &mut Cx) {
        self.tunnels.with(|tunnels| {
            for packet in batch {
                if port == 0 {
                    self.take_out(packet, tunnels, cx);
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
                    _ => cx.emit(Exit::NoAnswer, packet),
                }
            }
        });
    }
}
