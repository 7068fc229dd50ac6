//! `PacedSource`: one packet again and again, in fresh frames, at a rate.

use castanet_element::prelude::*;

/// Makes packets of one kind, each in a frame of its own, at a rate by the clock. The timestamp of a
/// packet is the time at which it should leave, in ticks of the time-stamp counter: a source that is late
/// does not hide the delay.
///
/// ```text
/// PacedSource(\<4500…>, RATE 100000) -> out
/// ```
#[derive(Element)]
pub(crate) struct PacedSource {
    /// The packet.
    #[arg]
    data: Data,
    /// Packets a second; 0 for as many as can be.
    #[arg(keyword, default = 0)]
    rate: u64,
}

/// The clock, and the packets that were made since it began.
#[derive(Local)]
#[local(methods)]
pub(crate) struct PacedSourceState {
    clock: quanta::Clock,
    start: Option<u64>,
    made: u64,
    /// The ticks of a packet.
    period: f64,
}

impl Default for PacedSourceState {
    fn default() -> PacedSourceState {
        PacedSourceState { clock: quanta::Clock::new(), start: None, made: 0, period: 0.0 }
    }
}

#[handlers]
impl PacedSourceState {
    /// Begins anew: packets that were due before are not made.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        (self.start, self.made) = (None, 0);
        Ok(())
    }
}

/// Pause of the source when there are no frames.
const FAMINE: Duration = Duration::from_micros(10);

impl Source for PacedSource {
    type Local = PacedSourceState;
    type Fate = ();

    fn init(&self, state: &mut PacedSourceState, _: &mut Cx) -> Result<(), ArgError> {
        if self.rate > 0 {
            state.period = crate::measure::ticks_per_ns() * 1e9 / self.rate as f64;
        }
        Ok(())
    }

    fn produce(&self, state: &mut PacedSourceState, n: usize, cx: &mut Cx) -> NextRun {
        let now = state.clock.raw();
        let start = *state.start.get_or_insert(now);
        let due = match self.rate {
            0 => n as u64,
            _ => (((now - start) as f64 / state.period) as u64).saturating_sub(state.made),
        };
        let wanted = n.min(due as usize).min(cx.burst()).min(cx.room());
        let n = cx.grant(wanted);
        if n == 0 && wanted > 0 {
            return NextRun::At(cx.now() + FAMINE);
        }
        let mut batch = Batch::new();
        while batch.len() < n {
            let Some(mut packet) = cx.copy_in(&self.data.0) else { break };
            let planned = start + (state.made as f64 * state.period) as u64;
            packet.set_timestamp(planned as i64);
            state.made += 1;
            batch.push(packet);
        }
        if !batch.is_empty() {
            cx.emit_batch((), batch);
        }
        NextRun::Again
    }
}
