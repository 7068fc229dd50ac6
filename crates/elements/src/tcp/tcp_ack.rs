//! `TCPAck`: acknowledges the data of a TCP flow.

use super::segment::{NO_ENDPOINT, make_segment, sequence_of};
use castanet_element::prelude::*;
use castanet_element::wire::tcp::flag;
use castanet_kit::segment_order::SegmentOrder;

/// Acknowledges the data of a TCP flow, up to the first byte that is missing.
///
/// The flow comes in on input 0. Segments leave by the output of their input's number. Those on input 1, which go the other way,
/// get the acknowledgment number. If none has come for DELAY (20 ms) after data, an acknowledgment leaves
/// by output 2, without addresses, ports and a sequence number, which `CopyFlowID` and `CopyTCPSeq` can set.
/// Data that came out of order is looked up in the nearest `TCPBuffer` behind output 0.
///
/// The number begins with the first SYN with ACK on one of both inputs; segments before that are
/// dropped. Checksums are not updated; `SetTCPChecksum` and `SetIPChecksum` do that.
///
/// ```click
/// in -> [0] a :: TCPAck [0] -> b :: TCPBuffer -> Unqueue -> out
/// back -> [1] a [1] -> SetTCPChecksum -> answer;  a[2] -> SetTCPChecksum -> SetIPChecksum -> ack
/// > in     1.0.0.1:80 > 2.0.0.2:5 tcp seq 9 "early"
/// = a.drops.early 1
/// > in     1.0.0.1:80 > 2.0.0.2:5 tcp syn seq 9 ack 7
/// > in     1.0.0.1:80 > 2.0.0.2:5 tcp seq 10 ack 7 "abc"
/// > in     1.0.0.1:80 > 2.0.0.2:5 tcp seq 16 ack 7 "gh"
/// ~ seqno < ack_nxt: out of order or retransmitted packet
/// < out    1.0.0.1:80 > 2.0.0.2:5 tcp syn seq 9 ack 7
/// < out    1.0.0.1:80 > 2.0.0.2:5 tcp seq 10 ack 7 "abc"
/// > back   2.0.0.2:5 > 1.0.0.1:80 tcp seq 7 ack 0 "hello"
/// < answer 2.0.0.2:5 > 1.0.0.1:80 tcp seq 7 ack 13 "hello"
/// > in     1.0.0.1:80 > 2.0.0.2:5 tcp seq 13 ack 7 "def"
/// < out    1.0.0.1:80 > 2.0.0.2:5 tcp seq 13 ack 7 "def"
/// < out    1.0.0.1:80 > 2.0.0.2:5 tcp seq 16 ack 7 "gh"
/// + 20ms
/// < ack    0.0.0.0:0 > 0.0.0.0:0 tcp seq 0 ack 18 win 32120 ttl 255 tos 16 df
/// ```
#[derive(Element)]
#[element(room = "tcp", args = TCPAckArgs, ports = "2/3", processing = "aa/aah")]
pub struct TCPAck {
    delay: Duration,
    /// The segments of the buffer behind output 0.
    order: Shared<SegmentOrder>,
}

#[derive(Args)]
pub struct TCPAckArgs {
    /// Time after which data is acknowledged if no segment that goes the other way has done so.
    #[arg(keyword, default = Duration::from_millis(20))]
    delay: Duration,
}

impl Build for TCPAck {
    type Args = TCPAckArgs;

    fn build(args: TCPAckArgs, setup: &Setup) -> Result<Self, ArgError> {
        let order = setup.shared_of_partner().ok_or_else(|| {
            let error = ArgError::new("there is no TCPBuffer behind output 0");
            error.click("need at least 1 downstream TCPBuffer")
        })?;
        Ok(TCPAck { delay: args.delay, order })
    }
}

#[derive(Fate)]
pub enum TCPAckExit {
    /// Segments of input 0.
    Data,
    /// Segments of input 1, with the acknowledgment number.
    Answer,
    /// Acknowledgments.
    Acknowledgment,
    /// Segments before the first SYN with ACK.
    #[drop]
    Early,
}

/// The acknowledgment number.
#[derive(Default, Local)]
pub struct TCPAckState {
    /// The first number that is missing; `None` before the first SYN with ACK.
    next: Option<u32>,
    /// Whether there is data that nothing has acknowledged.
    is_due: bool,
    has_timer: bool,
}

impl PerBatch for TCPAck {
    type On = on::Tcp;
    type Local = TCPAckState;
    type Fate = TCPAckExit;
    // A flow has one acknowledgment number.
    const SHARED: bool = true;

    fn batch(&self, state: &mut TCPAckState, port: usize, batch: Batch, cx: &mut Cx) {
        for mut packet in batch {
            let exit = match port {
                0 => self.note(state, &packet, cx),
                _ => answer(state, &mut packet),
            };
            cx.emit(exit, packet);
        }
    }

    fn run_timer(&self, state: &mut TCPAckState, cx: &mut Cx) {
        state.has_timer = false;
        let Some(next) = state.next.filter(|_| std::mem::take(&mut state.is_due)) else { return };
        let flow = (NO_ENDPOINT, NO_ENDPOINT);
        if let Some(packet) = make_segment(flow, flag::ACK, (0, next), &[], cx) {
            cx.emit(TCPAckExit::Acknowledgment, packet);
        }
    }
}

impl TCPAck {
    /// Notes a segment of input 0.
    fn note(&self, state: &mut TCPAckState, packet: &Packet, cx: &mut Cx) -> TCPAckExit {
        let (Some(tcp), Some((seq, len))) = (packet.tcp_header(), sequence_of(packet)) else {
            return TCPAckExit::Early;
        };
        if state.next.is_none() && tcp.is_syn() && tcp.is_ack() {
            state.next = Some(seq.wrapping_add(1));
        }
        let Some(next) = state.next else { return TCPAckExit::Early };
        if tcp.is_syn() || tcp.is_fin() || tcp.is_rst() {
            return TCPAckExit::Data;
        }
        if seq == next {
            let next = next.wrapping_add(len);
            state.next = self.order.with(|order| order.next_missing(next)).or(Some(next));
        } else {
            cx.chatter("seqno < ack_nxt: out of order or retransmitted packet");
        }
        state.is_due = true;
        if !std::mem::replace(&mut state.has_timer, true) {
            cx.set_timer(cx.now() + self.delay);
        }
        TCPAckExit::Data
    }
}

/// Acknowledges by a segment of input 1.
fn answer(state: &mut TCPAckState, packet: &mut Packet) -> TCPAckExit {
    let Some(mut tcp) = packet.tcp() else { return TCPAckExit::Early };
    if tcp.is_syn() && tcp.is_ack() {
        state.next = Some(tcp.ack());
    }
    let Some(next) = state.next else { return TCPAckExit::Early };
    state.is_due = false;
    tcp.set_ack(next);
    TCPAckExit::Answer
}
