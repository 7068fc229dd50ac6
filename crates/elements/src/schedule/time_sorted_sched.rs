//! `TimeSortedSched`: merges its inputs in the order of timestamps.

use castanet_element::prelude::*;

/// Merges packets of several inputs in the order of their timestamps.
///
/// The packets of each input must be in order. A packet is emitted when each input has either a
/// younger packet or none at all.
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
    /// Number of packets per input that FastClick stores; ignored, as the burst of the pulling
    /// element decides here.
    #[arg(keyword, default = 1)]
    #[allow(dead_code)]
    buffer: u32,
}

/// The packets that were pulled and not yet emitted.
#[derive(Default, Local)]
pub struct TimeSortedSchedState {
    /// By input: its packets, the next one last.
    packets: Vec<Vec<Packet>>,
    /// Number of consecutive calls that found no packet.
    empty_calls: u32,
}

impl TimeSortedSchedState {
    /// The input whose next packet is the oldest. Pulls up to `n` packets from each input of which
    /// no packet is stored.
    fn oldest_input(&mut self, n: usize, cx: &mut Cx) -> Option<usize> {
        self.packets.resize_with(cx.inputs(), Vec::new);
        for (input, queue) in
            self.packets.iter_mut().enumerate().filter(|(_, queue)| queue.is_empty())
        {
            queue.extend(cx.pull(input, n).drain().rev());
        }
        let next = |(input, queue): (usize, &Vec<Packet>)| Some((queue.last()?.timestamp(), input));
        self.packets.iter().enumerate().filter_map(next).min().map(|(_, input)| input)
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
            && let Some(input) = state.oldest_input(n, cx)
        {
            state.packets[input].pop().into_iter().for_each(|packet| cx.emit((), packet));
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
