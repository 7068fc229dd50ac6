//! `AggregateIPFlows`: aggregates by flow.

use super::ended::Ended;
use super::flow_fragments::{Held, Verdict};
use super::flow_wishes::{Wishes, nanos};
use castanet_engine::packet::anno;
use castanet_engine::prelude::*;
use castanet_kit::ip_flows::Timeouts;

/// Sets each packet's aggregate annotation to the number of its TCP or UDP flow.
///
/// Flows are numbered from 1 on as they appear. The paint says which way a packet
/// goes: 0 as the first, 1 against it, and 2 or 3 for an ICMP error about such a
/// packet. A flow that has been silent for its timeout is over, and so is TCP that
/// has ended on both sides; then the same addresses and ports get another number.
/// Time is that of the packets. Where CAPACITY flows are alive, the one that has been
/// silent for longest is over too (`displaced`). With FRAGMENTS, later fragments wait for the
/// first, which has the ports, and what comes between the same hosts behind them
/// waits too, for FRAGMENT_TIMEOUT or until 65536 packets wait; `clear` lets them go.
/// What belongs to no flow leaves by the second output.
/// TRACEINFO has an XML file say of each flow, once it is over, what it was.
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
#[element(room = "aggregate", args = Wishes)]
pub struct AggregateIPFlows {
    pub(super) timeouts: Timeouts,
    pub(super) fragment_timeout: Duration,
    pub(super) reap: u64,
    pub(super) icmp: bool,
    pub(super) fragments: Option<bool>,
    pub(super) symmetric: bool,
    pub(super) capacity: u32,
    pub(super) ended: Link<Ended>,
    pub(super) trace: Option<String>,
    /// What the trace is about.
    pub(super) source: Option<String>,
}

#[derive(Fate)]
pub enum Way {
    /// Packets of a flow.
    Flow,
    /// Packets of none.
    #[optional]
    None,
}

impl AggregateIPFlows {
    /// Sends a packet on, with what is known of its flow.
    fn send(&self, mut packet: Packet, flow: Option<(u32, u8)>, cx: &mut Cx) {
        let Some((number, paint)) = flow else { return cx.emit(Way::None, packet) };
        packet.set_anno_u32(anno::AGGREGATE, number);
        packet.set_paint(paint);
        cx.emit(Way::Flow, packet);
    }

    /// Sends packets on that have waited too long, and asks to be called for the next.
    fn release(&self, held: &mut Held, cx: &mut Cx) {
        while let Some((packet, flow)) = held.late(cx.now(), self.fragment_timeout) {
            self.send(packet, flow, cx);
        }
        if let Some(time) = held.next_late(self.fragment_timeout).filter(|_| !held.clearing) {
            cx.wake_at(time);
        }
    }

    /// Tells everybody which flows are over.
    fn tell(&self, held: &mut Held, cx: &mut Cx) {
        let over = held.over();
        held.trace.write(&over, cx);
        let numbers: Vec<u32> = over.iter().map(|flow| flow.number).collect();
        self.ended.with(|ended| ended.tell(&numbers));
    }
}

impl PerBatch for AggregateIPFlows {
    type On = on::Ipv4;
    type Local = Held;
    type Fate = Way;
    const SHARED: bool = true;

    fn continues(&self, before: &AggregateIPFlows) -> bool {
        (&self.trace, &self.source) == (&before.trace, &before.source)
    }

    fn begin(&self, held: &mut Held, _: &mut Cx) -> Result<(), ArgError> {
        self.trace.as_ref().map_or(Ok(()), |name| held.trace.open(name))
    }

    fn start(&self, held: &mut Held, _: &mut Cx) -> Result<(), ArgError> {
        held.trace.start(self.source.as_deref())
    }

    fn end(&self, held: &mut Held, cx: &mut Cx) {
        if self.trace.is_some() {
            held.forget();
            self.tell(held, cx);
            held.trace.close(cx);
        }
    }

    fn batch(&self, held: &mut Held, _: usize, batch: Batch, cx: &mut Cx) {
        let waits = self.fragments.unwrap_or(true) && cx.pulled().is_none();
        held.set((self.symmetric, self.icmp, waits, self.timeouts), self.capacity);
        for packet in batch {
            let now = match packet.timestamp() {
                0 => cx.now().nanos(),
                time => time.unsigned_abs(),
            };
            if held.reap_if_due(now, self.reap) || held.are_many_over() {
                self.tell(held, cx);
            }
            match held.take_in(packet, now) {
                Verdict::Known(packet, flow) => self.send(packet, flow, cx),
                Verdict::Waits(packet, pair) => {
                    if let Some(packet) = cx.keep_one(packet, || held.len()) {
                        held.wait(packet, pair, now, cx.now());
                    }
                    let timeout = nanos(self.fragment_timeout);
                    while let Some((packet, flow)) = held.next(pair, now, timeout) {
                        self.send(packet, flow, cx);
                    }
                }
            }
        }
        self.release(held, cx);
    }

    fn wake(&self, held: &mut Held, cx: &mut Cx) {
        if !held.clearing {
            return self.release(held, cx);
        }
        for _ in 0..cx.burst() {
            let Some((packet, flow)) = held.any() else {
                held.clearing = false;
                held.forget();
                return self.tell(held, cx);
            };
            self.send(packet, flow, cx);
        }
        cx.wake_at(cx.now());
    }

    fn held(&self, held: &Held) -> usize {
        held.len()
    }
}
