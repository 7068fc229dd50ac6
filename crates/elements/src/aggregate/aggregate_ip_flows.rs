//! `AggregateIPFlows`: numbers TCP and UDP flows.

use super::aggregate_ip_flows_args::{AggregateIPFlowsArgs, nanos};
use super::end_notifications::EndNotifier;
use super::flow_queue::{AggregateIPFlowsState, Verdict};
use castanet_element::prelude::*;
use castanet_kit::ip_flows::Timeouts;

/// Sets each packet's aggregate annotation to the number of its TCP or UDP flow.
///
/// Flows are numbered from 1 on as they appear. The paint is the direction of a packet: 0 for that
/// of the first packet, 1 for the opposite one, and 2 or 3 for an ICMP error about such a packet.
/// A flow ends when no packet has come for its timeout, or when both sides of a TCP connection
/// have closed; then the same addresses and ports get another number. Time is that of the packets'
/// time stamps. Beyond CAPACITY flows, the one without packets for longest ends too (`displaced`).
/// With FRAGMENTS, later fragments wait for the first, which has the ports, and packets between
/// the same hosts queue behind them, for FRAGMENT_TIMEOUT or until 65536 packets wait; `clear`
/// releases them. Packets that belong to no flow leave by the second output. TRACEINFO names an
/// XML file, which gets an element for each flow that has ended.
///
/// ```click
/// in -> f :: AggregateIPFlows -> k :: AggregateCounter -> out;  f[1] -> none
/// > in  1.0.0.1:5 > 2.0.0.2:6 udp ; time 1000000000
/// > in  2.0.0.2:6 > 1.0.0.1:5 udp ; time 1000000001
/// > in  1.0.0.1:5 > 2.0.0.2:6 tcp ; time 1000000001
/// > in  1.0.0.1 > 2.0.0.2 icmp
/// < out 1.0.0.1:5 > 2.0.0.2:6 udp ; time 1000000000.000000000 paint 0
/// < out 2.0.0.2:6 > 1.0.0.1:5 udp ; time 1000000001.000000000 paint 1
/// < out 1.0.0.1:5 > 2.0.0.2:6 tcp ; time 1000000001.000000000 paint 0
/// < none 1.0.0.1 > 2.0.0.2 icmp
/// = k.nagg 2
/// = f.count 2
/// > in  1.0.0.1:5 > 2.0.0.2:6 udp ; time 1000000062.5
/// < out 1.0.0.1:5 > 2.0.0.2:6 udp ; time 1000000062.500000000 paint 0
/// = k.nagg 3
/// ! f.clear
/// = f.count 0
/// ```
///
/// ```click
/// in -> f :: AggregateIPFlows(FRAGMENTS true, SYMETRIC false) -> out;  f[1] -> none
/// > in  1.0.0.1 > 2.0.0.2 udp id 7 frag 1480 len 60
/// = f.length 1
/// ! f.clear
/// < none 1.0.0.1 > 2.0.0.2 udp id 7 frag 1480 len 60
/// > in  1.0.0.1 > 2.0.0.2 udp id 8 frag 1480 len 60
/// + 29s
/// = f.length 1
/// + 2s
/// < none 1.0.0.1 > 2.0.0.2 udp id 8 frag 1480 len 60
/// ```
///
/// ```click
/// in -> f :: AggregateIPFlows(CAPACITY 2) -> first :: AggregateFirst(NOTIFIER f) -> out;  f[1] -> none
/// first[1] -> again
/// > in    1.0.0.1:5 > 2.0.0.2:6 udp
/// > in    1.0.0.1:7 > 2.0.0.2:6 udp
/// > in    1.0.0.1:5 > 2.0.0.2:6 udp
/// > in    1.0.0.1:8 > 2.0.0.2:6 udp
/// > in    1.0.0.1:5 > 2.0.0.2:6 udp
/// > in    1.0.0.1:7 > 2.0.0.2:6 udp
/// < out   1.0.0.1:5 > 2.0.0.2:6 udp
/// < out   1.0.0.1:7 > 2.0.0.2:6 udp
/// < again 1.0.0.1:5 > 2.0.0.2:6 udp
/// < out   1.0.0.1:8 > 2.0.0.2:6 udp
/// < again 1.0.0.1:5 > 2.0.0.2:6 udp
/// < out   1.0.0.1:7 > 2.0.0.2:6 udp
/// = f.count 2
/// = f.displaced 2
/// ```
///
/// ```click
/// in -> f :: AggregateIPFlows(TRACEINFO /dev/full) -> out;  f[1] -> none
/// > in  1.0.0.1:5 > 2.0.0.2:6 udp
/// < out 1.0.0.1:5 > 2.0.0.2:6 udp
/// ! f.clear
/// = f.count 0
/// ```
#[derive(Element)]
#[element(room = "aggregate", args = AggregateIPFlowsArgs)]
pub struct AggregateIPFlows {
    pub(super) timeouts: Timeouts,
    pub(super) fragment_timeout: Duration,
    pub(super) reap: u64,
    pub(super) icmp: bool,
    pub(super) fragments: Option<bool>,
    pub(super) symmetric: bool,
    pub(super) capacity: u32,
    pub(super) notifier: Shared<EndNotifier>,
    pub(super) trace: Option<String>,
    pub(super) source: Option<String>,
}

