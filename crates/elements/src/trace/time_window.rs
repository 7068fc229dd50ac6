//! The period that `TimeFilter` passes, and its handlers.

use super::signed_time::{SignedTime, seconds};
use castanet_element::prelude::*;

/// The start of the period.
#[derive(Clone, Copy)]
pub(super) enum WindowStart {
    /// At a time, in nanoseconds since 1970.
    At(i64),
    /// So many nanoseconds after the first packet.
    After(i64),
}

/// The end of the period.
#[derive(Clone, Copy)]
pub(super) enum WindowEnd {
    /// At a time, in nanoseconds since 1970.
    At(i64),
    /// So many nanoseconds after the first packet.
    After(i64),
    /// So many nanoseconds after the start of the period.
    Interval(i64),
}

/// The period, in nanoseconds since 1970.
#[derive(Clone, Local)]
#[local(methods)]
pub struct TimeWindow {
    /// Start and end as configured, until the first packet has come.
    configured: Option<(WindowStart, WindowEnd)>,
    /// Whether start and end are set, by the configuration or a handler.
    is_set: bool,
    first: i64,
    last: i64,
    /// Whether the first packet that is not before the end has come.
    over: bool,
    /// The end at which that packet was reported, until the next packet is checked.
    reported_end: Option<i64>,
}

impl Default for TimeWindow {
    fn default() -> Self {
        TimeWindow {
            configured: None,
            is_set: false,
            first: 0,
            last: i64::MAX,
            over: false,
            reported_end: None,
        }
    }
}

/// Parses the text of a handler that sets a time.
fn time(text: &str) -> Result<i64, ArgError> {
    Ok(SignedTime::from_arg(text.trim(), &Names::default())?.0)
}

#[handlers]
impl TimeWindow {
    /// The start of the period.
    #[read]
    fn start(&self) -> String {
        seconds(self.first)
    }
    /// The end of the period, which does not belong to it.
    #[read]
    fn end(&self) -> String {
        seconds(self.last)
    }
    /// The time from the start to the end.
    #[read]
    fn interval(&self) -> String {
        seconds(self.last.saturating_sub(self.first))
    }
    /// Sets the start.
    #[write(start)]
    fn set_start(&mut self, text: &str) -> Result<(), ArgError> {
        (self.first, self.is_set) = (time(text)?, true);
        Ok(())
    }
    /// Sets the end.
    #[write(end)]
    fn set_end(&mut self, text: &str) -> Result<(), ArgError> {
        (self.last, self.over) = (time(text)?, false);
        Ok(())
    }
    /// Sets the end, as a time after the start.
    #[write(interval)]
    fn set_interval(&mut self, text: &str) -> Result<(), ArgError> {
        (self.last, self.over) = (self.first.saturating_add(time(text)?), false);
        Ok(())
    }
    /// Moves the end by a time.
    #[write]
    fn extend_interval(&mut self, text: &str) -> Result<(), ArgError> {
        (self.last, self.over) = (self.last.saturating_add(time(text)?), false);
        Ok(())
    }
}

impl TimeWindow {
    pub(super) fn new(begin: WindowStart, end: WindowEnd) -> TimeWindow {
        TimeWindow { configured: Some((begin, end)), ..TimeWindow::default() }
    }

    /// Takes over start and end of the configuration, unless they are set.
    pub(super) fn configure(&mut self, window: &TimeWindow) {
        if !std::mem::replace(&mut self.is_set, true) {
            self.configured = window.configured;
        }
    }

    /// Checks a packet's time; returns whether it is the first that is not before the end. For a
    /// packet that is checked again this holds only if the end has moved to a later time.
    pub(super) fn is_first_after(&mut self, time: i64) -> bool {
        if let Some((begin, end)) = self.configured.take() {
            self.first = match begin {
                WindowStart::At(first) => first,
                WindowStart::After(after) => time.saturating_add(after),
            };
            self.last = match end {
                WindowEnd::At(last) => last,
                WindowEnd::After(after) => time.saturating_add(after),
                WindowEnd::Interval(interval) => self.first.saturating_add(interval),
            };
        }
        self.over |= self.reported_end.take().is_some_and(|end| self.last <= end);
        let first = time >= self.last && !std::mem::replace(&mut self.over, true);
        self.reported_end = first.then_some(self.last);
        first
    }

    /// Whether a time lies within the period.
    pub(super) fn contains(&self, time: i64) -> bool {
        (self.first..self.last).contains(&time)
    }
}
