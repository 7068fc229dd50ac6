//! `TCPConn`: opens a TCP connection or waits for one.

use super::segment::{flow_of, make_segment, sequence_of, set_flow};
use super::tcp_conn_state::{ConnectionState, TCPConnState};
use super::tcp_demux::FlowTable;
use castanet_element::prelude::*;
use castanet_element::wire::tcp::flag;

/// Opens a TCP connection, or waits for one, and addresses and numbers its segments.
///
/// Write `connect SRC SPORT DST DPORT` to the handler `ctrl` to open a connection from SRC to DST, or `listen
/// SRC SPORT` to accept one. SYN segments leave by output 2. Segments of the other side come in on input 0
/// from a `TCPDemux`, which gets to know the connection, and leave by output 0. Segments to the
/// other side are pulled through input 1 and output 1 once the connection is established; they get
/// addresses, ports and a sequence number. An element has one connection at a time, which ends with RST or by the
/// handler `reset`. Segments are not repeated, and windows not heeded. Checksums are not
/// updated; `SetTCPChecksum` and `SetIPChecksum` do that.
///
/// ```click
/// RandomSeed(5)
/// in -> TCPDemux -> [0] c :: TCPConn [0] -> data
/// app -> Queue -> [1] c [1] -> Unqueue -> SetTCPChecksum -> SetIPChecksum -> net
/// c[2] -> SetTCPChecksum -> SetIPChecksum -> syn
/// = c.state closed
/// ! c.ctrl connect 1.0.0.1 5 2.0.0.2 80
/// = c.state syn-sent
/// < syn  1.0.0.1:5 > 2.0.0.2:80 tcp syn seq 590011675 win 32120 ttl 255 tos 16 df
/// > app  9.9.9.9:9 > 8.8.8.8:8 tcp "hello"
/// > in   2.0.0.2:80 > 1.0.0.1:5 tcp syn seq 70 ack 590011676
/// < data 2.0.0.2:80 > 1.0.0.1:5 tcp syn seq 70 ack 590011676
/// = c.state established
/// + 2ms
/// < net  1.0.0.1:5 > 2.0.0.2:80 tcp seq 590011676 "hello"
/// > app  9.9.9.9:9 > 8.8.8.8:8 tcp "!"
/// < net  1.0.0.1:5 > 2.0.0.2:80 tcp seq 590011681 "!"
/// > in   2.0.0.2:80 > 1.0.0.1:5 tcp rst seq 71
/// < data 2.0.0.2:80 > 1.0.0.1:5 tcp rst seq 71
/// = c.state closed
/// ```
/// ```click
/// RandomSeed(5)
/// in -> [0] c :: TCPConn [0] -> data;  Idle -> TCPDemux -> c;  app -> Queue -> [1] c [1] -> Unqueue -> net
/// c[2] -> SetTCPChecksum -> SetIPChecksum -> syn
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp syn seq 9
/// = c.drops.unasked 1
/// ! c.ctrl listen 2.0.0.2 80
/// = c.state listen
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp syn seq 9
/// < syn  2.0.0.2:80 > 1.0.0.1:5 tcp syn seq 590011675 ack 10 win 32120 ttl 255 tos 16 df
/// < data 1.0.0.1:5 > 2.0.0.2:80 tcp syn seq 9
/// > in   7.0.0.7:5 > 2.0.0.2:80 tcp syn seq 9
/// = c.drops.unasked 2
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp seq 10 ack 590011676 "hello"
/// < data 1.0.0.1:5 > 2.0.0.2:80 tcp seq 10 ack 590011676 "hello"
/// = c.state established
/// > app  9.9.9.9 > 8.8.8.8 udp
/// + 2ms
/// = c.drops.no_tcp 1
/// ! c.reset
/// = c.state closed
/// ```
#[derive(Element)]
#[element(room = "tcp", args = (), ports = "2/3", processing = "hl/hlh")]
pub struct TCPConn {
    demux: Shared<FlowTable>,
}

impl Build for TCPConn {
    type Args = ();

    fn build((): (), setup: &Setup) -> Result<Self, ArgError> {
        let demux = setup.shared_of_partner().ok_or_else(|| {
            let error = ArgError::new("there is no TCPDemux before input 0");
            error.click("need at least 1 upstream TCPDemux")
        })?;
        Ok(TCPConn { demux })
    }
}

#[derive(Fate)]
pub enum TCPConnExit {
    /// Segments from the other side.
    Received,
    /// Segments to the other side.
    Sent,
    /// SYN segments to the other side.
    Opening,
    /// Segments from the other side of no connection, or of another one.
    #[drop]
    Unasked,
    /// Packets to the other side that are no TCP segments over IPv4.
    #[drop]
    NoTcp,
}

/// Time after which a puller asks again that came before the connection was established.
const ASK_AGAIN: Duration = Duration::from_millis(1);

impl PerBatch for TCPConn {
    type On = on::Tcp;
    type Local = TCPConnState;
    type Fate = TCPConnExit;
    // There is one connection.
    const SHARED: bool = true;

    fn apply_config(&self, state: &mut TCPConnState) {
        state.use_demux(&self.demux);
    }

    fn batch(&self, state: &mut TCPConnState, _: usize, batch: Batch, cx: &mut Cx) {
        for packet in batch {
            let (Some(flow), Some(tcp)) = (flow_of(&packet), packet.tcp_header()) else { continue };
            let is_known = state.receive(flow, tcp);
            self.open(state, cx);
            cx.emit(if is_known { TCPConnExit::Received } else { TCPConnExit::Unasked }, packet);
        }
    }

    fn run_timer(&self, state: &mut TCPConnState, cx: &mut Cx) {
        self.open(state, cx);
    }

    fn cleanup(&self, state: &mut TCPConnState, _: &mut Cx) {
        state.close();
    }
}

impl Source for TCPConn {
    type Local = TCPConnState;
    type Fate = TCPConnExit;

    fn is_active(&self, _: &TCPConnState) -> bool {
        // It produces only when it is pulled.
        false
    }

    fn produce(&self, state: &mut TCPConnState, n: usize, cx: &mut Cx) -> NextRun {
        if !cx.is_pulled() {
            return NextRun::Done;
        }
        if state.state != ConnectionState::Established {
            cx.retry_at(cx.now() + ASK_AGAIN);
            return NextRun::Empty;
        }
        let batch = cx.pull(1, n);
        if batch.is_empty() {
            return NextRun::Empty;
        }
        for mut packet in batch {
            let exit = match sequence_of(&packet) {
                None => TCPConnExit::NoTcp,
                Some((_, len)) => {
                    set_flow(&mut packet, state.outgoing());
                    if let Some(mut tcp) = packet.tcp() {
                        tcp.set_seq(state.next_seq);
                    }
                    state.next_seq = state.next_seq.wrapping_add(len);
                    TCPConnExit::Sent
                }
            };
            cx.emit(exit, packet);
        }
        NextRun::More
    }
}

impl TCPConn {
    /// Sends the SYN segment that is due, if there is one.
    fn open(&self, state: &mut TCPConnState, cx: &mut Cx) {
        let Some(acknowledged) = state.syn_due.take() else { return };
        let seq = *state.first_seq.get_or_insert_with(|| cx.random_numbers().number());
        state.next_seq = seq.wrapping_add(1);
        let (flags, ack) = match acknowledged {
            None => (flag::SYN, 0),
            Some(ack) => (flag::SYN | flag::ACK, ack),
        };
        if let Some(packet) = make_segment(state.outgoing(), flags, (seq, ack), &[], cx) {
            cx.emit(TCPConnExit::Opening, packet);
        }
    }
}
