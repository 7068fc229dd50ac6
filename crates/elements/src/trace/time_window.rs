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

impl WindowStart {
    /// The number of nanoseconds, whatever they are counted from.
    fn nanos(self) -> i64 {
        let (WindowStart::At(nanos) | WindowStart::After(nanos)) = self;
        nanos
    }
}

impl WindowEnd {
    /// The number of nanoseconds, whatever they are counted from.
    fn nanos(self) -> i64 {
        let (WindowEnd::At(nanos) | WindowEnd::After(nanos) | WindowEnd::Interval(nanos)) = self;
        nanos
    }
}

/// The period. Start and end are absolute from the first packet on.
#[derive(Clone, Local)]
#[local(methods)]
pub struct TimeWindow {
    begin: WindowStart,
    end: WindowEnd,
    /// Whether start and end are those of a configuration.
    is_set: bool,
    /// Whether the first packet that is not before the end has come.
    over: bool,
    /// The end at which that packet was reported, until the next packet is checked.
    reported_end: Option<i64>,
}

impl Default for TimeWindow {
    fn default() -> Self {
        TimeWindow::new(WindowStart::At(0), WindowEnd::At(i64::MAX))
    }
}

/// Parses the text of a handler that sets a time.
fn time(text: &str) -> Result<i64, ArgError> {
    Ok(SignedTime::from_arg(text.trim(), &Names::default())?.0)
}

#[handlers]
impl TimeWindow {
    /// The start of the period; before the first packet as configured.
    #[read]
    fn start(&self) -> String {
        seconds(self.begin.nanos())
    }
    /// The end of the period, which does not belong to it; before the first packet as configured.
    #[read(end)]
    fn end_time(&self) -> String {
        seconds(self.end.nanos())
    }
    /// The time from the start to the end.
    #[read]
    fn interval(&self) -> String {
        seconds(match self.end {
            WindowEnd::Interval(interval) => interval,
            end => end.nanos().saturating_sub(self.begin.nanos()),
        })
    }
    /// Sets the start. Before the first packet, an end relative to it is set, too.
    #[write(start)]
    fn set_start(&mut self, text: &str) -> Result<(), ArgError> {
        let first = time(text)?;
        self.resolve(first);
        self.begin = WindowStart::At(first);
        Ok(())
    }
    /// Sets the end.
    #[write(end)]
    fn set_end(&mut self, text: &str) -> Result<(), ArgError> {
        (self.end, self.over) = (WindowEnd::At(time(text)?), false);
        Ok(())
    }
    /// Sets the end, as a time after the start.
    #[write(interval)]
    fn set_interval(&mut self, text: &str) -> Result<(), ArgError> {
        let interval = time(text)?;
        self.end = match self.begin {
            WindowStart::At(first) => WindowEnd::At(first.saturating_add(interval)),
            WindowStart::After(_) => WindowEnd::Interval(interval),
        };
        self.over = false;
        Ok(())
    }
    /// Moves the end by a time.
    #[write]
    fn extend_interval(&mut self, text: &str) -> Result<(), ArgError> {
        let by = time(text)?;
        let (WindowEnd::At(end) | WindowEnd::After(end) | WindowEnd::Interval(end)) = &mut self.end;
        *end = end.saturating_add(by);
        self.over = false;
        Ok(())
    }
}

impl TimeWindow {
    pub(super) fn new(begin: WindowStart, end: WindowEnd) -> TimeWindow {
        TimeWindow { begin, end, is_set: false, over: false, reported_end: None }
    }

    /// Takes over start and end of the configuration, unless they are set.
    pub(super) fn configure(&mut self, window: &TimeWindow) {
        if !self.is_set {
            *self = TimeWindow { is_set: true, ..window.clone() };
        }
    }

    /// Makes start and end absolute, for a first packet of this time.
    fn resolve(&mut self, time: i64) {
        if let WindowStart::After(after) = self.begin {
            self.begin = WindowStart::At(time.saturating_add(after));
        }
        self.end = WindowEnd::At(match self.end {
            WindowEnd::At(last) => last,
            WindowEnd::After(after) => time.saturating_add(after),
            WindowEnd::Interval(interval) => self.begin.nanos().saturating_add(interval),
        });
    }

    /// Checks a packet's time; returns whether it is the first that is not before the end. For a
    /// packet that is checked again this holds only if the end has moved to a later time.
    pub(super) fn is_first_after(&mut self, time: i64) -> bool {
        self.resolve(time);
        let last = self.end.nanos();
        self.over |= self.reported_end.take().is_some_and(|end| last <= end);
        let first = time >= last && !std::mem::replace(&mut self.over, true);
        self.reported_end = first.then_some(last);
        first
    }

    /// Whether a time lies within the period.
    pub(super) fn contains(&self, time: i64) -> bool {
        (self.begin.nanos()..self.end.nanos()).contains(&time)
    }
}
