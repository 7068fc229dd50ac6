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

/// A statistic as text; 0 if there are no delays.
fn text_of(value: Option<impl ToString>) -> String {
    value.map_or("0".into(), |value| value.to_string())
}

/// The text of a percentile of all delays but the first `skip`.
fn percentile(percent: f64) -> impl Fn(&Delays, usize) -> String + Send + Sync + 'static {
    move |delays, skip| text_of(delays.percentile(percent, skip))
}

/// The lines of `dump` without their numbers.
fn without_numbers(lines: String) -> String {
    let delays = lines.lines().filter_map(|line| line.split_once(": "));
    delays.map(|(_, delay)| format!("{delay}\n")).collect()
}

#[handlers]
impl TimestampDiffState {
    /// Number of delays that are stored.
    #[read]
    fn count(&self) -> usize {
        self.delays.len()
    }
    /// Mean delay; 0 if there is none, as for the others below.
    #[read]
    fn average(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), |delays, skip| text_of(delays.mean(skip)))
    }
    /// The same as `average`.
    #[read]
    fn avg(&self, ask: &ReadRequest) -> Value {
        self.average(ask)
    }
    /// Standard deviation of the delays.
    #[read]
    fn stddev(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), |delays, skip| text_of(delays.deviation(skip)))
    }
    /// Shortest delay.
    #[read]
    fn min(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(0.0))
    }
    /// Longest delay.
    #[read]
    fn max(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(100.0))
    }
    /// Median delay.
    #[read]
    fn median(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(50.0))
    }
    /// Percentile of the delays: `perc P [FIRST]`, without the delays before number FIRST.
    #[read]
    fn perc(&self, ask: &ReadRequest) -> Value {
        let mut words = ask.param.split_whitespace();
        let percent = words.next().and_then(|word| word.parse().ok()).unwrap_or(0.0f64);
        let skip = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        self.statistic(skip, percentile(percent.clamp(0.0, 100.0)))
    }
    /// Shortest delay.
    #[read]
    fn perc00(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(0.0))
    }
    /// Delay below which 1 % of the delays are.
    #[read]
    fn perc01(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(1.0))
    }
    /// Delay below which 5 % of the delays are.
    #[read]
    fn perc05(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(5.0))
    }
    /// Delay below which 10 % of the delays are.
    #[read]
    fn perc10(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(10.0))
    }
    /// Delay below which 25 % of the delays are.
    #[read]
    fn perc25(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(25.0))
    }
    /// Delay below which 50 % of the delays are.
    #[read]
    fn perc50(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(50.0))
    }
    /// Delay below which 75 % of the delays are.
    #[read]
    fn perc75(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(75.0))
    }
    /// Delay below which 90 % of the delays are.
    #[read]
    fn perc90(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(90.0))
    }
    /// Delay below which 95 % of the delays are.
    #[read]
    fn perc95(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(95.0))
    }
    /// Delay below which 99 % of the delays are.
    #[read]
    fn perc99(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(99.0))
    }
    /// Longest delay.
    #[read]
    fn perc100(&self, ask: &ReadRequest) -> Value {
        self.statistic(skip_count(ask), percentile(100.0))
    }
    /// Number of the last delay, from 0; -1 if there is none.
    #[read]
    fn index(&self) -> i64 {
        self.delays.len() as i64 - 1
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
    /// All delays, one per line.
    #[read]
    fn dump_list(&self, ask: &ReadRequest) -> Value {
        let (text, next) = self.delays.lines(ask.from);
        TextChunk { text, next, finish: without_numbers }.into()
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
