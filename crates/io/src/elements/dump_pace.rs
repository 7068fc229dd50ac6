//! The pace at which packets of a capture are emitted.

use castanet_element::prelude::*;
use castanet_kit::formula::Formula;

/// How often a function is asked for another speed, in nanoseconds.
const INTERVAL: u64 = 1_000_000;

/// The times by which packets are emitted.
#[derive(Default)]
pub(super) struct DumpPace {
    /// The time at which a packet was emitted, and that of its capture; the others are timed by it.
    timed_by: Option<(Time, i64)>,
    /// The time of the first packet.
    started: Time,
    /// The speed in percent.
    speed: u32,
    /// When the function was asked.
    asked: Time,
}

/// The fate of the next packet.
pub(super) enum Due {
    Now,
    At(Time),
    /// The function has come to 0: no more packets.
    Never,
}

impl DumpPace {
    /// Emits the next packet at once, and times the others by it.
    pub(super) fn reset(&mut self) {
        self.timed_by = None;
    }

    /// When to emit a packet, at `speed` or at that of `function`.
    pub(super) fn due(
        &mut self,
        packet: &Packet,
        speed: u32,
        function: Option<&Formula>,
        cx: &mut Cx,
    ) -> Due {
        let (now, captured) = (cx.now(), packet.timestamp());
        let Some((from, first)) = self.timed_by else {
            let speed = function.map_or(speed, |function| function.after(0) as u32);
            let timed_by = Some((now, captured));
            *self = DumpPace { timed_by, started: now, speed: speed.max(1), asked: now };
            return Due::Now;
        };
        let elapsed = (i128::from(captured) - i128::from(first)) * 100 / i128::from(self.speed);
        let due = Time(from.0.saturating_add(i64::try_from(elapsed).unwrap_or(i64::MAX)));
        if due > now {
            return Due::At(due);
        }
        let Some(function) = function.filter(|_| now.since(self.asked) > INTERVAL) else {
            return Due::Now;
        };
        self.asked = now;
        let speed = function.after(now.since(self.started));
        if speed as u32 != self.speed {
            cx.chatter(&format!("Current accel {speed:.6}"));
            (self.speed, self.timed_by) = ((speed as u32).max(1), Some((now, captured)));
            if speed as u32 == 0 {
                return Due::Never;
            }
        }
        Due::Now
    }
}
