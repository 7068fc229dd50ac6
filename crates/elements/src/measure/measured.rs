//! What `TimestampDiff` has measured, and its handlers.

use castanet_engine::class::{Piece, Sums};
use castanet_engine::prelude::*;
use castanet_kit::delays::Delays;

/// What was measured.
#[derive(Default, Local)]
#[local(methods)]
pub struct Measured {
    delays: Delays,
    seen: u32,
}

/// How many delays to leave out at the beginning.
fn skipped(ask: &Ask) -> usize {
    ask.param.trim().parse().unwrap_or(0)
}

/// A figure; -1 where nothing was measured.
fn figure(value: Option<impl ToString>) -> String {
    value.map_or("-1".into(), |value| value.to_string())
}

#[handlers]
impl Measured {
    /// How many delays are kept.
    #[read]
    fn count(&self) -> usize {
        self.delays.len()
    }
    /// The mean; -1 if there is none.
    #[read]
    fn average(&self, ask: &Ask) -> Value {
        self.figure(skipped(ask), |delays, skip| figure(delays.mean(skip)))
    }
    /// The standard deviation.
    #[read]
    fn stddev(&self, ask: &Ask) -> Value {
        self.figure(skipped(ask), |delays, skip| figure(delays.deviation(skip)))
    }
    /// The shortest.
    #[read]
    fn min(&self, ask: &Ask) -> Value {
        self.figure(skipped(ask), |delays, skip| figure(delays.percentile(0.0, skip)))
    }
    /// The longest.
    #[read]
    fn max(&self, ask: &Ask) -> Value {
        self.figure(skipped(ask), |delays, skip| figure(delays.percentile(100.0, skip)))
    }
    /// The one in the middle.
    #[read]
    fn median(&self, ask: &Ask) -> Value {
        self.figure(skipped(ask), |delays, skip| figure(delays.percentile(50.0, skip)))
    }
    /// What so many percent lie below: `perc00`, `perc01` to `perc100`.
    #[read(perc_)]
    fn perc(&self, ask: &Ask) -> Value {
        let percent = ask.param.trim().parse().unwrap_or(50.0f64).clamp(0.0, 100.0);
        self.figure(0, move |delays, _| figure(delays.percentile(percent, 0)))
    }
    /// The one measured last.
    #[read]
    fn last(&self) -> String {
        figure(self.delays.last())
    }
    /// Every delay, with its number, one a line.
    #[read]
    fn dump(&self, ask: &Ask) -> Value {
        let (text, next) = self.delays.lines(ask.from);
        Piece { text, next, finish: Piece::as_it_is }.into()
    }
    /// Forgets all delays.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.delays.clear();
        Ok(())
    }
}

impl Measured {
    /// A figure of the delays of now without the first `skip`, worked out on the control thread.
    fn figure(
        &self,
        skip: usize,
        figure: impl Fn(&Delays, usize) -> String + Send + Sync + 'static,
    ) -> Value {
        let delays = self.delays.clone();
        Value::common(Sums::new(Vec::new(), move |_| figure(&delays, skip)))
    }

    /// Keeps so many delays at most; no limit if 0.
    pub(super) fn limit(&mut self, limit: usize) {
        self.delays.set_limit(limit);
    }

    /// Takes one delay of `sample`.
    pub(super) fn take(&mut self, delay: u64, sample: u32) {
        if self.seen == 0 {
            self.delays.push(delay);
        }
        self.seen = (self.seen + 1) % sample;
    }
}
