//! `ReplayUnqueue`: packets of a trace from memory, again and again.

use super::replay::Trace;
use castanet_engine::prelude::*;

/// Pulls packets until an input runs dry, keeps them, and pushes them on again and again.
///
/// Packets of several inputs go in the order of their time stamps, each out of
/// the output of its input's number. An input is dry when it has nothing twice
/// in a row; what others have beyond that is dropped (`drops.unmatched`). Kept
/// packets lie in memory of their own, however many they are.
///
/// ```click
/// in -> Queue -> r :: ReplayUnqueue(STOP 2, ACTIVE false) -> c :: Counter -> out
/// > in 1.0.0.1 > 2.0.0.2 udp
/// > in 1.0.0.2 > 2.0.0.2 udp
/// ! r.active true
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// < out 1.0.0.1 > 2.0.0.2 udp
/// < out 1.0.0.2 > 2.0.0.2 udp
/// = c.count 4
/// = r.stop 2
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
/// < x 1.0.0.1 > 2.0.0.2 udp ; time 1000000001.000000000
/// = r.drops.unmatched 1
/// + 2s
/// < y 1.0.0.2 > 2.0.0.2 udp ; time 1000000002.000000000
/// ```
#[derive(Clone, Element)]
#[element(room = "trace")]
#[element(ports = "1-/=", processing = "l/h", flow = "#/#", alias = "MultiReplayUnqueue")]
pub struct ReplayUnqueue {
    /// How often to replay before the router is stopped; for ever if negative.
    #[arg(keyword, live, default = -1)]
    stop: i64,
    /// After how long to stop the router; 0 is never.
    #[arg(keyword, default = Duration::ZERO)]
    stop_time: Duration,
    /// How FastClick copies packets; here they are always shared until they are written to.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    quick_clone: bool,
    /// Whether FastClick asks notifiers if an input is dry; here it is always known.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    use_signal: bool,
    /// Whether to replay at all.
    #[arg(keyword, live, default = true)]
    active: bool,
    /// Whether to say what was kept, and when it begins again.
    #[arg(keyword, default = false)]
    verbose: bool,
    /// Whether FastClick frees its packets at the end; here they always are.
    #[arg(keyword, default = false)]
    #[allow(dead_code)]
    freeonterminate: bool,
    /// The most packets to keep; no limit if negative.
    #[arg(keyword, default = -1)]
    limit: i64,
    /// Speed in percent of the recorded one; as fast as possible if 0.
    #[arg(keyword, live, default = 0)]
    timing: u32,
    /// How many packets to push at a time.
    #[arg(keyword, default = 64, range = 1..)]
    burst: usize,
}

impl ReplayUnqueue {
    /// Whether one more time is one too many; then the router stops.
    fn is_over(&self, trace: &Trace, now: Time) -> bool {
        let timed = !self.stop_time.is_zero();
        let late = timed && now >= trace.began + self.stop_time;
        let often =
            |stop: u64| trace.loops >= if timed && stop == 0 { u64::MAX } else { stop.max(1) };
        late || u64::try_from(self.stop).is_ok_and(often)
    }

    fn load(&self, trace: &mut Trace, n: usize, cx: &mut Cx) -> Asked {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        if !trace.load(n, limit, cx) {
            return Asked::Empty;
        }
        if self.verbose {
            cx.chatter(&format!("loaded {} packets", trace.len()));
        }
        trace.begin(cx.now());
        Asked::Again
    }
}

impl Source for ReplayUnqueue {
    type Local = Trace;
    type Fate = Port;

    fn ask(&self, trace: &mut Trace, n: usize, cx: &mut Cx) -> Asked {
        if !self.active || trace.ended {
            // A write to a handler begins anew.
            trace.ended = false;
            trace.forget_loops();
            return if self.active { Asked::Again } else { Asked::Done };
        }
        if !trace.is_loaded() {
            return self.load(trace, n, cx);
        }
        for _ in 0..n.min(self.burst) {
            if let Some(due) = trace.due(self.timing).filter(|due| *due > cx.now()) {
                return Asked::At(due);
            }
            let (port, packet) = trace.next(cx);
            cx.emit(Port::nth(port), packet);
            if trace.at_end() {
                trace.loops += 1;
                trace.rewind(cx.now());
                if self.is_over(trace, cx.now()) {
                    trace.ended = true;
                    cx.stop();
                    return Asked::Done;
                }
                if self.verbose {
                    cx.chatter("replay loop");
                }
            }
        }
        Asked::Again
    }

    fn held(&self, trace: &Trace) -> usize {
        trace.held()
    }
}
