//! The ends of loops, and of the replay, of `ReplayUnqueue`.

use super::packet_trace::PacketTrace;
use super::replay_unqueue::ReplayUnqueue;
use castanet_element::prelude::*;

impl ReplayUnqueue {
    /// Ends the replay and asks the router to stop.
    pub(super) fn finish(&self, trace: &mut PacketTrace, cx: &mut Cx) -> NextRun {
        trace.end();
        cx.stop();
        NextRun::Done
    }

    /// The time for which the replay has run, in whole seconds, and STOP_TIME.
    fn seconds(&self, trace: &PacketTrace, now: Time) -> (u64, u64) {
        ((now - trace.started.unwrap_or(now)).as_secs(), self.stop_time.as_secs())
    }

    /// Ends a loop and begins the next one; returns whether it was the last one.
    pub(super) fn end_loop(&self, trace: &mut PacketTrace, cx: &mut Cx) -> bool {
        trace.rewind(cx.now());
        let (seconds, limit) = self.seconds(trace, cx.now());
        let (label, left) = (format_args!("{} :: ReplayUnqueue", self.name), trace.stop);
        let timed_out = limit > 0 && seconds >= limit;
        trace.stop = if timed_out { 0 } else { left - i64::from(left > 0) };
        if self.verbose {
            let elapsed = format_args!("{seconds}/{limit} seconds");
            cx.chatter(&match limit {
                0 => format!("{label}: Replay loop ({left} loops left)"),
                _ if timed_out => {
                    format!("Replay stopped after {seconds} seconds ({left} loops left)")
                }
                _ => format!("{label}: continue after {elapsed} ({left} loops left)"),
            });
            let end = "because there is 0 loops left";
            match (trace.stop, limit) {
                (0, 0) => cx.chatter(&format!("{label}: stopped {end}")),
                (0, _) if !timed_out => {
                    cx.chatter(&format!("{label}: stopped early after {elapsed} {end}"));
                }
                _ => {}
            }
        }
        trace.stop == 0
    }

    /// Waits until a packet is due, or ends an idle replay whose STOP_TIME is over.
    pub(super) fn wait(
        &self,
        trace: &mut PacketTrace,
        due: Time,
        is_idle: bool,
        cx: &mut Cx,
    ) -> NextRun {
        let (seconds, limit) = self.seconds(trace, cx.now());
        if limit == 0 {
            return NextRun::At(due);
        }
        if is_idle && seconds >= limit {
            return self.finish(trace, cx);
        }
        NextRun::At(due.min(trace.started.unwrap_or(due) + self.stop_time))
    }
}
