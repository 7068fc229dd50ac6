//! State of `TimestampDiff`: delays, and the handlers about them.

use castanet_element::handler::{Sums, TextChunk};
use castanet_element::prelude::*;
use castanet_kit::delays::Delays;

/// The delays that were measured.
#[derive(Default, Local)]
#[local(methods)]
pub struct TimestampDiffState {
    delays: Delays,
    /// Packets since the last sampled one, plus 1; 0 if the next one is sampled.
    sample_position: u32,
}

/// The number of delays to leave out at the beginning, as a read's parameter says.
fn skip_count(ask: &ReadRequest) -> usize {
    ask.param.trim().parse().unwrap_or(0)
}

/// A statistic as text; -1 if there are no delays.
fn text_of(value: Option<impl ToString>) -> String {
    value.map_or("-1".into(), |value| value.to_string())
}

#[handlers]
impl TimestampDiffState {
    /// Number of delays that are stored.
    #[read]
    fn count(&self) -> usize {
        self.delays.len()
    }
    /// Mean delay; -1 if there is none, as for the others below.
    #[read]
    fn average(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), |delays, skip| text_of(delays.mean(skip)))
    }
    /// Standard deviation of the delays.
    #[read]
    fn stddev(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), |delays, skip| text_of(delays.deviation(skip)))
    }
    /// Shortest delay.
    #[read]
    fn min(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), |delays, skip| text_of(delays.percentile(0.0, skip)))
    }
    /// Longest delay.
    #[read]
    fn max(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), |delays, skip| text_of(delays.percentile(100.0, skip)))
    }
    /// Median delay.
    #[read]
    fn median(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), |delays, skip| text_of(delays.percentile(50.0, skip)))
    }
    /// Percentile of the delays: `perc00`, `perc01` to `perc100`.
    #[read(perc_)]
    fn perc(&self, ask: &ReadRequest) -> Value {
        let percent = ask.param.trim().parse().unwrap_or(50.0f64).clamp(0.0, 100.0);
        self.statistic(0, move |delays, _| text_of(delays.percentile(percent, 0)))
    }
    /// Last delay.
    #[read]
    fn last(&self) -> String {
        text_of(self.delays.last())
    }
    /// All delays with their numbers, one per line.
    #[read]
    fn dump(&self, ask: &ReadRequest) -> Value {
        let (text, next) = self.delays.lines(ask.from);
        TextChunk { text, next, finish: TextChunk::as_it_is }.into()
    }
    /// Removes all delays.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.delays.clear();
        Ok(())
    }
}

impl TimestampDiffState {
    /// A statistic of the current delays without the first `skip`, computed on the control thread.
    fn statistic(
        &self,
        skip: usize,
        compute: impl Fn(&Delays, usize) -> String + Send + Sync + 'static,
    ) -> Value {
        let delays = self.delays.clone();
        Value::common(Sums::new(Vec::new(), move |_| compute(&delays, skip)))
    }

    /// Sets the most delays to store; the default if 0.
    pub(super) fn limit(&mut self, limit: usize) {
        self.delays.set_limit(limit);
    }

    /// Stores one of `sample` delays.
    pub(super) fn record(&mut self, delay: u64, sample: u32) {
        if self.sample_position == 0 {
            self.delays.push(delay);
        }
        self.sample_position = (self.sample_position + 1) % sample;
    }
}
