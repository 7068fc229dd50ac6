//! `TCPBuffer`: stores the segments of one TCP flow, and gives them out in order.

use super::segment::sequence_of;
use castanet_element::prelude::*;
use castanet_kit::segment_order::SegmentOrder;
use std::collections::VecDeque;

/// Stores the TCP segments of one flow until they are pulled, in the order of their sequence numbers.
///
/// No segment is pulled while one before it is missing; with SKIP true, the missing ones are skipped. The
/// first segment that is pulled begins the sequence. Segments with the number of another one in
/// the buffer, and those before the sequence that was pulled, are dropped. `TCPAck` acknowledges
/// what is here.
///
/// ```click
/// in -> b :: TCPBuffer -> u :: Unqueue -> out
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp syn seq 9
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp seq 13 "ef"
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp seq 13 "xx"
/// < out 1.0.0.1:5 > 2.0.0.2:80 tcp syn seq 9
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp seq 10 "abc"
/// < out 1.0.0.1:5 > 2.0.0.2:80 tcp seq 10 "abc"
/// < out 1.0.0.1:5 > 2.0.0.2:80 tcp seq 13 "ef"
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp seq 10 "abc"
/// > in  1.0.0.1 > 2.0.0.2 udp
/// = b.length 0
/// = b.drops.repeated 2
/// = b.drops.no_tcp 1
/// = b.drops.full 0
/// ```
/// ```click
/// in -> b :: TCPBuffer(SKIP true) -> u :: Unqueue(ACTIVE false) -> out
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp seq 20 "ef"
/// > in  1.0.0.1:5 > 2.0.0.2:80 tcp seq 10 "abc"
/// = b.length 2
/// ! u.active true
/// < out 1.0.0.1:5 > 2.0.0.2:80 tcp seq 10 "abc"
/// < out 1.0.0.1:5 > 2.0.0.2:80 tcp seq 20 "ef"
/// ```
#[derive(Element)]
#[element(room = "tcp", args = TCPBufferArgs)]
pub struct TCPBuffer {
    skip: bool,
    order: Shared<SegmentOrder>,
}

#[derive(Args)]
pub struct TCPBufferArgs {
    /// Whether segments are pulled although others before them are missing.
    #[arg(default = false)]
    skip: bool,
}

impl Build for TCPBuffer {
    type Args = TCPBufferArgs;

    fn build(args: TCPBufferArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(TCPBuffer { skip: args.skip, order: setup.own_shared() })
    }
}

/// Maximum number of segments: as many as a window has bytes.
const CAPACITY: usize = 1 << 16;

/// The segments, in the order of their numbers.
#[derive(Default, Local)]
#[local(methods)]
pub struct TCPBufferState {
    segments: VecDeque<Packet>,
}

#[handlers]
impl TCPBufferState {
    /// Number of segments in the buffer.
    #[read]
    fn length(&self) -> usize {
        self.segments.len()
    }
}

#[derive(Fate)]
pub enum TCPBufferExit {
    /// Segments in the order of their numbers.
    Next,
    /// Segments that have come before.
    #[drop]
    Repeated,
    /// Segments beyond the 65536 that are waiting. See why the first one of them does not leave.
    #[drop]
    Full,
    /// Packets that are no TCP segments over IPv4.
    #[drop]
    NoTcp,
}

impl Store for TCPBuffer {
    type Local = TCPBufferState;
    type Fate = TCPBufferExit;

    fn enqueue(&self, state: &mut TCPBufferState, batch: Batch, cx: &mut Cx) {
        self.order.with(|order| {
            for packet in batch {
                let Some((seq, len)) = sequence_of(&packet) else {
                    cx.emit(TCPBufferExit::NoTcp, packet);
                    continue;
                };
                if state.segments.len() >= CAPACITY {
                    cx.emit(TCPBufferExit::Full, packet);
                    continue;
                }
                match order.insert(seq, len) {
                    Some(place) => state.segments.insert(place.min(state.segments.len()), packet),
                    None => cx.emit(TCPBufferExit::Repeated, packet),
                }
            }
        });
    }

    fn dequeue(&self, state: &mut TCPBufferState, n: usize, into: &mut Batch, _: &mut Cx) {
        self.order.with(|order| {
            for _ in 0..n {
                if !order.pop(self.skip) {
                    break;
                }
                into.extend(state.segments.pop_front());
            }
        });
    }

    fn held(&self, state: &TCPBufferState) -> usize {
        state.segments.len()
    }
}
