//! `ReplayUnqueue`: replays a packet trace from memory.

use super::packet_trace::PacketTrace;
use super::replay_unqueue_args::ReplayUnqueueArgs;
use castanet_element::prelude::*;
use castanet_kit::formula::Formula;

/// Replays packets from memory repeatedly, after pulling them until an input is dry.
///
/// Packets of several inputs are ordered by their time stamps; each leaves by the
/// output of its input's number, which is its paint annotation, too. An input is dry when it has no packet twice in a row;
/// the remaining packets of other inputs are dropped (`drops.unmatched`). Stored packets
/// have memory of their own and do not use up the packet pool.
///
/// ```click
/// in -> Queue -> r :: ReplayUnqueue(STOP 2, ACTIVE false, VERBOSE true) -> c :: Counter -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// = r.loaded false
/// = r.stop 2
/// ! r.active true
/// ~ Loading r with 1 inputs.
/// ~ r : Successfully loaded 2 packets. Input 0 dried out.
/// ~ r :: ReplayUnqueue: Replay loop (2 loops left)
/// ~ r :: ReplayUnqueue: Replay loop (1 loops left)
/// ~ r :: ReplayUnqueue: stopped because there is 0 loops left
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// = c.count 4
/// = r.loaded true
/// = r.stop 0
/// = r.active false
/// ! r.stop 1
/// = c.count 4
/// ! r.active true
/// ~ r :: ReplayUnqueue: Replay loop (1 loops left)
/// ~ r :: ReplayUnqueue: stopped because there is 0 loops left
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// = r.active false
/// ! r.reset
/// = r.drops.reset 2
/// ```
///
/// TIMING is a speed in percent of the recorded one:
///
/// ```click
/// a -> Queue -> r :: ReplayUnqueue(STOP 1, TIMING 50, ACTIVE false) -> x;  b -> Queue -> [1] r;  r[1] -> y
/// > a 1.0.0.1 > 2.0.0.2 udp ; time 1000000001
/// > b 1.0.0.2 > 2.0.0.2 udp ; time 1000000002
/// > a 1.0.0.3 > 2.0.0.2 udp ; time 1000000003
/// ! r.active true
/// ~ Loading r with 2 inputs.
/// ~ r : Successfully loaded 2 packets. Input 1 dried out.
/// < x 1.0.0.1 > 2.0.0.2 udp ; time 1000000001.000000000 paint 0
/// = r.drops.unmatched 1
/// + 2s
/// < y 1.0.0.2 > 2.0.0.2 udp ; time 1000000002.000000000 paint 1
/// ```
#[derive(Clone, Element)]
#[element(room = "trace", args = ReplayUnqueueArgs)]
#[element(ports = "1-/=", processing = "l/h", flow = "#/#", alias = "MultiReplayUnqueue")]
pub struct ReplayUnqueue {
    pub(super) stop: i64,
    pub(super) active: bool,
    /// Speed in percent of the recorded one; 0 for as fast as possible.
    #[arg(keyword, live, default = 0)]
    pub(super) timing: u32,
    /// The speed as a function of the time since the start.
    pub(super) function: Option<Formula>,
    /// Name of the element in messages.
    pub(super) name: String,
    pub(super) stop_time: Duration,
    pub(super) verbose: bool,
    pub(super) limit: usize,
    pub(super) burst: usize,
}

/// How often TIMING_FNT is asked while a packet waits.
const SPEED_INTERVAL: Duration = Duration::from_millis(1);

impl ReplayUnqueue {
    /// Loads packets, and starts the replay when the trace is complete.
    fn load(&self, trace: &mut PacketTrace, n: usize, cx: &mut Cx) -> NextRun {
        let (name, limit) = (&self.name, self.limit);
        if trace.is_new() {
            cx.chatter(&format!("Loading {name} with {} inputs.", cx.inputs()));
        }
        let Some(dry) = trace.load(n, limit, cx) else { return NextRun::Empty };
        let (count, dry) = (trace.len(), dry.map_or("No input".into(), |it| format!("Input {it}")));
        cx.chatter(&format!("{name} : Successfully loaded {count} packets. {dry} dried out."));
        trace.begin(cx.now());
        if let Some(function) = &self.function {
            trace.speed = function.after(0) as u32;
            cx.chatter(&format!("Timing starts with {}%", trace.speed));
        }
        NextRun::Again
    }

    /// The time at which the next packet is due; `None` if immediately.
    fn due(&self, trace: &mut PacketTrace, cx: &mut Cx) -> Option<Time> {
        let Some(function) = &self.function else {
            return trace.due(self.timing).filter(|due| *due > cx.now());
        };
        let due = trace.due(trace.speed).filter(|due| *due > cx.now())?;
        let speed = function.after(cx.now().since(trace.started.unwrap_or(cx.now())));
        if speed as u32 == trace.speed {
            return Some(due.min(cx.now() + SPEED_INTERVAL));
        }
        cx.chatter(&format!("Timing is {speed:.6} -> {}%", speed as u32));
        trace.set_speed(speed as u32);
        trace.due(trace.speed).filter(|due| *due > cx.now())
    }
}

impl Source for ReplayUnqueue {
    type Local = PacketTrace;
    type Fate = Port;

    fn packets_a_turn(&self) -> usize {
        self.burst
    }

    fn can_take_state(&self, _: &ReplayUnqueue) -> bool {
        true // `start` takes over the arguments that are new
    }

    fn start(&self, trace: &mut PacketTrace, _: &mut Cx) -> Result<(), ArgError> {
        trace.configure(self.stop, self.active);
        Ok(())
    }

    fn produce(&self, trace: &mut PacketTrace, n: usize, cx: &mut Cx) -> NextRun {
        trace.configure(self.stop, self.active);
        if !trace.active {
            return NextRun::Done;
        }
        if !trace.is_loaded() {
            return self.load(trace, n, cx);
        }
        if trace.stop == 0 {
            return self.finish(trace, cx);
        }
        trace.resume(cx.now());
        let (mut batch, mut batch_port, mut next_run) = (Batch::new(), 0, NextRun::Again);
        let mut left = self.burst.min(cx.burst());
        // Whether all packets are due at once.
        let is_untimed = self.function.is_none() && self.timing == 0;
        while left > 0 {
            let due = self.due(trace, cx);
            if self.function.is_some() && trace.speed == 0 {
                next_run = self.finish(trace, cx);
                break;
            }
            if let Some(due) = due {
                next_run = self.wait(trace, due, batch.is_empty(), cx);
                break;
            }
            let port = trace.next_output();
            if port != batch_port && !batch.is_empty() {
                cx.emit_batch(Port::nth(batch_port), std::mem::take(&mut batch));
            }
            batch_port = port;
            left -= trace.take(if is_untimed { left } else { 1 }, &mut batch, cx);
            if trace.at_end() && self.end_loop(trace, cx) {
                next_run = self.finish(trace, cx);
                break;
            }
        }
        if !batch.is_empty() {
            cx.emit_batch(Port::nth(batch_port), batch);
        }
        next_run
    }

    fn held(&self, trace: &PacketTrace) -> usize {
        trace.held()
    }
}
