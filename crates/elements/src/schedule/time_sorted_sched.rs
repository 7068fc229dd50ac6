//! `TimeSortedSched`: merges its inputs in the order of timestamps.

use castanet_element::prelude::*;

/// Merges packets of several inputs in the order of their timestamps.
///
/// Each pull first fills up to BUFFER packets for each input, then gives the earliest of all.
///
/// ```click
/// a -> Queue -> [0] s :: TimeSortedSched -> u :: Unqueue(ACTIVE false) -> out
/// b -> Queue -> [1] s
/// > a 1.0.0.1 > 2.0.0.2 udp ; time 1000000001
/// > a 1.0.0.3 > 2.0.0.2 udp ; time 1000000003
/// > b 1.0.0.2 > 2.0.0.2 udp ; time 1000000002
/// > b 1.0.0.4 > 2.0.0.2 udp ; time 1000000004
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp ; time 1000000001.000000000
/// < out 1.0.0.2 > 2.0.0.2 udp ; time 1000000002.000000000
/// < out 1.0.0.3 > 2.0.0.2 udp ; time 1000000003.000000000
/// < out 1.0.0.4 > 2.0.0.2 udp ; time 1000000004.000000000
/// = s.well_ordered true
/// > a 1.0.0.6 > 2.0.0.2 udp ; time 1000000006
/// < out 1.0.0.6 > 2.0.0.2 udp ; time 1000000006.000000000
/// > a 1.0.0.5 > 2.0.0.2 udp ; time 1000000005
/// < out 1.0.0.5 > 2.0.0.2 udp ; time 1000000005.000000000
/// = s.well_ordered false
/// ```
///
/// A buffer puts packets of one input in order:
///
/// ```click
/// in -> Queue -> TimeSortedSched(BUFFER 2) -> u :: Unqueue(ACTIVE false) -> out
/// > in 1.0.0.2 > 2.0.0.2 udp ; time 1000000002
/// > in 1.0.0.1 > 2.0.0.2 udp ; time 1000000001
/// > in 1.0.0.3 > 2.0.0.2 udp ; time 1000000003
/// ! u.active true
/// < out 1.0.0.1 > 2.0.0.2 udp ; time 1000000001.000000000
/// < out 1.0.0.2 > 2.0.0.2 udp ; time 1000000002.000000000
/// < out 1.0.0.3 > 2.0.0.2 udp ; time 1000000003.000000000
/// ```
///
/// With STOP it stops the router when all inputs are empty.
///
/// ```click
/// in -> Queue -> s :: TimeSortedSched(STOP true) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// ```
#[derive(Element)]
#[element(room = "schedule", ports = "-/1", processing = "l/l")]
pub struct TimeSortedSched {
    /// Whether to stop the router when all inputs are empty.
    #[arg(keyword, default = false)]
    stop: bool,
    /// Number of packets to store for each input.
    #[arg(keyword, default = 1, range = 1..)]
    buffer: usize,
}

/// The packets that were pulled and not yet emitted.
#[derive(Default, Local)]
#[local(methods)]
pub struct TimeSortedSchedState {
    /// By input: its packets, in the order in which they were pulled.
    packets: Vec<Vec<Packet>>,
    /// Number of consecutive calls that found no packet.
    empty_calls: u32,
    /// The timestamp of the last packet.
    last: Option<i64>,
    /// Whether a packet was emitted with an earlier timestamp than the one before.
    is_disordered: bool,
}

#[handlers]
impl TimeSortedSchedState {
    /// Whether no packet was emitted with an earlier timestamp than the one before.
    #[read]
    fn well_ordered(&self) -> bool {
        !self.is_disordered
    }
}

impl TimeSortedSchedState {
    /// Fills up to `buffer` packets for each input, and takes the earliest of all.
    fn earliest(&mut self, buffer: usize, cx: &mut Cx) -> Option<Packet> {
        self.packets.resize_with(cx.inputs(), Vec::new);
        let mut earliest = None;
        for (input, packets) in self.packets.iter_mut().enumerate() {
            // A pull may bring one packet only.
            while packets.len() < buffer {
                let pulled = cx.pull(input, buffer - packets.len());
                if pulled.is_empty() {
                    break;
                }
                packets.extend(pulled);
            }
            let times = packets.iter().enumerate();
            let first = times.map(|(at, packet)| (packet.timestamp(), input, at)).min();
            earliest = earliest.into_iter().chain(first).min();
        }
        let (time, input, at) = earliest?;
        self.is_disordered |= self.last.replace(time).is_some_and(|last| time < last);
        Some(self.packets[input].remove(at))
    }
}

impl Source for TimeSortedSched {
    type Local = TimeSortedSchedState;
    type Fate = ();

    fn produce(&self, state: &mut TimeSortedSchedState, n: usize, cx: &mut Cx) -> NextRun {
        /// Number of consecutive calls without a packet after which all inputs count as empty.
        /// Between two calls the other tasks of the worker have run, so that no packet is still on
        /// its way.
        const EMPTY_CALLS: u32 = 2;
        let mut sent = 0;
        while sent < n
            && let Some(packet) = state.earliest(self.buffer, cx)
        {
            cx.emit((), packet);
            sent += 1;
        }
        state.empty_calls = if sent > 0 || cx.has_retry() { 0 } else { state.empty_calls + 1 };
        if self.stop && state.empty_calls == EMPTY_CALLS {
            cx.stop();
        }
        NextRun::Empty
    }

    fn held(&self, state: &TimeSortedSchedState) -> usize {
        state.packets.iter().map(Vec::len).sum()
    }
}
