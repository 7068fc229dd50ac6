//! `ToyTCP`: sends TCP segments as fast as they are acknowledged.

use super::toy_tcp_state::ToyTCPState;
use castanet_element::args::TcpPort;
use castanet_element::prelude::*;
use castanet_element::wire::{Ethernet, Ipv4Header, Tcp};

/// Opens a TCP connection and sends segments with one byte of data, to load a server or a path.
///
/// Packets in and out begin with the TCP header; `Strip` and `IPEncap` remove and add the IPv4 header, and
/// `SetTCPChecksum` sets the checksum. The element sends a segment every second, one for each segment
/// that comes in, and another one after every six of these, so that more and more are on their way. Their
/// sequence numbers go up and down within 4096 bytes; nothing is resent for what was lost. Source port and
/// sequence number come from the time. After RST the element waits for the next second and opens
/// another connection. Every second it writes how many segments there were.
///
/// ```click
/// in -> t :: ToyTCP(80) -> IPEncap(tcp, 1.0.0.1, 2.0.0.2) -> SetTCPChecksum -> out
/// + 1s
/// < out 1.0.0.1:1024 > 2.0.0.2:80 tcp syn seq 194693632 win 61440 ttl 250
/// ~ ToyTCP: 0 good in, 0 bad in, 1 out
/// > in  hex 00 50 04 00 00 00 00 09 0b 9a ca 01 50 12 00 00 00 00 00 00
/// ~ ToyTCP connected
/// < out 1.0.0.1:1024 > 2.0.0.2:80 tcp seq 194693635 ack 10 win 61440 ttl 250 id 1 data 00
/// > in  hex 00 50 04 00 00 00 00 0a 0b 9a ca 01 50 04 00 00 00 00 00 00
/// ~ ToyTCP: RST from port 80, in 1, out 2
/// < out 1.0.0.1:1024 > 2.0.0.2:80 tcp seq 194693636 ack 10 win 61440 ttl 250 id 2 data 00
/// > in  hex 00 50
/// = t.drops.resetting 1
/// ```
#[derive(Element)]
#[element(room = "tcp", args = ToyTCPArgs, ports = "1/1", processing = "h/h")]
pub struct ToyTCP {
    port: u16,
    started: Time,
}

#[derive(Args)]
pub struct ToyTCPArgs {
    /// Destination port.
    #[arg]
    dport: TcpPort,
}

impl Build for ToyTCP {
    type Args = ToyTCPArgs;

    fn build(args: ToyTCPArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(ToyTCP { port: args.dport.0, started: setup.started })
    }
}

const INTERVAL: Duration = Duration::from_secs(1);
/// Number of segments after which another one is sent.
const GROWTH: u32 = 6;

#[derive(Fate)]
pub enum ToyTCPExit {
    /// Segments to the other side.
    Segment,
    /// Segments that come between a RST and the next connection.
    #[drop]
    Resetting,
}

impl PerBatch for ToyTCP {
    type On = on::Any;
    type Local = ToyTCPState;
    type Fate = ToyTCPExit;
    // There is one connection.
    const SHARED: bool = true;

    fn can_take_state(&self, before: &ToyTCP) -> bool {
        self.port == before.port
    }

    fn start(&self, state: &mut ToyTCPState, cx: &mut Cx) -> Result<(), ArgError> {
        state.restart(self.started);
        cx.set_timer(cx.now() + INTERVAL);
        Ok(())
    }

    fn batch(&self, state: &mut ToyTCPState, _: usize, batch: Batch, cx: &mut Cx) {
        for mut packet in batch {
            if state.was_reset {
                cx.emit(ToyTCPExit::Resetting, packet);
                continue;
            }
            if let Some((tcp, _)) = Tcp::from_prefix(packet.bytes()) {
                self.receive(state, tcp, cx);
            }
            // The answer takes the packet's place.
            let (segment, len) = state.segment(self.port);
            packet.replace_contents(&segment[..len]);
            cx.emit(ToyTCPExit::Segment, packet);
            state.since_growth += 1;
            if state.since_growth == GROWTH {
                state.since_growth = 0;
                self.send(state, cx);
            }
        }
    }

    fn run_timer(&self, state: &mut ToyTCPState, cx: &mut Cx) {
        if state.was_reset {
            state.restart(cx.now());
        }
        self.send(state, cx);
        let ToyTCPState { good, bad, sent, .. } = state;
        cx.chatter(&format!("ToyTCP: {good} good in, {bad} bad in, {sent} out"));
        cx.set_timer(cx.now() + INTERVAL);
    }
}

impl ToyTCP {
    fn receive(&self, state: &mut ToyTCPState, tcp: &Tcp, cx: &mut Cx) {
        if (tcp.src_port(), tcp.dst_port()) != (self.port, state.port) {
            return;
        }
        let opens = tcp.is_ack() && !tcp.is_rst() && tcp.ack() == state.first_seq.wrapping_add(1);
        if opens && state.ack.is_none() {
            state.ack = Some(tcp.seq().wrapping_add(1));
            cx.chatter("ToyTCP connected");
        }
        if tcp.is_rst() {
            let ToyTCPState { good, sent, .. } = state;
            cx.chatter(&format!("ToyTCP: RST from port {}, in {good}, out {sent}", self.port));
            state.bad = state.bad.wrapping_add(1);
            state.was_reset = true;
        } else {
            state.good = state.good.wrapping_add(1);
        }
    }

    fn send(&self, state: &mut ToyTCPState, cx: &mut Cx) {
        let (segment, len) = state.segment(self.port);
        if let Some(packet) = cx.copy_in_after(Ipv4Header::LEN + Ethernet::LEN, &segment[..len]) {
            cx.emit(ToyTCPExit::Segment, packet);
        }
    }
}