#[derive(Fate)]
pub enum AggregateIPFlowsExit {
    /// Packets of a flow.
    Flow,
    /// Packets of no flow.
    #[optional]
    None,
}

impl PerBatch for AggregateIPFlows {
    type On = on::Ipv4;
    type Local = AggregateIPFlowsState;
    type Fate = AggregateIPFlowsExit;
    const SHARED: bool = true;

    fn can_take_state(&self, before: &AggregateIPFlows) -> bool {
        (&self.trace, &self.source) == (&before.trace, &before.source)
    }

    fn init(&self, state: &mut AggregateIPFlowsState, _: &mut Cx) -> Result<(), ArgError> {
        self.trace.as_ref().map_or(Ok(()), |name| state.trace.open(name))
    }

    fn start(&self, state: &mut AggregateIPFlowsState, _: &mut Cx) -> Result<(), ArgError> {
        state.trace.start(self.source.as_deref())
    }

    fn cleanup(&self, state: &mut AggregateIPFlowsState, cx: &mut Cx) {
        if self.trace.is_some() {
            state.forget();
            self.report_ended(state, cx);
            state.trace.close(cx);
        }
    }

    fn batch(&self, state: &mut AggregateIPFlowsState, _: usize, batch: Batch, cx: &mut Cx) {
        let waits = self.fragments.unwrap_or(true) && cx.pulling_output().is_none();
        state.configure((self.symmetric, self.icmp, waits, self.timeouts), self.capacity);
        let rest = self.number_whole(state, batch, cx);
        for packet in rest {
            let now = self.begin_packet(state, &packet, cx);
            match state.classify(packet, now) {
                Verdict::Emit(packet, flow) => self.send(packet, flow, cx),
                Verdict::Queue(packet, pair) => {
                    if let Some(packet) = cx.keep_one(packet, || state.len()) {
                        state.enqueue(packet, pair, now, cx.now());
                    }
                    let timeout = nanos(self.fragment_timeout);
                    while let Some((packet, flow)) = state.pop_ready(pair, now, timeout) {
                        self.send(packet, flow, cx);
                    }
                }
            }
        }
        self.release(state, cx);
    }

    fn run_timer(&self, state: &mut AggregateIPFlowsState, cx: &mut Cx) {
        if !state.clearing {
            return self.release(state, cx);
        }
        for _ in 0..cx.burst() {
            let Some((packet, flow)) = state.pop_any() else {
                state.clearing = false;
                state.forget();
                return self.report_ended(state, cx);
            };
            self.send(packet, flow, cx);
        }
        cx.set_timer(cx.now());
    }

    fn held(&self, state: &AggregateIPFlowsState) -> usize {
        state.len()
    }
}
