//! `BufferConverter`: turns the data of handlers into TCP segments, and segments into data for handlers.

use super::segment::{NO_ENDPOINT, data_of, make_segment};
use castanet_element::prelude::*;
use castanet_element::wire::tcp::flag;
use std::collections::VecDeque;

/// Turns text that is written to a handler into TCP segments, and segments into text to be read.
///
/// The handler is `data`. A write sends up to MTU bytes at once; more follow in segments that are 5 ms apart. The segments have no
/// addresses, ports, numbers and checksums, which `TCPConn`, `SetTCPChecksum` and `SetIPChecksum`
/// can set. The element pulls segments from input 0, up to 1024 in advance. Each read of `data` takes the
/// data of one segment, and is empty if there is none. Data that is no UTF-8 is shown with replacement
/// characters. Input 1 is for ICMP errors, which have no effect.
///
/// ```click
/// in -> Queue -> [0] b :: BufferConverter(5) -> SetTCPChecksum -> SetIPChecksum -> out;  icmp -> [1] b
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp "hello"
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp
/// > in   1.0.0.1:5 > 2.0.0.2:80 tcp "world"
/// > in   1.0.0.1 > 2.0.0.2 udp
/// > icmp 3.0.0.3 > 2.0.0.2 icmp type unreachable code needfrag
/// = b.length 2
/// = b.data hello
/// = b.data world
/// = b.data
/// = b.drops.no_tcp 1
/// ! b.data request
/// < out  0.0.0.0:0 > 0.0.0.0:0 tcp win 32120 ttl 255 tos 16 df flags P "reque"
/// + 5ms
/// < out  0.0.0.0:0 > 0.0.0.0:0 tcp win 32120 ttl 255 tos 16 df flags P "st"
/// ```
#[derive(Element)]
#[element(room = "tcp", args = BufferConverterArgs, ports = "2/1", processing = "lh/h")]
pub struct BufferConverter {
    mtu: usize,
}

#[derive(Args)]
pub struct BufferConverterArgs {
    /// Maximum number of bytes of data in a segment.
    #[arg(range = 1..=65495)]
    mtu: usize,
}

impl Build for BufferConverter {
    type Args = BufferConverterArgs;

    fn build(args: BufferConverterArgs, _: &Setup) -> Result<Self, ArgError> {
        Ok(BufferConverter { mtu: args.mtu })
    }
}

/// Maximum number of segments whose data waits for a read.
const CAPACITY: usize = 1024;
/// Time between two segments of one write.
const GAP: Duration = Duration::from_millis(5);
/// Time after which the element looks whether data was read, while there is no room.
const ASK_AGAIN: Duration = Duration::from_millis(1);

/// The data of segments that have come, and data to be sent.
#[derive(Default, Local)]
#[local(methods)]
pub struct BufferConverterState {
    received: Shared<VecDeque<Vec<u8>>>,
    written: VecDeque<u8>,
    /// Whether a segment is due for a write, if only one without data.
    is_due: bool,
}

#[handlers]
impl BufferConverterState {
    /// The data of the segment that came first of those that were not read yet.
    #[read]
    fn data(&self) -> Value {
        let data = self.received.with(VecDeque::pop_front).unwrap_or_default();
        Value::common(String::from_utf8_lossy(&data).into_owned())
    }
    /// Number of segments whose data was not read yet.
    #[read]
    fn length(&self) -> usize {
        self.received.with(|received| received.len())
    }
    /// Sends data.
    #[write(data, wakes)]
    fn write(&mut self, text: &str) -> Result<(), ArgError> {
        self.written.extend(text.as_bytes());
        self.is_due = true;
        Ok(())
    }
}

#[derive(Fate)]
pub enum BufferConverterExit {
    /// Segments with the data that was written.
    Segment,
    /// Packets on input 0 that are no TCP segments over IPv4.
    #[drop]
    NoTcp,
}

impl PerBatch for BufferConverter {
    type On = on::Any;
    type Local = BufferConverterState;
    type Fate = BufferConverterExit;
    // There is one stream.
    const SHARED: bool = true;

    fn batch(&self, _: &mut BufferConverterState, _: usize, batch: Batch, cx: &mut Cx) {
        cx.consume(batch);
    }

    fn is_pulling(&self, _: &BufferConverterState) -> bool {
        // The source's task pulls.
        false
    }

    fn run_timer(&self, state: &mut BufferConverterState, cx: &mut Cx) {
        if !std::mem::take(&mut state.is_due) {
            return;
        }
        let count = state.written.len().min(self.mtu);
        let data: Vec<u8> = state.written.drain(..count).collect();
        let flow = (NO_ENDPOINT, NO_ENDPOINT);
        if let Some(packet) = make_segment(flow, flag::PSH, (0, 0), &data, cx) {
            cx.emit(BufferConverterExit::Segment, packet);
        }
        if !state.written.is_empty() {
            state.is_due = true;
            cx.set_timer(cx.now() + GAP);
        }
    }
}

impl Source for BufferConverter {
    type Local = BufferConverterState;
    type Fate = BufferConverterExit;

    fn produce(&self, state: &mut BufferConverterState, n: usize, cx: &mut Cx) -> NextRun {
        let room = CAPACITY.saturating_sub(state.length());
        if room == 0 {
            return NextRun::At(cx.now() + ASK_AGAIN);
        }
        let batch = cx.pull(0, n.min(room));
        if batch.is_empty() {
            return NextRun::Empty;
        }
        for packet in batch {
            match data_of(&packet) {
                None => cx.emit(BufferConverterExit::NoTcp, packet),
                Some(data) => {
                    if !data.is_empty() {
                        state.received.with(|received| received.push_back(data.to_vec()));
                    }
                    cx.consume(packet.into());
                }
            }
        }
        NextRun::More
    }
}
